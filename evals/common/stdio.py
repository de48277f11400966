"""The least of the Model Context Protocol that a server of tools speaks over standard input and output: `initialize`, `ping`,
`tools/list`, `tools/call`.

Each message is one line. A call that a tool refuses is a result with `isError`; what the protocol itself forbids is a JSON-RPC error.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Protocol

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions of the protocol in which these four methods are the same; the newest first."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603


class Backend(Protocol):
    """What a tool server serves."""

    def tools(self) -> list[dict[str, Any]]:
        """The tools, as the protocol lists them."""

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Calls a tool."""


class RpcError(Exception):
    """Something the protocol itself refuses."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def answer(backend: Backend, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one request."""
    match method:
        case "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "evaluation", "version": "1"},
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
    except Exception as error:  # a broken tool must show as an answer, not as silence
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
