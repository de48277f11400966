#!/usr/bin/env bash
# Builds the shipped programs and runs the evaluation on them; arguments go to evaluate.py.
# PALYRA_BIN names a folder with programs that are built already.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
python=$("$here/setup.sh")
# shellcheck source-path=SCRIPTDIR source=../common/programs.sh
source "$here/../common/programs.sh"
use_programs "$@"
exec "$python" -B "$here/evaluate.py" "$@"
