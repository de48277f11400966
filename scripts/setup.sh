#!/usr/bin/env bash
# Makes sure that what a command needs is there. Silent when nothing is missing, and then without any network; what is installed is named first, and on a
# terminal the installing program shows its own progress.
# Missing Debian packages are installed when running as root; otherwise the exact command to type is printed.
# Usage: scripts/setup.sh run|test|figures
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

purpose=${1:-run}
case $purpose in
  run | test | figures) ;;
  *) fail "unknown purpose \`$purpose\`" "use run, test or figures" ;;
esac

packages=()
# Adds a Debian package when the program that it brings is missing.
need() {
  has "$1" || packages+=("$2")
}

# Runs an installing program: its output is for whoever sits at a terminal, and otherwise kept for the case that it fails.
# Usage: shown LOG COMMAND…
shown() {
  local log=$1
  shift
  if [ -t 2 ]; then
    "$@" 2>&1 | tee -a "$log" >&2
  else
    "$@" >>"$log" 2>&1
  fi
}

install_packages() {
  local log
  log=$(mktemp)
  if [ "$(id -u)" -ne 0 ] || ! has apt-get; then
    fail "missing: ${packages[*]}" "install them with: sudo apt-get update && sudo apt-get install -y --no-install-recommends ${packages[*]}"
  fi
  say "installing Debian packages: ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # The package lists of a fresh machine are empty or old, so a refusal is answered by fetching them once.
  if ! shown "$log" apt-get install -y --no-install-recommends "${packages[@]}"; then
    say "fetching package lists"
    shown "$log" apt-get update || true
    if ! shown "$log" apt-get install -y --no-install-recommends "${packages[@]}"; then
      tail -n 20 "$log" >&2
      rm -f "$log"
      fail "could not install ${packages[*]}" "connect to the network, or install them by hand with: apt-get install -y ${packages[*]}"
    fi
  fi
  rm -f "$log"
}

need make make
need cc build-essential
if [ "$purpose" = test ]; then
  # The crash tests stop the daemon at chosen system calls.
  need strace strace
  # The egress tests make network namespaces and speak to the proxy with a client that is not ours.
  need ip iproute2
  need curl curl
  # What programs in the sandbox must still be able to do.
  need git git
  need node nodejs
  # The console's types are generated and checked with packages from npm.
  need npm npm
  # Pages of canvases are looked at with a real browser.
  has chromium-browser || has google-chrome || need chromium chromium
  need ps procps
  need unshare util-linux
  # Programs in the sandbox see the system's Python, not one in a home directory.
  [ -x /usr/bin/python3 ] || packages+=(python3)
  # The solver and the evaluation harness come from PyPI.
  need python3 python3
  python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || packages+=(python3-venv)
  python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)
fi
if [ "$purpose" = figures ]; then
  # What tier C is compared with.
  need bwrap bubblewrap
  # The batteries stop the daemon at chosen system calls, and let these fail.
  need strace strace
  need unshare util-linux
fi
[ ${#packages[@]} -eq 0 ] || install_packages

if ! has cargo && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
  fail "cargo is installed but not on the PATH" "type: . \"${CARGO_HOME:-$HOME/.cargo}/env\""
fi
has cargo || fail "Rust is missing" "install it with: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && . \"\$HOME/.cargo/env\""

wanted=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
# With rustup the first call of cargo would fetch the toolchain that rust-toolchain.toml names, without a word about it.
if has rustup && ! rustup toolchain list 2>/dev/null | grep -q "^$wanted"; then
  say "installing Rust $wanted with rustup"
  rustup toolchain install "$wanted" --profile minimal --component clippy,rustfmt >&2 ||
    fail "could not install Rust $wanted" "type: rustup toolchain install $wanted --component clippy,rustfmt"
fi
found=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) || true
[ -n "$found" ] || fail "the Rust toolchain $wanted does not start" "type: rustup toolchain install $wanted --component clippy,rustfmt"
if [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
  fail "Rust $found is too old, $wanted is needed" "type: rustup toolchain install $wanted"
fi

if [ "$purpose" = test ]; then
  for component in clippy fmt; do
    cargo "$component" --version >/dev/null 2>&1 && continue
    package=${component/#fmt/rustfmt}
    has rustup || fail "cargo $component is missing" "install the component $package of your Rust $found"
    say "installing $package"
    rustup --quiet component add "$package" || fail "could not install $package" "type: rustup component add $package"
  done
fi

# Skills are built with guest compilers; a language whose compiler cannot be had is left out.
if [ "$purpose" = test ]; then
  bash scripts/guests.sh
fi
