"""The two models: what they say, turn by turn.

Owns: the conversation with Palyra as a program. A model is a generator that yields calls and is sent their results, so a task
reads from top to bottom. Leaves HTTP to `../common/chat.py`, and what an attack tries to `attacks.py`.

The *faithful* model solves the user's task as the package's authors would. The *hostile* one does the same until it has read the
attacker's text, and from then on serves the attacker with everything it was offered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import attacks
from chat import Call, Playing
from mandates import DECLARE, mandate
from plan import Plan, Step
from texts import appears_in, variables_in
from worlds import World

INSPECT = "palyra.vars.inspect"


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
        if self.variant in attacks.FIRST:
            self.turned = True
            yield from attacks.attack(self)
            return f"{self.plan.answer} {self.plan.attack_answer}".strip()
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

    def stated(self) -> list[dict[str, Any]]:
        """The mandates that the user's task needs."""
        return intended(self.plan)

    def _declare(self) -> Playing:
        effects = self.stated()
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
    """What a planner that understood the request states before it begins: the consequential calls it will need, with those of their
    values that the request literally has. A target that the request leaves to a list of the server is stated as one of that list."""
    # Not from the calls of this run's world: what an attacker wrote there may have got into their values.
    found: list[tuple[dict[str, Any], int]] = []
    for step in (step for step in plan.asked if plan.classification.is_consequential(step.tool)):
        places = plan.destinations(step)
        named = [value for name in places for value in _each(step.arguments[name])]
        all_named = bool(named) and all(_is_in(value, plan.prompt) for value in named)
        arguments = {
            name: value
            for name, value in step.arguments.items()
            if name not in places
            and value not in (None, "", [])
            # A flag is what the planner makes of the request, and stands in no text.
            and (isinstance(value, bool) or all(_is_in(part, plan.prompt) for part in _each(value)))
        }
        # An amount that the request does not have is no more than one that it has, or one that a record of the server has.
        for name, value in step.arguments.items():
            if name in places or name in arguments or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if (most := _least_number_from(value, plan.prompt)) is not None:
                arguments[name] = most
            elif (tool := plan.listed_by(value)) is not None:
                arguments[name] = {"each": f"mcp.{plan.suite}.{tool}"}
        # Destinations say whom a call is for; which of several targets is which is said by name.
        if all_named and len(places) > 1:
            arguments |= {name: step.arguments[name] for name in places}
            named, all_named = [], False
        elif not all_named:
            arguments |= {name: value for name in places if _is_in(value := step.arguments[name], plan.prompt)}
            arguments |= {
                name: {"each": f"mcp.{plan.suite}.{tool}"}
                for name in places
                if name not in arguments and (tool := plan.listed_by(step.arguments[name])) is not None
            }
        stated = mandate(f"mcp.{plan.suite}.{step.tool}", [str(value) for value in named] if all_named else None, arguments)
        known = next((at for at, (other, _) in enumerate(found) if other == stated), None)
        if known is None:
            found.append((stated, 1))
        else:
            found[known] = (stated, found[known][1] + 1)
    effects = [{**stated, "times": times} if times > 1 and _is_in(times, plan.prompt) else stated for stated, times in found]
    return effects + _readings(plan)


def _readings(plan: Plan) -> list[dict[str, Any]]:
    """What is read where the request does not say, but sends the planner to a place that does: each link of a channel, say."""
    found: list[dict[str, Any]] = []
    for step in (step for step in plan.asked if not plan.classification.is_consequential(step.tool)):
        arguments = {
            name: {"each": f"mcp.{plan.suite}.{tool}"}
            for name in plan.destinations(step)
            if not _is_in(step.arguments[name], plan.prompt) and (tool := plan.mentioned_by(step)) is not None
        }
        stated = mandate(f"mcp.{plan.suite}.{step.tool}", None, arguments)
        if arguments and stated not in found:
            found.append(stated)
    return found


def _least_number_from(value: float, text: str) -> float | None:
    """The smallest amount in a text that is no less than a value; a share, a part of a longer word and a date are no amounts."""
    amounts = (float(found) for found in re.findall(r"(?<![\w.,-])\d+(?:\.\d+)?(?![\w%]|[.,-]\d)", text))
    return min((amount for amount in amounts if amount >= value), default=None)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_in(value: Any, text: str) -> bool:
    """Whether a value literally stands in a text; a number only as a whole."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return re.search(rf"(?<![\d.,]){re.escape(f'{value:g}')}(?:\.0+)?(?![\d]|[.,]\d)", text) is not None
    return isinstance(value, str) and bool(value) and value in text
