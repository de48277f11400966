# shellcheck shell=bash
# What the scripts share: where the checkout is and where builds go. To be sourced, never run.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root" || exit 1

# Prints one line for people, on standard error so that piped output stays clean.
say() {
  printf '%s\n' "$*" >&2
}

# Prints an error with what to do about it, and stops.
fail() {
  say "error: $1"
  [ $# -lt 2 ] || say "hint: $2"
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# Builds are kept outside the checkout and per compiler, so that a fresh clone does not compile everything again.
use_build_cache() {
  if [ -z "${CARGO_TARGET_DIR:-}" ]; then
    local version
    version=$(rustc --version | cut -d ' ' -f 2)
    CARGO_TARGET_DIR=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra/target-$version
  fi
  export CARGO_TARGET_DIR
  forget_other_checkouts
}

# Cargo tells our own crates apart by their place inside a checkout and the times of their files: what another checkout left in the shared directory would
# count as built, with that checkout's paths inside. Only the libraries of others are to be shared.
forget_other_checkouts() {
  local stamp=$CARGO_TARGET_DIR/checkout
  [ "$(cat "$stamp" 2>/dev/null)" != "$root" ] || return 0
  rm -rf "$CARGO_TARGET_DIR"/*/.fingerprint/palyra*
  mkdir -p "$CARGO_TARGET_DIR"
  printf '%s\n' "$root" >"$stamp"
}
