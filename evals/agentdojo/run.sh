#!/usr/bin/env bash
# Builds the shipped programs and runs the evaluation on them; arguments go to evaluate.py.
# PALYRA_BIN names a folder with programs that are built already.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
python=$("$here/setup.sh")
if [ -z "${PALYRA_BIN:-}" ]; then
  # shellcheck source-path=SCRIPTDIR source=../../scripts/lib.sh
  source "$here/../../scripts/lib.sh"
  use_build_cache
  say "building the release profile"
  cargo build --release --quiet --bin palyra --bin palyrad
  PALYRA_BIN=$CARGO_TARGET_DIR/release
fi
export PALYRA_BIN
exec "$python" -B "$here/evaluate.py" "$@"
