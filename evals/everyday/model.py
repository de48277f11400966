"""What a task is: a request in a person's words, its set-up, the steps of a good model, what the user authorises, and how one sees that
it is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chat import Call
from mandates import mandate

if TYPE_CHECKING:
    from place import Site


@dataclass(frozen=True)
class Each:
    """Stands for what a tool lists; `ids` are the values that the user means, which the oracle knows and the planner reads."""

    tool: str
    ids: tuple[Any, ...]


@dataclass(frozen=True)
class Effect:
    """An effect outside the workspace that the user's words authorise.

    `targets` are whom or what it affects, `says` is what else the words fix, as they fix it; other arguments are open and may be made
    of the user's words and of what the `sources` hold.
    """

    tool: str
    targets: dict[str, Any] = field(default_factory=dict)
    says: dict[str, Any] = field(default_factory=dict)
    times: int = 1
    sources: tuple[str, ...] = ()

    def mandate(self) -> dict[str, Any]:
        """As a planner states it."""
        arguments = dict(self.says)
        arguments |= {name: {"each": value.tool} for name, value in self.targets.items() if isinstance(value, Each)}
        fixed = {name: value for name, value in self.targets.items() if not isinstance(value, Each)}
        destinations: list[str] = []
        if len(fixed) == 1:
            (value,) = fixed.values()
            destinations = value if isinstance(value, list) else [value]
        else:
            # Destinations say whom a call is for; which of several targets is which is said by name.
            arguments |= fixed
        # Of each of a list means as often as there are members, which a planner cannot know before it has read the list.
        lists = any(isinstance(value, Each) for value in self.targets.values())
        return mandate(self.tool, destinations, arguments, 1 if lists else self.times, self.sources)

    def fits(self, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether a call that was carried out is this effect."""
        return tool == self.tool and all(
            _is(wanted, arguments.get(name)) for name, wanted in (*self.targets.items(), *self.says.items())
        )


def _is(wanted: Any, value: Any) -> bool:
    match wanted:
        case Each(ids=ids):
            return value in ids
        case str() if "{}" in wanted:
            pattern = re.escape(wanted).replace(re.escape("{}"), ".+")
            return isinstance(value, str) and re.fullmatch(pattern, value, re.DOTALL) is not None
        case _:
            return wanted == value


@dataclass(frozen=True)
class Step:
    """A call of the good model. `looks` says whether it reads a result that is held back."""

    call: Call
    looks: bool = True
    may_fail: bool = False


@dataclass(frozen=True)
class Task:
    """One everyday task."""

    name: str
    request: str
    steps: Callable[[Site], list[Step]]
    servers: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    before: Callable[[Site], None] = lambda site: None
    done: Callable[[Site], bool] = lambda site: True
    addresses: tuple[str, ...] = ()
    """Pages of the intranet that the request names."""
    person: str = ""
    """What the user left for a person to decide, if anything; then a question is right."""
    reviewed: str = ""
    """What the operator changed in a proposed classification, and why."""
    review: Callable[[str, str], str] = lambda server, proposal: proposal
