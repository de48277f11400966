#!/usr/bin/env bash
# Throws bytes at the decoders that strangers can reach, each for some time, and stops at the first that breaks a promise.
# What it finds lies in fuzz/artifacts/<target>; put it into fuzz/seeds/<target> with the repair, so that it is tried for ever after.
# Usage: scripts/fuzz.sh [TARGET|all] [SECONDS]      (60 seconds for each target unless told otherwise)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

wanted=${1:-all}
seconds=${2:-60}
case $seconds in
  '' | *[!0-9]*) fail "\`$seconds\` is not a number of seconds" "type: scripts/fuzz.sh [TARGET|all] [SECONDS]" ;;
esac

cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra
PATH=$PATH:$cache/tools/bin
# libFuzzer's instrumentation is only in nightly compilers.
toolchain=${PALYRA_FUZZ_TOOLCHAIN:-nightly}
rustc "+$toolchain" --version >/dev/null 2>&1 || fail "the toolchain \`$toolchain\` is missing" "type: rustup toolchain install $toolchain --profile minimal"
if ! has cargo-fuzz; then
  say "installing cargo-fuzz into $cache/tools (a minute, once)"
  cargo install --quiet --locked --root "$cache/tools" cargo-fuzz ||
    fail "could not install cargo-fuzz" "connect to the network, or put cargo-fuzz on the PATH"
fi

targets=()
for file in fuzz/fuzz_targets/*.rs; do
  name=$(basename -- "$file" .rs)
  if [ "$wanted" = all ] || [ "$wanted" = "$name" ]; then
    targets+=("$name")
  fi
done
[ ${#targets[@]} -gt 0 ] || fail "there is no fuzz target \`$wanted\`" "one of: $(cd fuzz/fuzz_targets && echo *.rs | sed 's/\.rs//g')"

# No sanitizer: the workspace has no unsafe code of its own, and without one four times as much is tried in the same time. Set
# PALYRA_FUZZ_SANITIZER=address to look at the dependencies as well.
options=(--sanitizer "${PALYRA_FUZZ_SANITIZER:-none}" --target-dir "${PALYRA_FUZZ_TARGET_DIR:-$cache/fuzz-target}")
cd fuzz
cargo "+$toolchain" fuzz build "${options[@]}"
for name in "${targets[@]}"; do
  say "== $name for $seconds s"
  # What earlier runs found interesting is kept outside the checkout; seeds are only read.
  mkdir -p "$cache/fuzz-corpus/$name"
  log=$(mktemp)
  if ! cargo "+$toolchain" fuzz run "${options[@]}" "$name" "$cache/fuzz-corpus/$name" "seeds/$name" -- \
    -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=512 -timeout=10 -print_final_stats=1 >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    rm -f "$log"
    fail "\`$name\` broke a promise" "the input is in fuzz/artifacts/$name"
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  rm -f "$log"
  say "   $runs inputs, peak memory ${peak} MB, nothing found"
done
