"""A stdio server of the Model Context Protocol that offers the tools of one suite.

    server.py --control SOCKET                              the world of whichever run a worker has under way
    server.py --suite slack [--user-task user_task_0] [--injection-task injection_task_1]
                                                            a world of its own, to try things by hand

Speaks just what a client of tools needs: `initialize`, `ping`, `tools/list`, `tools/call`. Each message is one line. A call that
the suite's function refuses is a result with `isError`; what the protocol itself forbids is a JSON-RPC error.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, BinaryIO

from control import Backend, Line

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol in which these four methods are the same; the newest first."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603


class RpcError(Exception):
    """Something the protocol itself refuses."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Local:
    """A world in this process."""

    def __init__(self, suite: str, user_task: str, injection_task: str | None) -> None:
        # Only this way of running needs the package, whose import takes seconds.
        import worlds

        self._listed = worlds.tools(suite)
        self.world = worlds.World(suite, user_task, injection_task)

    def tools(self) -> list[dict[str, Any]]:
        return self._listed

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.world.call(name, arguments)


def answer(backend: Backend, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one request."""
    match method:
        case "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "agentdojo", "version": "1"},
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": backend.tools()}
        case "tools/call":
            name, arguments = params.get("name"), params.get("arguments") or {}
            if not isinstance(name, str) or not isinstance(arguments, dict):
                raise RpcError(INVALID_PARAMS, "`name` must be a text and `arguments` an object")
            if name not in {tool["name"] for tool in backend.tools()}:
                raise RpcError(INVALID_PARAMS, f"there is no tool `{name}`")
            return backend.call(name, arguments)
        case _:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method `{method}`")


def reply(backend: Backend, line: bytes) -> dict[str, Any] | None:
    """The message that answers a line, if it asks for one."""
    identifier = None
    try:
        try:
            message = json.loads(line)
        except ValueError as error:
            raise RpcError(PARSE_ERROR, f"not JSON: {error}") from error
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            raise RpcError(INVALID_REQUEST, "a request needs a `method`")
        if "id" not in message:
            return None
        identifier = message["id"]
        params = message.get("params") or {}
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "`params` must be an object")
        return {"jsonrpc": "2.0", "id": identifier, "result": answer(backend, message["method"], params)}
    except RpcError as error:
        return {"jsonrpc": "2.0", "id": identifier, "error": {"code": error.code, "message": str(error)}}
    except Exception as error:  # a broken suite must show as an answer, not as silence
        return {"jsonrpc": "2.0", "id": identifier, "error": {"code": INTERNAL_ERROR, "message": repr(error)}}


def serve(backend: Backend, source: BinaryIO, sink: BinaryIO) -> None:
    """Answers until the client closes the line."""
    for line in source:
        if not line.strip():
            continue
        message = reply(backend, line)
        if message is not None:
            sink.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            sink.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Offers the tools of one AgentDojo suite over stdio.")
    parser.add_argument("--control", metavar="SOCKET", help="serve the world that a worker keeps behind this socket")
    parser.add_argument("--suite", help="serve a world of this suite, kept in this process")
    parser.add_argument("--user-task", default="user_task_0")
    parser.add_argument("--injection-task")
    given = parser.parse_args()
    if (given.control is None) == (given.suite is None):
        parser.error("give either --control or --suite")
    backend = Line(given.control) if given.control else Local(given.suite, given.user_task, given.injection_task)
    serve(backend, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
