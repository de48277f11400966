#!/usr/bin/env bash
# Makes the compilers of guest languages available, for the tests that build skills. Silent when nothing is missing, and then without any network.
# What cannot be installed is said in one line and left out: the tests then say which languages they skipped. Nothing outside the cache is changed, but for
# a target that rustup adds to the toolchain of this checkout.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# The same as in crates/palyra-plugins/build/src/toolchain/mod.rs; a test compares them.
zig=0.17.0
componentize_js=0.23.0
componentize_py=0.25.1

cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra/guests
mkdir -p "$cache"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Two checkouts share the cache, and each begins by removing what the other is in the middle of.
if has flock; then
  exec 9>"$cache/.lock"
  flock 9
fi

# Says that a language is left out, and why: the last line with words in it, which is where all of these programs say it.
skipped() {
  local why
  why=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | cut -c 1-200 || true)
  say "guest language $1: not available (${why:-nothing was said})"
}

# Whether what is in a folder is whole and still works; an update of the system's Python breaks every environment that was made with the one before.
# Usage: works NAME COMMAND…, where the command is below the folder.
works() {
  local name=$1
  shift
  [ -f "$cache/$name/.whole" ] && "$cache/$name/$1" "${@:2}" >/dev/null 2>&1
}

# Installs one compiler into its folder; a broken attempt leaves nothing behind that the next one would take for whole.
# Usage: install NAME COMMAND PACKAGE, where the command takes the package and the folder.
install() {
  local name=$1 command=$2 package=$3
  say "installing $package into $cache/$name"
  rm -rf "${cache:?}/$name"
  if "$command" "$package" "$cache/$name" >"$log" 2>&1; then
    : >"$cache/$name/.whole"
  else
    rm -rf "${cache:?}/$name"
    return 1
  fi
}

# An environment of Python with one package. Its scripts hold its path, so it is made where it stays. Debian's Python comes without the part that makes
# environments with pip in them; `uv` does both by itself. Without a network it gives up soon.
with_pip() {
  if has python3 && python3 -m venv "$2"; then
    "$2/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 1 --timeout 20 "$1"
  elif has uv; then
    rm -rf "$2"
    uv venv --quiet "$2" && uv pip install --quiet --python "$2/bin/python" "$1"
  elif has python3; then
    echo "python3 cannot make environments: install python3-venv, or uv"
    return 1
  else
    echo "neither python3 nor uv is installed"
    return 1
  fi
}

with_npm() {
  if ! has node || ! has npm; then
    echo "node and npm are not installed"
    return 1
  fi
  mkdir -p "$2" && npm install --silent --no-audit --no-fund --no-update-notifier --fetch-retries=1 --fetch-timeout=30000 --prefix "$2" "$1"
}

# Rust: the compiler's own library for the target, or its source (Debian's rust-web-src), or rustup brings it.
target=wasm32-unknown-unknown
rust_is_there() {
  local library sysroot
  library=$(rustc --print target-libdir --target $target 2>/dev/null) || return 1
  sysroot=$(rustc --print sysroot 2>/dev/null) || return 1
  [ -d "$library" ] || [ -f "$sysroot/lib/rustlib/src/rust/library/std/Cargo.toml" ]
}
if ! has rustc; then
  echo "there is no rustc" >"$log"
  skipped Rust
elif ! rust_is_there; then
  if has rustup; then
    say "installing the Rust target $target"
    rustup --quiet target add $target >"$log" 2>&1 || skipped Rust
  else
    echo "this Rust has no $target and there is no rustup" >"$log"
    skipped Rust
  fi
fi

# C: any of what the build looks for will do, so nothing is fetched where the system has it.
system_c() {
  zig version >/dev/null 2>&1 || { [ -d /usr/include/wasm32-wasi ] && has wasm-ld && has clang; }
}
works "zig-$zig" bin/python -m ziglang version || system_c ||
  install "zig-$zig" with_pip "ziglang==$zig" || skipped C

js=js-$componentize_js
if [ ! -f "$cache/$js/.whole" ] || [ ! -f "$cache/$js/node_modules/@bytecodealliance/componentize-js/src/componentize.js" ]; then
  install "$js" with_npm "@bytecodealliance/componentize-js@$componentize_js" || skipped JavaScript
fi

works "python-$componentize_py" bin/componentize-py --version ||
  install "python-$componentize_py" with_pip "componentize-py==$componentize_py" || skipped Python
