#!/usr/bin/env bash
# Tests the harness without a daemon.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
python=$(./setup.sh)
exec "$python" -B -m unittest discover --start-directory tests --top-level-directory . "$@"
