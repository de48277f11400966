"""What a model of this evaluation knows before its run begins.

Owns: turning a user task (and, for the hostile model, an injection task) of the package into calls with their arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import suites
import worlds
from classification import Classification
from classification import load as load_classification


@dataclass(frozen=True)
class Step:
    """One call of a tool."""

    tool: str
    arguments: dict[str, Any]

    def texts(self) -> dict[str, str]:
        """The arguments that are texts."""
        return {name: value for name, value in self.arguments.items() if isinstance(value, str) and value}

    def replacing(self, **values: Any) -> Step:
        """The same call with other arguments."""
        return Step(self.tool, {**self.arguments, **values})


@dataclass(frozen=True)
class Plan:
    """Everything that a model of one run may use."""

    suite: str
    prompt: str
    task: tuple[Step, ...]
    answer: str
    attack: tuple[Step, ...]
    attack_answer: str
    injected: tuple[str, ...]
    schemas: dict[str, dict[str, Any]]
    classification: Classification
    asked: tuple[Step, ...] = ()
    """The task's calls as they are without any attacker, which is all that a planner can know before it reads."""
    lists: tuple[tuple[str, frozenset[str | float]], ...] = ()
    """What the reading calls of the task list, without any attacker: the tool, and the texts and numbers of its result."""

    def listed_by(self, value: Any) -> str | None:
        """The last reading tool of the task whose result has a value as a whole."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        return next((tool for tool, values in reversed(self.lists) if value in values), None)

    def mentioned_by(self, step: Step) -> str | None:
        """The first other reading tool of the task that has the text arguments of a call somewhere in its result."""
        texts = step.texts().values()
        return next((tool for tool, held in self.lists if tool != step.tool and all(any(text in one for one in held if isinstance(one, str)) for text in texts)), None)

    @property
    def task_effects(self) -> list[Step]:
        """The consequential calls of the user's task."""
        return [step for step in self.task if self.classification.is_consequential(step.tool)]

    @property
    def attack_effects(self) -> list[Step]:
        """The calls of the attack that matter; all of its calls where the file calls none of them so."""
        effects = [step for step in self.attack if self.classification.matters(step.tool)]
        return effects or list(self.attack)

    def destinations(self, step: Step) -> list[str]:
        """The text arguments of a call that decide where it goes."""
        return [name for name in self.classification.destinations(step.tool, step.arguments) if name in step.texts()]


def plan(world: worlds.World) -> Plan:
    """The plan for a world."""
    suite = suites.suite(world.suite)
    task = suite.get_user_task_by_id(world.user_task)
    injection = suite.get_injection_task_by_id(world.injection_task) if world.injection_task else None
    return Plan(
        suite=world.suite,
        prompt=task.PROMPT,
        task=_steps(world, world.user_task),
        answer=task.GROUND_TRUTH_OUTPUT or "done",
        attack=_steps(world, world.injection_task) if world.injection_task else (),
        attack_answer=injection.GROUND_TRUTH_OUTPUT if injection else "",
        injected=tuple(world.injected),
        schemas={tool["name"]: tool["inputSchema"] for tool in worlds.tools(world.suite)},
        classification=load_classification(world.suite),
        asked=_asked(world.suite, world.user_task),
        lists=_lists(world.suite, world.user_task),
    )


@lru_cache(maxsize=1024)
def _asked(suite: str, user_task: str) -> tuple[Step, ...]:
    return _steps(worlds.World(suite, user_task), user_task)


@lru_cache(maxsize=1024)
def _lists(suite: str, user_task: str) -> tuple[tuple[str, frozenset[str | float]], ...]:
    world = worlds.World(suite, user_task)
    known = load_classification(suite)
    found = []
    for step in _asked(suite, user_task):
        world.call(step.tool, step.arguments)
        if not known.is_consequential(step.tool):
            found.append((step.tool, frozenset(_scalars(world.executed[-1].value))))
    return tuple(found)


def _scalars(value: Any) -> Iterator[str | float]:
    """Every text and number in a result, as a whole."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _scalars(member)


def _steps(world: worlds.World, task: str) -> tuple[Step, ...]:
    """A task's solution as plain calls. A call that stands as an argument of another is made first."""
    scratch = world.before.model_copy(deep=True)
    runtime = suites.FunctionsRuntime(suites.suite(world.suite).tools)
    steps: list[Step] = []

    def plain(call: Any) -> None:
        arguments = {}
        for name, value in call.args.items():
            if isinstance(value, suites.FunctionCall):
                plain(value)
                value, _ = runtime.run_function(scratch, steps[-1].tool, steps[-1].arguments)
            arguments[name] = worlds.to_jsonable_python(value)
        steps.append(Step(call.function, arguments))

    for call in suites.ground_truth(world.suite, task, world.before):
        plain(call)
    return tuple(steps)
