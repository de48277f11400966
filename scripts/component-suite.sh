#!/usr/bin/env bash
# Makes the public scripts of the component model available, for the test that runs them, and prints their folder. Silent otherwise, and without any network
# once they are there. They come with the crate wasm-tools, in one version, checked by its digest. What cannot be fetched is said in one line, and nothing is
# printed: the test then says that it was left out.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

version=1.254.0
digest=59219ba94cdf6a06b22e59a23a34711d7b37b3fec642e79d0c86b1770c27569d
cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/palyra
folder=$cache/wasm-tools-$version
scripts=$folder/tests/cli/component-model

if [ ! -d "$scripts" ]; then
  mkdir -p "$cache"
  fresh=$(mktemp -d "$cache/new-XXXXXX")
  trap 'rm -rf "$fresh"' EXIT
  if ! curl --silent --fail --location --max-time 60 --output "$fresh/crate" "https://static.crates.io/crates/wasm-tools/wasm-tools-$version.crate"; then
    say "the scripts of the component model: not available (crates.io cannot be reached)"
    exit 0
  fi
  printf '%s  %s\n' "$digest" "$fresh/crate" | sha256sum --check --status ||
    fail "the crate wasm-tools $version is not the one that was looked at" "somebody changed it on its way; do not use it"
  tar xzf "$fresh/crate" -C "$fresh"
  # Whoever comes second finds the same scripts and leaves them.
  mv -T "$fresh/wasm-tools-$version" "$folder" 2>/dev/null || [ -d "$scripts" ]
fi
printf '%s\n' "$scripts"
