#!/usr/bin/env bash
# Everything that must hold before a change goes in. Stops at the first step that fails and names it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
use_build_cache
# One stream, so that a log shows headings, output and errors in the order in which they came.
exec 2>&1

steps=0
start=$SECONDS
log=$(mktemp)
current="set-up"
finish() {
  local status=$?
  rm -f "$log"
  [ $status -eq 0 ] || say "make test: FAILED in step \`$current\` after $((SECONDS - start)) s"
}
trap finish EXIT

# Runs one named step.
step() {
  current=$1
  shift
  steps=$((steps + 1))
  say "== $current"
  "$@"
}

run_tests() {
  if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --no-fail-fast --color never 2>&1 | tee "$log"
  else
    cargo test --workspace --lib --bins --tests --no-fail-fast --color never 2>&1 | tee "$log"
  fi
}

# The runner's own count: nextest prints one summary line, `cargo test` one line per program.
count_tests() {
  if grep -q '^ *Summary \[' "$log"; then
    sed -n 's/^ *Summary \[[^]]*\] *//p' "$log" | tail -n 1
  else
    awk '/^test result: ok/ { passed += $4 } END { printf "%d tests run: %d passed\n", passed, passed }' "$log"
  fi
}

lint_scripts() {
  local script
  for script in scripts/*.sh evals/*.sh evals/*/*.sh .ci/run; do
    bash -n "$script"
  done
  if has shellcheck; then
    shellcheck --external-sources scripts/*.sh evals/*.sh evals/*/*.sh .ci/run
  else
    say "shellcheck is not installed: only the syntax was checked"
  fi
}

# The tests of `palyra policy prove` run a real solver.
find_solver() {
  PALYRA_SMT_SOLVER=$(bash scripts/solver.sh)
  export PALYRA_SMT_SOLVER
}

# The public scripts of the component model come from crates.io; where they cannot be had, their test says so.
find_component_suite() {
  PALYRA_COMPONENT_SUITE=$(bash scripts/component-suite.sh)
  export PALYRA_COMPONENT_SUITE
}

step "shell scripts" lint_scripts
step "solver" find_solver
step "component-model scripts" find_component_suite
step "formatting" cargo fmt --all --check
# A first build takes minutes, during which whoever is waiting sees what cargo does.
quiet=()
[ "${CI:-}" != true ] || quiet=(--quiet)
step "lints" cargo clippy --workspace --all-targets "${quiet[@]}" -- -D warnings
# The system tests run the real programs, so these are built first.
step "programs" cargo build --workspace --bins "${quiet[@]}"
step "tests" run_tests
summary=$(count_tests)
case $summary in
  '' | 0*) fail "no test was run" "look at the output of the step \`tests\`" ;;
esac
step "evaluation harness" bash evals/agentdojo/test.sh --quiet
step "everyday tasks" bash evals/everyday/test.sh --quiet
step "documentation tests" cargo test --workspace --doc --quiet
step "generated pages" bash scripts/reference.sh check

say "make test: passed; $summary; $steps steps in $((SECONDS - start)) s"
