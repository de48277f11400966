#!/usr/bin/env bash
# Makes the Python environment of the evaluation, once per set of requirements, and prints the path of its interpreter.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../common/python.sh
source "$here/../common/python.sh"
python_environment "$here/requirements.txt" agentdojo==0.1.35
