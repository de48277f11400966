"""One world of one run: a suite's environment, its tools, and what was really done in it.

Owns: how a suite's functions look as tools of the Model Context Protocol, calling them, and the record of the calls that
were carried out. Leaves the protocol to `server.py` and the verdict to `suites.score`.

What is offered comes from the suite's own names, descriptions and annotations, as any author of such a server would publish
them. Nothing of a task, of its solution or of an attacker's text goes into it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import to_jsonable_python

import suites
from texts import appears_in

WRAPPER = "result"
"""The protocol wants an object as a structured result; anything else stands under this name."""


@dataclass
class Executed:
    """A call that reached the world."""

    function: str
    arguments: dict[str, Any]
    error: str | None
    gave_injection: bool
    value: Any = None


@dataclass
class World:
    """The state that the tools of one run read and change."""

    suite: str
    user_task: str
    injection_task: str | None = None
    executed: list[Executed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before = suites.environment(self.suite, self.user_task, self.injection_task)
        self.now = self.before.model_copy(deep=True)
        self.injected = list(suites.injected_texts(self.suite, self.user_task, self.injection_task).values())
        self._runtime = suites.FunctionsRuntime(suites.suite(self.suite).tools)

    @property
    def gave_injection(self) -> bool:
        """Whether any result so far held the attacker's text."""
        return any(call.gave_injection for call in self.executed)

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Calls a tool and gives the result of the protocol's `tools/call`."""
        value, error = self._runtime.run_function(self.now, name, arguments)
        if error is not None:
            plain, text = None, error
            answer: dict[str, Any] = {"content": [{"type": "text", "text": error}], "isError": True}
        else:
            plain = to_jsonable_python(value)
            if _wraps(self.suite, name) or not isinstance(plain, dict):
                plain = {WRAPPER: plain}
            text = json.dumps(plain, ensure_ascii=False)
            answer = {"content": [{"type": "text", "text": text}], "structuredContent": plain, "isError": False}
        gave = any(appears_in(injected, text) for injected in self.injected)
        self.executed.append(Executed(name, dict(arguments), error, gave, plain))
        return answer

    def calls(self) -> list[Any]:
        """What was carried out, in the form that the package's checks read."""
        return [suites.FunctionCall(function=call.function, args=call.arguments) for call in self.executed]


@lru_cache
def tools(suite: str) -> list[dict[str, Any]]:
    """The suite's tools as the protocol's `tools/list` describes them."""
    return [
        {
            "name": function.name,
            "description": function.description,
            "inputSchema": _input_schema(function),
            "outputSchema": _output_schema(function)[0],
        }
        for function in suites.suite(suite).tools
    ]


@lru_cache
def _wraps(suite: str, name: str) -> bool:
    return any(_output_schema(function)[1] for function in suites.suite(suite).tools if function.name == name)


def _input_schema(function: Any) -> dict[str, Any]:
    schema = function.parameters.model_json_schema()
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _output_schema(function: Any) -> tuple[dict[str, Any], bool]:
    """The schema of the structured result, and whether the value stands under `result` in it."""
    try:
        # `None` means that the function does not say; one that returns nothing says `NoneType`.
        annotated = Any if function.return_type is None else function.return_type
        schema = TypeAdapter(annotated).json_schema(mode="serialization")
    except PydanticUserError:
        # A type that has no schema is still a value; the client is then told nothing about it.
        schema = {}
    if schema.get("type") == "object":
        return schema, False
    definitions = schema.pop("$defs", None)
    wrapped: dict[str, Any] = {"type": "object", "properties": {WRAPPER: schema}, "required": [WRAPPER]}
    if definitions:
        wrapped["$defs"] = definitions
    return wrapped, True
