#!/usr/bin/env bash
# Runs the batteries at full length, of which `make test` takes samples. Each prints what it tried and leaves its figures in target/figures.
#   crash   kills the daemon at every commit point of a run, of an undo and of each command of the catalogue
#   kills   kills a loaded daemon at random moments (PALYRA_KILLS, 2000; PALYRA_KILLS_SEED)
#   faults  lets every system call of the journal and the artifact store fail (PALYRA_FAULTS places per call and error, 0: every one)
#   tamper  changes state on disk in every way
#   search  plays a million attacks against the rule of information flow (PALYRA_SEARCH_WORLDS, of some 200 attacks each), and each check of it taken away
# Usage: scripts/batteries.sh [NAME…]
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
use_build_cache
export PALYRA_FIGURES_DIR=${PALYRA_FIGURES_DIR:-$root/target/figures}

# Runs the tests of one crate below a module, one after the other and without a limit of time.
tests() {
  cargo test --quiet --package "$1" --test it -- --nocapture --test-threads 1 "$2"
}

battery() {
  case $1 in
    crash) PALYRA_CRASH=all tests palyra-testkit crash:: ;;
    kills) PALYRA_KILLS=${PALYRA_KILLS:-2000} tests palyra-testkit kills::random ;;
    faults)
      export PALYRA_FAULTS=${PALYRA_FAULTS:-0}
      tests palyra-testkit faults::no_failing && tests palyra-testkit system::io_faults::a_run_survives_any
      ;;
    tamper) tests palyra-journal battery:: && tests palyra-testkit tamper:: ;;
    search) cargo bench --quiet --workspace --bench search ;;
  esac
}

names="crash kills faults tamper search"
# shellcheck disable=SC2086 # one word per battery
[ $# -gt 0 ] || set -- $names
for name in "$@"; do
  grep -qw -- "$name" <<<"$names" || fail "no battery is called \`$name\`" "choose one of: $names"
done
# The batteries run the real programs, so these are built first.
cargo build --workspace --bins --quiet
failed=()
for name in "$@"; do
  say ""
  say "== battery: $name"
  battery "$name" </dev/null || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || fail "failed: ${failed[*]}"
