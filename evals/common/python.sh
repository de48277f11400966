# Makes Python environments for evaluations; to be sourced.
# They lie in ~/.cache/palyra/evals unless PALYRA_EVALS_CACHE says otherwise.
# shellcheck shell=bash
evals_cache=${PALYRA_EVALS_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra/evals}

stop() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

need_python() {
  command -v python3 >/dev/null || stop "python3 is not installed" "apt-get install python3 python3-venv"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || stop "Python 3.11 or newer is needed" "install a newer python3"
}

# Makes the environment, once per set of requirements, and prints the path of its interpreter. What stands behind the file is installed on top.
# Usage: python_environment REQUIREMENTS [PACKAGE…]
python_environment() {
  local requirements=$1 stamp venv staged pip
  shift
  need_python
  # The environment is named after what is in it, so a change of versions makes a new one and an old one never half-fits.
  stamp=$({ for package in "$@"; do printf '%s\n' "$package"; done; python3 --version; cat "$requirements"; } | sha256sum | cut -c 1-16)
  venv=$evals_cache/venv-$stamp
  if [ ! -e "$venv/.complete" ]; then
    mkdir -p "$evals_cache"
    staged=$(mktemp -d "$evals_cache/staged-XXXXXX")
    # shellcheck disable=SC2064  # the folder of this call
    trap "rm -rf -- '$staged'" EXIT
    python3 -m venv "$staged/venv" >&2 || stop "the Python environment could not be made" "apt-get install python3-venv"
    pip=("$staged/venv/bin/python" -m pip --disable-pip-version-check --quiet install --no-deps)
    { "${pip[@]}" -r "$requirements" && { [ $# -eq 0 ] || "${pip[@]}" "$@"; }; } >&2 ||
      stop "the packages could not be installed" "check that a package index can be reached, then run $0 again"
    # Only the interpreter is ever called by path, so the environment may be moved; another process may have been faster.
    touch "$staged/venv/.complete"
    mv -T "$staged/venv" "$venv" 2>/dev/null || [ -e "$venv/.complete" ] ||
      stop "\`$venv\` could not be put in place" "remove it and run $0 again"
  fi
  printf '%s\n' "$venv/bin/python"
}
