#!/usr/bin/env bash
# Makes sure that an SMT solver is there for the tests of `palyra policy prove`, and prints its path. Silent otherwise.
# Taken are, in this order: PALYRA_SMT_SOLVER, the copy in the cache, and a fresh copy of the z3 that PyPI carries. A z3 of the system is
# not taken: Debian's is older than the symbolic compiler needs.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

version=5.4.0.0
cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra/z3-$version
solver=${PALYRA_SMT_SOLVER:-$cache/bin/z3}

if [ ! -x "$solver" ]; then
  [ -z "${PALYRA_SMT_SOLVER:-}" ] || fail "PALYRA_SMT_SOLVER names \`$solver\`, which cannot be run" "name z3 or cvc5 by its full path"
  has python3 || fail "python3 is missing, which brings the SMT solver" "install it, or name a z3 with PALYRA_SMT_SOLVER"
  say "installing z3 $version"
  log=$(mktemp)
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/new-XXXXXX")
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$fresh" "z3-solver==$version" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -rf "$log" "$fresh"
    fail "could not install z3" "connect to the network, or name a z3 with PALYRA_SMT_SOLVER"
  fi
  rm -f "$log"
  # Only the program is kept. Whoever comes second finds the same program and leaves it.
  mkdir -p "$cache/bin"
  mv -f "$fresh/bin/z3" "$cache/bin/z3"
  rm -rf "$fresh"
fi
"$solver" --version >/dev/null 2>&1 || fail "the SMT solver \`$solver\` does not start" "remove it, or name another with PALYRA_SMT_SOLVER"
printf '%s\n' "$solver"
