#!/usr/bin/env bash
# Tests the harness without a daemon and without anything from a registry.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
# shellcheck source-path=SCRIPTDIR source=../common/python.sh
source ../common/python.sh
need_python
exec python3 -B -m unittest discover --start-directory tests --top-level-directory . "$@"
