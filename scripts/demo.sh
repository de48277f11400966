#!/usr/bin/env bash
# `make run`: builds Palyra and runs one real task on a small workspace of its own, with the built-in planner:
# no key, no network. State and workspace are temporary; an installation that is already there is not touched.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
use_build_cache

# The debug profile: the first build is several times shorter, and the task below spends its time on the disk anyway.
say "building palyra and palyrad (debug profile; the first build takes 5 to 10 minutes, later ones seconds)"
cargo build --bin palyra --bin palyrad
palyra=$CARGO_TARGET_DIR/debug/palyra

demo=$(mktemp -d "${TMPDIR:-/tmp}/palyra-demo.XXXXXX")
workspace=$demo/workspace
export PALYRA_STATE_ROOT=$demo/state
# A free port and the offline planner, whatever the environment says: the demonstration must not reach a paid model.
export PALYRA_DAEMON_HTTP_BIND=127.0.0.1:0 PALYRA_GRPC_BIND=127.0.0.1:0 PALYRA_QUIC_BIND=127.0.0.1:0 PALYRA_MODEL_PROVIDER=offline
unset OPENAI_BASE_URL OPENAI_API_KEY OPENAI_MODEL PALYRA_CONFIG

# What the demonstration shows belongs to standard output; progress and errors do not.
tell() {
  printf '%s\n' "$*"
}

stop_daemon() {
  "$palyra" daemon stop >/dev/null 2>&1 || true
}
trap stop_daemon EXIT

mkdir -p "$workspace/docs"
cat >"$workspace/README.md" <<'TEXT'
# Greenhouse

A small controller for teh greenhouse at the end of the garden.
It opens the vents above 28 degrees and closes them below 22.
TEXT
cat >"$workspace/docs/vents.md" <<'TEXT'
# Vents

Two motors, one per side. Each vent needs nine seconds to open.
TEXT
cat >"$workspace/vents.toml" <<'TEXT'
open_above = 28
close_below = 22
TEXT
cp -r "$workspace" "$demo/before"

task='list files, then read README.md, then replace "teh" with "the" in README.md'
tell ""
tell "\$ palyra run '$task'"
began=$(date +%s%N)
(cd "$workspace" && "$palyra" run "$task")
milliseconds=$((($(date +%s%N) - began) / 1000000))

grep -q 'for the greenhouse' "$workspace/README.md" ||
  fail "the task ended, but README.md was not patched" "look at: PALYRA_STATE_ROOT=$PALYRA_STATE_ROOT $palyra runs tape last"

tell ""
tell "what changed on disk:"
diff -ru --label before/README.md --label after/README.md "$demo/before/README.md" "$workspace/README.md" || true
tell ""
tell "the journal of this run:"
"$palyra" journal verify
tell ""
tell "finished in $milliseconds ms, start of the daemon included. To type these commands yourself:"
tell "  export PATH=$CARGO_TARGET_DIR/debug:\$PATH PALYRA_STATE_ROOT=$PALYRA_STATE_ROOT"
tell "  palyra runs replay last    feed the tape again and compare each action"
tell "  palyra runs undo last      put README.md back"
tell "The README says how to use a real model. Everything of this demonstration is in $demo; delete it when you like."
