#!/usr/bin/env bash
# Makes the compilers of guest languages available, for the tests that build skills. Silent when nothing is missing, and then without any network.
# What cannot be installed is said in one line and left out: the tests then say which languages they skipped.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# The same as in crates/palyra-plugins/build/src/toolchain/mod.rs; a test compares them.
zig=0.17.0
componentize_js=0.23.0
componentize_py=0.25.1

cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra/guests
log=$(mktemp)
trap 'rm -f "$log"' EXIT
mkdir -p "$cache"

# Says that a language is left out, and why.
skipped() {
  say "guest language $1: not available ($(tail -n 1 "$log"))"
}

# Installs one compiler into its folder; a broken attempt leaves nothing behind that the next one would take for whole.
# Usage: install NAME COMMAND PACKAGE, where the command takes the package and the folder.
install() {
  local name=$1 command=$2 package=$3
  [ ! -f "$cache/$name/.whole" ] || return 0
  say "installing $name"
  rm -rf "${cache:?}/$name"
  if "$command" "$package" "$cache/$name" >"$log" 2>&1; then
    : >"$cache/$name/.whole"
  else
    rm -rf "${cache:?}/$name"
    return 1
  fi
}

# An environment of Python with one package. Its scripts hold its path, so it is made where it stays.
with_pip() {
  python3 -m venv "$2" && "$2/bin/pip" install --quiet --disable-pip-version-check "$1"
}

with_npm() {
  mkdir -p "$2" && npm install --silent --no-audit --no-fund --prefix "$2" "$1"
}

target=wasm32-unknown-unknown
if [ ! -d "$(rustc --print target-libdir --target $target 2>/dev/null)" ]; then
  if has rustup; then
    say "installing the Rust target $target"
    rustup --quiet target add $target >"$log" 2>&1 || skipped Rust
  else
    echo "this Rust has no $target and there is no rustup" >"$log"
    skipped Rust
  fi
fi
install "zig-$zig" with_pip "ziglang==$zig" || skipped C
install "js-$componentize_js" with_npm "@bytecodealliance/componentize-js@$componentize_js" || skipped JavaScript
install "python-$componentize_py" with_pip "componentize-py==$componentize_py" || skipped Python
