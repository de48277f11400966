#!/usr/bin/env bash
# Checks the dependencies against deny.toml: licences, banned crates, sources. Advisories need a database from the network
# and are checked by the workflow.
# Usage: scripts/deny.sh [CHECK…]
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

tools=${XDG_CACHE_HOME:-$HOME/.cache}/palyra/tools
PATH=$PATH:$tools/bin
if ! has cargo-deny; then
  say "installing cargo-deny into $tools (a few minutes, once)"
  cargo install --quiet --locked --root "$tools" cargo-deny ||
    fail "could not install cargo-deny" "connect to the network, or put cargo-deny on the PATH"
fi
[ $# -gt 0 ] || set -- bans licenses sources
exec cargo deny --all-features check --hide-inclusion-graph "$@"
