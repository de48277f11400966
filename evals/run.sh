#!/usr/bin/env bash
# Runs an evaluation: the one that the first argument names, AgentDojo if it names none. Further arguments go to it.
# Usage: evals/run.sh [agentdojo|everyday] [ARGUMENT…]
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
name=agentdojo
case ${1:-} in
  agentdojo | everyday)
    name=$1
    shift
    ;;
esac
exec bash "$here/$name/run.sh" "$@"
