"""Short names for the calls of a good model."""

from __future__ import annotations

from typing import Any

from chat import Call
from model import Step


def run(*argv: str, may_fail: bool = False, **extra: Any) -> Step:
    """Runs a program."""
    return Step(Call("palyra.process.run", {"argv": list(argv), **extra}), may_fail=may_fail)


def shell(script: str, may_fail: bool = False) -> Step:
    """Runs a script of a shell."""
    return run("sh", "-c", script, may_fail=may_fail, shell=True)


def read(path: str) -> Step:
    """Reads a file."""
    return Step(Call("palyra.fs.read", {"path": path}))


def write(path: str, content: str) -> Step:
    """Writes a file."""
    return Step(Call("palyra.fs.write", {"path": path, "content": content}))


def edit(path: str, old: str, new: str) -> Step:
    """Replaces a text in a file."""
    return Step(Call("palyra.fs.edit", {"path": path, "old": old, "new": new}))


def search(pattern: str, **extra: Any) -> Step:
    """Searches files."""
    return Step(Call("palyra.fs.search", {"pattern": pattern, **extra}))


def listing(path: str = ".") -> Step:
    """Lists a directory."""
    return Step(Call("palyra.fs.list", {"path": path}))


def fetch(url: str) -> Step:
    """Reads an address."""
    return Step(Call("palyra.http.fetch", {"url": url}))


def call(tool: str, **arguments: Any) -> Step:
    """Reads with a tool of a server."""
    return Step(Call(f"mcp.{tool}", arguments))


def act(tool: str, **arguments: Any) -> Step:
    """Changes something with a tool of a server; nobody needs to read what it answers."""
    return Step(Call(f"mcp.{tool}", arguments), looks=False)
