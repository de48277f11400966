"""How a planner states its mandates: the one place that knows the shape of `palyra.intent.declare`.

    {"effects": [{"tool": "mcp.mail.send_message", "destinations": ["bob@example.org"], "arguments": {"subject": "Lunch"},
                  "times": 1, "from": ["mcp.calendar"]}]}

`destinations` are targets as the user wrote them; `arguments` holds, by name, what the user's text says an argument must be: a value, a
template such as `"Upgrade {}"`, or `{"each": TOOL}` for a record that a tool lists. An argument that is left out is open. `times` is how
often, `from` what open content may be made of: `workspace`, `mcp.SERVER`, `host.NAME`.
"""

from __future__ import annotations

from typing import Any

DECLARE = "palyra.intent.declare"


def mandate(
    tool: str,
    destinations: list[str] | None = None,
    arguments: dict[str, Any] | None = None,
    times: int = 1,
    sources: tuple[str, ...] = (),
) -> dict[str, Any]:
    """One intended effect."""
    stated: dict[str, Any] = {"tool": tool}
    if destinations:
        stated["destinations"] = destinations
    if arguments:
        stated["arguments"] = arguments
    if times != 1:
        stated["times"] = times
    if sources:
        stated["from"] = list(sources)
    return stated


def fitted(tool: str, arguments: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call as the offered schema wants them. A model reads that schema, so it does not state what a build of Palyra
    has no field for; effects of the same tool that are then alike become one."""
    if tool != DECLARE:
        return arguments
    known = _properties(schema)
    if not known:
        return arguments
    kept: list[dict[str, Any]] = []
    for effect in arguments.get("effects", []):
        narrowed = {name: value for name, value in effect.items() if name in known}
        if narrowed not in kept:
            kept.append(narrowed)
    return {**arguments, "effects": kept}


def _properties(schema: dict[str, Any]) -> set[str]:
    """The fields of one effect, wherever the schema keeps its description."""
    items = schema.get("properties", {}).get("effects", {}).get("items", {})
    while "$ref" in items:
        found: Any = schema
        for part in items["$ref"].removeprefix("#/").split("/"):
            found = found.get(part, {}) if isinstance(found, dict) else {}
        items = found
    return set(items.get("properties", {}))
