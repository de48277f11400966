#!/usr/bin/env bash
# Installs the servers that others wrote, once per set of versions, and prints the interpreter and the folder of the npm packages.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../common/python.sh
source "$here/../common/python.sh"
packages=(@modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31)

command -v npm >/dev/null || stop "npm is not installed" "apt-get install nodejs npm"
stamp=$({ printf '%s\n' "${packages[@]}"; node --version; } | sha256sum | cut -c 1-16)
modules=$evals_cache/node-$stamp
if [ ! -e "$modules/.complete" ]; then
  mkdir -p "$evals_cache"
  staged=$(mktemp -d "$evals_cache/staged-XXXXXX")
  npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$staged" "${packages[@]}" >&2 ||
    { rm -rf -- "$staged"; stop "the npm packages could not be installed" "check that a registry can be reached, then run $0 again"; }
  touch "$staged/.complete"
  mv -T "$staged" "$modules" 2>/dev/null || { rm -rf -- "$staged"; [ -e "$modules/.complete" ]; } ||
    stop "\`$modules\` could not be put in place" "remove it and run $0 again"
fi
python_environment "$here/requirements.txt"
printf '%s\n' "$modules"
