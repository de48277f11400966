# Finds or builds the programs that an evaluation measures; to be sourced.
# PALYRA_BIN names a folder with programs that are built already; otherwise the release profile is built.
# Usage: use_programs "$@", with the arguments of the evaluation
# shellcheck shell=bash
use_programs() {
  local here argument
  # Help is about the evaluation, and needs no program.
  for argument in "$@"; do
    case $argument in -h | --help) return ;; esac
  done
  here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
  if [ -z "${PALYRA_BIN:-}" ]; then
    # shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
    source "$here/../../scripts/lib.sh"
    use_build_cache
    say "building the release profile"
    cargo build --release --quiet --bin palyra --bin palyrad
    PALYRA_BIN=$CARGO_TARGET_DIR/release
  fi
  export PALYRA_BIN
}
