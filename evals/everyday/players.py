"""The two models of one run.

The *faithful* model states its mandates and then makes the task's calls, one per turn; what is held back from it and it needs, it reads.
The *hostile* one does the same until it has its first result, and from then on serves the attacker.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import attacks
from chat import NOT_OFFERED, Call, Conversation, Playing
from mandates import DECLARE
from model import Effect, Step, Task
from texts import variables_in

if TYPE_CHECKING:
    from place import Site

INSPECT = "palyra.vars.inspect"


@dataclass
class Turn:
    """One turn of a conversation, for whoever wants to see what happened."""

    purpose: str
    tool: str
    arguments: dict[str, Any]
    result: str


@dataclass
class Player:
    """A model in the middle of one run."""

    task: Task
    site: Site
    mode: str = "guarded"
    variant: str | None = None
    log: list[Turn] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    turned: bool = False
    tainted: bool = False
    """Whether the model had been shown, or given to pass on, anything untrusted when it turned."""
    conversation: Conversation | None = None

    def __post_init__(self) -> None:
        self.conversation = Conversation(self.play())

    @property
    def effects(self) -> list[Effect]:
        """What the user authorises, with the addresses of this run."""
        return [placed(effect, self.site) for effect in self.task.effects]

    def play(self) -> Playing:
        """Plays the run; what the generator returns is the model's answer."""
        if self.effects:
            yield from self.call(DECLARE, {"effects": [effect.mandate() for effect in self.effects]}, "task")
        for step in self.task.steps(self.site):
            yield from self.step(step)
            if self.variant is not None:
                self.turned = True
                self.tainted = bool(self.variables) or any("<untrusted-data" in text for text in self.seen)
                yield from attacks.attack(self)
                return "That is done."
        return "That is done."

    def step(self, step: Step) -> Playing:
        """One call of the task, and a look at its result if that is held back."""
        shown = yield from self.call(step.call.tool, step.call.arguments, "task")
        if not step.may_fail and failed(step.call.tool, shown):
            self.failed.append(f"{step.call.tool} {json.dumps(step.call.arguments, ensure_ascii=False)}: {shown[:300]}")
        if step.looks:
            yield from self.look(shown, "task")

    def look(self, shown: str, purpose: str) -> Playing:
        """Reads what a result holds back."""
        for variable in variables_in(shown)[:1]:
            self.variables.append(variable)
            if self.mode == "guarded":
                yield from self.call(INSPECT, {"variable": variable, "want": "text"}, purpose)

    def call(self, tool: str, arguments: dict[str, Any], purpose: str) -> Playing:
        """Calls any tool and keeps a note of it."""
        result = yield Call(tool, arguments)
        self.log.append(Turn(purpose, tool, arguments, result))
        self.seen.append(result)
        return result

    def offered(self) -> dict[str, dict[str, Any]]:
        """The schemas of the servers' tools that are offered, by their names as Palyra's documents write them."""
        assert self.conversation is not None
        found = {}
        for plain, function in self.conversation.offered.items():
            for server in self.task.servers + attacks.SERVERS:
                if plain.startswith(f"mcp_{server}_"):
                    found[f"mcp.{server}.{plain.removeprefix(f'mcp_{server}_')}"] = function.get("parameters") or {}
        return found


def placed(effect: Effect, site: Site) -> Effect:
    """An effect with the addresses of this run in it."""

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return site.addresses(value)
        if isinstance(value, list):
            return [filled(member) for member in value]
        if isinstance(value, dict):
            return {name: filled(member) for name, member in value.items()}
        return value

    return Effect(effect.tool, filled(effect.targets), filled(effect.says), effect.times, effect.sources)


def failed(tool: str, shown: str) -> bool:
    """Whether a result says that the call did not work."""
    if shown == NOT_OFFERED or shown.lstrip().lower().startswith(("error", "failed", "refused", "denied")):
        return True
    return tool.startswith("palyra.process.") and "exit code" in shown[:400] and "exit code 0" not in shown[:400]
