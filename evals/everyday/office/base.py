"""What the servers have in common: how a tool is described, where records lie, the log of calls."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}
MOMENT = {"type": "string", "format": "date-time"}

Records = dict[str, Any]
Handler = Callable[..., Any]


class Refused(Exception):
    """The tool cannot do that."""


class Tool:
    """One tool of a server."""

    def __init__(
        self,
        handler: Handler,
        description: str,
        arguments: dict[str, Any],
        *,
        needs: tuple[str, ...] | None = None,
        gives: dict[str, Any] | None = None,
        acts: bool = False,
    ) -> None:
        self.name = handler.__name__
        self.handler = handler
        self.acts = acts
        required = tuple(arguments) if needs is None else needs
        self.listed: dict[str, Any] = {
            "name": self.name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": arguments,
                "required": list(required),
                "additionalProperties": False,
            },
            "annotations": {"readOnlyHint": not acts},
        }
        if gives is not None:
            self.listed["outputSchema"] = gives


def record(**fields: dict[str, Any]) -> dict[str, Any]:
    """The schema of a record with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def listing(of: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list of records."""
    return record(result={"type": "array", "items": of})


def find(records: list[Records], **wanted: Any) -> Records:
    """The one record with these values."""
    for known in records:
        if all(known.get(name) == value for name, value in wanted.items()):
            return known
    shown = ", ".join(f"{name} {value!r}" for name, value in wanted.items())
    raise Refused(f"there is no record with {shown}")


def next_id(records: list[Records], prefix: str) -> str:
    """An id that no record has."""
    numbers = [int(known["id"].removeprefix(prefix)) for known in records if known["id"].startswith(prefix)]
    return f"{prefix}{max(numbers, default=100) + 1}"


class Office:
    """One server: its tools over records in a file."""

    def __init__(self, name: str, tools: list[Tool], data: Path, log: Path) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._data = data / f"{name}.json"
        self._log = log / f"{name}.ndjson"

    def tools(self) -> list[dict[str, Any]]:
        return [tool.listed for tool in self._tools.values()]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        tool = self._tools[name]
        records = json.loads(self._data.read_text()) if self._data.exists() else {}
        try:
            known = tool.listed["inputSchema"]["properties"]
            if unknown := [argument for argument in arguments if argument not in known]:
                raise Refused(f"there is no argument {unknown[0]!r}")
            if missing := [argument for argument in tool.listed["inputSchema"]["required"] if argument not in arguments]:
                raise Refused(f"the argument {missing[0]!r} is missing")
            value = tool.handler(records, **arguments)
        except Refused as refused:
            self._note(name, tool.acts, arguments, str(refused))
            return {"content": [{"type": "text", "text": str(refused)}], "isError": True}
        if tool.acts:
            staged = self._data.with_suffix(".tmp")
            staged.write_text(json.dumps(records, ensure_ascii=False))
            staged.rename(self._data)
        self._note(name, tool.acts, arguments, None)
        value = value if isinstance(value, dict) else {"result": value}
        answer: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps(value, ensure_ascii=False)}], "isError": False}
        if "outputSchema" in tool.listed:
            answer["structuredContent"] = value
        return answer

    def _note(self, name: str, acts: bool, arguments: dict[str, Any], error: str | None) -> None:
        line = json.dumps({"tool": name, "acts": acts, "arguments": arguments, "error": error}, ensure_ascii=False)
        # One write per line, so that the log of a program that is killed has no half lines.
        with self._log.open("ab", buffering=0) as log:
            os.write(log.fileno(), line.encode() + b"\n")
