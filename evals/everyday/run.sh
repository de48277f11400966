#!/usr/bin/env bash
# Builds the shipped programs and runs the everyday tasks on them; arguments go to evaluate.py.
# PALYRA_BIN names a folder with programs that are built already.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
made=$("$here/setup.sh")
{ read -r python; read -r PALYRA_EVALS_NODE; } <<<"$made"
export PALYRA_EVALS_NODE
# shellcheck source-path=SCRIPTDIR source=../common/programs.sh
source "$here/../common/programs.sh"
use_programs "$@"
exec "$python" -B "$here/evaluate.py" "$@"
