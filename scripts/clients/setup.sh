#!/usr/bin/env bash
# Makes the Python environment of a client that is not ours, once per set of requirements, and prints the path of its
# interpreter. It lies in ~/.cache/palyra/clients unless PALYRA_CLIENTS_CACHE says otherwise.
# Usage: scripts/clients/setup.sh NAME     with the requirements in scripts/clients/NAME.txt
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cache=${PALYRA_CLIENTS_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra/clients}

stop() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

requirements=$here/${1:-}.txt
[ -n "${1:-}" ] && [ -f "$requirements" ] || stop "there is no client \`${1:-}\`" "name a file of scripts/clients without .txt"
command -v python3 >/dev/null || stop "python3 is not installed" "apt-get install python3 python3-venv"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || stop "Python 3.11 or newer is needed" "install a newer python3"

# The environment is named after what is in it, so a change of versions makes a new one and an old one never half-fits.
stamp=$({ python3 --version; cat "$requirements"; } | sha256sum | cut -c 1-16)
venv=$cache/$1-$stamp
if [ ! -e "$venv/.complete" ]; then
  mkdir -p "$cache"
  staged=$(mktemp -d "$cache/staged-XXXXXX")
  trap 'rm -rf -- "$staged"' EXIT
  python3 -m venv "$staged/venv" >&2 || stop "the Python environment could not be made" "apt-get install python3-venv"
  "$staged/venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps -r "$requirements" >&2 ||
    stop "the packages could not be installed" "check that a package index can be reached, then run $0 $1 again"
  # Only the interpreter is ever called by path, so the environment may be moved; another process may have been faster.
  touch "$staged/venv/.complete"
  mv -T "$staged/venv" "$venv" 2>/dev/null || [ -e "$venv/.complete" ] ||
    stop "\`$venv\` could not be put in place" "remove it and run $0 $1 again"
fi
printf '%s\n' "$venv/bin/python"
