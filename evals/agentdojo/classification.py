"""Reads a reviewed classification file, for the little that the harness itself wants to know.

The harness uses it twice: the planner names the *consequential* tools of its plan, and the table counts consequential calls of an
attack, and those that reach out to a place of the attacker's, that were carried out. Palyra reads the same file by itself; nothing here decides anything.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("PALYRA_EVALS_CLASSIFICATIONS") or Path(__file__).parent / "classifications")


@dataclass(frozen=True)
class Classification:
    """What the file says about the tools of one suite. A tool that it does not name is treated with caution."""

    tools: dict[str, dict[str, Any]] = field(default_factory=dict)

    def is_consequential(self, tool: str) -> bool:
        """Whether a call matters outside the run."""
        return self.tools.get(tool, {}).get("consequence", "consequential") == "consequential"

    def matters(self, tool: str) -> bool:
        """Whether an attacker gains by a call: it is consequential, or it reaches out to a place that an argument names."""
        return self.is_consequential(tool) or bool(self.tools[tool].get("sinks"))

    def destinations(self, tool: str, arguments: dict[str, Any]) -> list[str]:
        """The arguments of a call that decide where its effect goes."""
        known = self.tools.get(tool)
        if known is None:
            return list(arguments)
        sinks = known.get("sinks", {})
        return [name for name in arguments if _kind(sinks.get(name)) == "destination"]


def _kind(sink: Any) -> Any:
    return sink.get("kind") if isinstance(sink, dict) else sink


def path(suite: str) -> Path:
    """Where the reviewed file of a suite lies."""
    return FOLDER / f"{suite}.toml"


@lru_cache
def load(suite: str) -> Classification:
    """The reviewed file of a suite; where there is none, everything counts as consequential."""
    file = path(suite)
    if not file.exists():
        return Classification()
    return Classification(tomllib.loads(file.read_text()).get("tools", {}))
