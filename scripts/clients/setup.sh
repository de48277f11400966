#!/usr/bin/env bash
# Makes the environment of a client or server that is not ours, once per set of requirements, and prints its path: the
# interpreter of a Python environment, the directory of packages from npm. It lies in ~/.cache/palyra/clients unless
# PALYRA_CLIENTS_CACHE says otherwise.
# Usage: scripts/clients/setup.sh NAME     with the requirements in scripts/clients/NAME.txt, or NAME/package-lock.json
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cache=${PALYRA_CLIENTS_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra/clients}

stop() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

name=${1:-}
python=$here/$name.txt
node=$here/$name
if [ -n "$name" ] && [ -f "$python" ]; then
  requirements=$python
  command -v python3 >/dev/null || stop "python3 is not installed" "apt-get install python3 python3-venv"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || stop "Python 3.11 or newer is needed" "install a newer python3"
  version() { python3 --version; }
elif [ -n "$name" ] && [ -f "$node/package-lock.json" ]; then
  requirements=$node/package-lock.json
  for program in node npm; do
    command -v "$program" >/dev/null || stop "$program is not installed" "apt-get install nodejs npm"
  done
  version() { echo npm; }
else
  stop "there is no client \`$name\`" "name a file of scripts/clients without .txt, or a directory there"
fi

install() {
  if [ "$requirements" = "$python" ]; then
    python3 -m venv "$1" >&2 || stop "the Python environment could not be made" "apt-get install python3-venv"
    "$1/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps -r "$requirements" >&2
  else
    mkdir "$1" && cp "$node/package.json" "$requirements" "$1" &&
      npm --prefix "$1" ci --silent --ignore-scripts --no-audit --no-fund >&2
  fi
}

# The environment is named after what is in it, so a change of versions makes a new one and an old one never half-fits.
stamp=$({ version; cat "$requirements"; } | sha256sum | cut -c 1-16)
made=$cache/$name-$stamp
if [ ! -e "$made/.complete" ]; then
  mkdir -p "$cache"
  staged=$(mktemp -d "$cache/staged-XXXXXX")
  trap 'rm -rf -- "$staged"' EXIT
  install "$staged/made" ||
    stop "the packages could not be installed" "check that a package index can be reached, then run $0 $name again"
  # Nothing in it is called but by its path, so the environment may be moved; another process may have been faster.
  touch "$staged/made/.complete"
  mv -T "$staged/made" "$made" 2>/dev/null || [ -e "$made/.complete" ] ||
    stop "\`$made\` could not be put in place" "remove it and run $0 $name again"
fi
if [ "$requirements" = "$python" ]; then
  printf '%s\n' "$made/bin/python"
else
  printf '%s\n' "$made"
fi
