"""Starts a server that others wrote and notes every call that reaches it: `relay.py LOG COMMAND…`.

Such servers keep no log of their own; the oracle needs one that the product has no part in. Only standard input is read on its way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys


def main() -> int:
    log, command = sys.argv[1], sys.argv[2:]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert child.stdin is not None
    for line in sys.stdin.buffer:
        note(log, line)
        try:
            child.stdin.write(line)
            child.stdin.flush()
        except OSError:
            break
    try:
        child.stdin.close()
    except OSError:
        pass
    try:
        return child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def note(log: str, line: bytes) -> None:
    """Writes a line about a call; other messages are of no interest."""
    try:
        message = json.loads(line)
    except ValueError:
        return
    if not isinstance(message, dict) or message.get("method") != "tools/call":
        return
    params = message.get("params") or {}
    name = params.get("name")
    noted = {"tool": name, "acts": name in ACTING, "arguments": params.get("arguments") or {}, "error": None}
    with open(log, "ab", buffering=0) as file:
        os.write(file.fileno(), json.dumps(noted, ensure_ascii=False).encode() + b"\n")


ACTING = {
    *("write_file", "edit_file", "create_directory", "move_file"),
    *("create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations", "delete_relations"),
    *("git_add", "git_commit", "git_reset", "git_create_branch", "git_checkout"),
}
"""Tools of these servers that change something, from their documentation."""


if __name__ == "__main__":
    sys.exit(main())
