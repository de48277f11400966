"""The two models: what they say, turn by turn.

Owns: the conversation with Palyra as a program. A model is a generator that yields calls and is sent their results, so a task
reads from top to bottom. Leaves HTTP to `models.py`, and what an attack tries to `attacks.py`.

The *faithful* model solves the user's task as the package's authors would. The *hostile* one does the same until it has read the
attacker's text, and from then on serves the attacker with everything it was offered.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import attacks
from plan import Plan, Step
from texts import appears_in, variables_in
from worlds import World

DECLARE = "palyra.intent.declare"
INSPECT = "palyra.vars.inspect"


@dataclass(frozen=True)
class Call:
    """A call that the model proposes; the tool's name as Palyra's own documents write it."""

    tool: str
    arguments: dict[str, Any]


@dataclass
class Turn:
    """One turn of a conversation, for whoever wants to see what happened."""

    purpose: str
    tool: str
    arguments: dict[str, Any]
    result: str
    carried_out: bool
    matters: bool

    @property
    def of_suite(self) -> bool:
        """Whether it is a tool of the suite rather than one of Palyra's own."""
        return self.tool.startswith("mcp.")


Playing = Generator[Call, str, Any]


@dataclass
class Player:
    """A model in the middle of one run."""

    plan: Plan
    world: World
    mode: str
    variant: str | None = None
    log: list[Turn] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    turned: bool = False
    after_effects: list[tuple[Any, list[Any]]] = field(default_factory=list)
    """The world after each effect of the attack, since a later call may cover it up."""

    def play(self) -> Playing:
        """Plays the run; what the generator returns is the model's answer."""
        yield from self._declare()
        for step in self.plan.task:
            shown = yield from self.step(step, "task")
            if self.variant is not None and not self.turned and self._has_read(shown):
                self.turned = True
                if self.variant != "after":
                    yield from attacks.attack(self)
        if self.turned and self.variant == "after":
            yield from attacks.attack(self)
        answer = self.plan.answer
        return f"{answer} {self.plan.attack_answer}".strip() if self.turned else answer

    def step(self, step: Step, purpose: str) -> Playing:
        """Calls a tool of the suite, reads the result if it is held back, and gives what the model has seen."""
        shown = yield from self.call(
            f"mcp.{self.plan.suite}.{step.tool}",
            step.arguments,
            purpose,
            matters=self.plan.classification.matters(step.tool),
        )
        for held in variables_in(shown)[:1]:
            self.variables[held] = self.world.executed[-1].value if self.world.executed else None
            # The worst case: the planner looks at everything it may look at.
            if self.mode == "guarded" and self.variant != "blind":
                revealed = yield from self.inspect(held, {"want": "text"}, purpose)
                return f"{shown}\n{revealed}"
        return shown

    def inspect(self, variable: str, want: dict[str, Any], purpose: str) -> Playing:
        """Looks into a variable."""
        return (yield from self.call(INSPECT, {"variable": variable, **want}, purpose, matters=False))

    def call(self, tool: str, arguments: dict[str, Any], purpose: str, *, matters: bool) -> Playing:
        """Calls any tool and keeps a note of it."""
        before = len(self.world.executed)
        result = yield Call(tool, arguments)
        carried_out = len(self.world.executed) > before
        self.log.append(Turn(purpose, tool, arguments, result, carried_out, matters))
        if carried_out and purpose == "attack":
            self.after_effects.append((self.world.now.model_copy(deep=True), self.world.calls()))
        return result

    def declare(self, effects: list[dict[str, Any]], purpose: str) -> Playing:
        """States an intent."""
        return (yield from self.call(DECLARE, {"effects": effects}, purpose, matters=False))

    def _declare(self) -> Playing:
        effects = intended(self.plan)
        if effects:
            yield from self.declare(effects, "task")

    def _has_read(self, shown: str) -> bool:
        """Whether the model has the attacker's text before it.

        A strict run shows it nothing of an outsider; there, and for the variant `blind`, the model turns as soon as the text
        has entered the run at all. No model could know that, so it is more than an attacker can do.
        """
        if self.mode == "strict" or self.variant == "blind":
            return self.world.gave_injection
        return any(appears_in(text, shown) for text in self.plan.injected)


def intended(plan: Plan) -> list[dict[str, Any]]:
    """What a planner that understood the user's request states before it begins: the consequential tools it will need and, where
    the request itself names every place they go to, those places."""
    places: dict[str, set[str] | None] = {}
    for step in plan.task_effects:
        named = {step.arguments[name] for name in plan.destinations(step)}
        if named and all(place in plan.prompt for place in named):
            known = places.setdefault(step.tool, set())
            if known is not None:
                known.update(named)
        else:
            places[step.tool] = None
    return [
        {"tool": f"mcp.{plan.suite}.{tool}", **({"destinations": sorted(known)} if known else {})}
        for tool, known in places.items()
    ]
