#!/usr/bin/env bash
# Runs the tests whose outcome depends on privileges once more as an ordinary user, with the programs that `make test` built as root: nothing is compiled.
# Which tests those are is said by the profile `unprivileged` of .config/nextest.toml. Whoever is not root has run them that way already.
#
# A checkout or a build cache below root's home cannot be entered by anybody else. They are shown to the user in a mount namespace of their own, under the
# same paths, because paths are compiled into the tests. No account is created, no permission is changed, and nothing is left behind.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
use_build_cache

# A user id that no account has, and that is not the one which the kernel shows for unknown owners.
user=61042

as_user() {
  setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all "$@"
}

# The topmost directory on the way to a path that the user cannot enter, if there is one.
hidden_above() {
  local part path=
  local -a parts
  IFS=/ read -ra parts <<<"${1#/}"
  for part in "${parts[@]}"; do
    path=$path/$part
    as_user test -x "$path" || { printf '%s\n' "$path" && return; }
  done
}

# In the mount namespace: puts an empty directory over each hidden one, and the given directories into it under their own paths.
show() {
  local shadow=$1 directory hidden
  shift
  local -A covered=()
  for directory in "$@"; do
    mkdir -p "$shadow$directory"
    mount --bind "$directory" "$shadow$directory"
  done
  for directory in "$@"; do
    hidden=$(hidden_above "$directory")
    [ -z "$hidden" ] || covered[$hidden]=1
  done
  for hidden in "${!covered[@]}"; do
    mount -t tmpfs -o mode=755 palyra-test "$hidden"
  done
  for directory in "$@"; do
    [ -d "$directory" ] || { mkdir -p "$directory" && mount --bind "$shadow$directory" "$directory"; }
  done
}

if [ "${1:-}" = --in-namespace ]; then
  base=$2
  nextest=$(command -v cargo-nextest)
  toolchain=$(rustc --print sysroot)
  cargo_home=${CARGO_HOME:-$HOME/.cargo}
  show "$base/shadow" "$root" "$CARGO_TARGET_DIR" "$(dirname -- "$nextest")" "$toolchain" "$cargo_home/registry"
  cd -- "$root"
  # Cargo itself and not the proxy of rustup, which has its toolchains below another home.
  as_user env -i PATH="$toolchain/bin:$PATH" HOME="$base/home" TMPDIR="$base/tmp" CARGO_HOME="$cargo_home" LANG=C.UTF-8 \
    "$nextest" nextest run --profile unprivileged --no-fail-fast --color never \
    --cargo-metadata "$base/cargo.json" --binaries-metadata "$base/binaries.json"
  exit
fi

if [ "$(id -u)" -ne 0 ]; then
  exit 0
fi
if ! cargo nextest --version >/dev/null 2>&1; then
  say "tests as an ordinary user: left out, because cargo-nextest is not installed"
  exit 0
fi
say "== tests as an ordinary user"
base=$(mktemp -d /var/tmp/palyra-user-XXXXXX)
trap 'rm -rf --one-file-system "$base"' EXIT
chmod 755 "$base"
mkdir "$base/shadow"
install -d -o "$user" -g "$user" -m 700 "$base/home" "$base/tmp"
cargo metadata --format-version 1 >"$base/cargo.json"
cargo nextest list --workspace --profile unprivileged --list-type binaries-only --message-format json >"$base/binaries.json" 2>"$base/log" ||
  { tail -n 20 "$base/log" >&2 && fail "the tests are not built" "type: make test"; }
chmod 644 "$base"/*.json
unshare --mount --propagation private -- bash "$root/scripts/unprivileged.sh" --in-namespace "$base" 2>&1 | tee "$base/log"
summary=$(sed -n 's/^ *Summary \[[^]]*\] *//p' "$base/log" | tail -n 1)
say "tests as an ordinary user: passed; $summary"
