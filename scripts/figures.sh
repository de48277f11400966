#!/usr/bin/env bash
# Runs the measuring programs, each of which prints its table and leaves target/figures/<name>.json.
# Usage: scripts/figures.sh [NAME]
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
use_build_cache
export PALYRA_FIGURES_DIR=${PALYRA_FIGURES_DIR:-$root/target/figures}

# Prints the name of each program that measures time or size: every file <crate>/benches/<name>.rs is one.
benches() {
  local file
  for file in crates/*/benches/*.rs crates/*/*/benches/*.rs; do
    [ ! -e "$file" ] || basename "$file" .rs
  done
}

# Prints `name<TAB>command` for everything that measures. What counts losses is a battery of tests, at full length but for the faults, which take hours.
programs() {
  local name
  for name in $(benches); do
    printf '%s\tcargo bench --quiet --workspace --bench %s\n' "$name" "$name"
  done
  printf 'crash\tbash scripts/batteries.sh crash kills\n'
  printf 'faults\tenv PALYRA_FAULTS=5 bash scripts/batteries.sh faults\n'
  printf 'tamper\tbash scripts/batteries.sh tamper\n'
}

only=${1:-}
names=$(programs | cut -f 1 | sort | tr '\n' ' ')
[ -n "$names" ] || fail "there is no measuring program under crates/*/benches"
if [ -n "$only" ] && ! grep -qw -- "$only" <<<"$names"; then
  fail "no measuring program is called \`$only\`" "choose one of: $names"
fi

# Programs that start the daemon measure the shipped build. Everything is built in one go and for the whole workspace: a program built
# alone would choose other features of shared dependencies, and build those once more. They are named, since `--benches` would also build
# every library a second time, as a program without measurements. The batteries build what they need themselves.
if [ -z "$only" ] || benches | grep -qx -- "$only"; then
  say "building the release profile"
  read -ra wanted <<<"$(benches | tr '\n' ' ')"
  cargo build --release --workspace --bins "${wanted[@]/#/--bench=}" --quiet
fi

failed=()
while IFS=$'\t' read -r name command; do
  [ -z "$only" ] || [ "$only" = "$name" ] || continue
  say ""
  say "== $name"
  read -ra words <<<"$command"
  "${words[@]}" </dev/null || failed+=("$name")
done < <(programs)
[ ${#failed[@]} -eq 0 ] || fail "did not finish: ${failed[*]}"

# The page shows all figures of one occasion, so a single table does not change it.
if [ -z "$only" ]; then
  "$CARGO_TARGET_DIR/release/figures-page"
fi
