"""Loads the suites of the public `agentdojo` package, without its model clients.

Owns: which version of the suites is used, the environments of a run, and the package's own scoring. Leaves serving the
tools to `server.py` and playing the tasks to `players.py`.

The package imports the client libraries of five model vendors on the way to its suites. None of them is needed to load a
task, to call a tool or to score, so the two modules that pull them in are replaced before the import. What the suites
themselves need is listed in `requirements.txt`.
"""

from __future__ import annotations

import copy
import importlib.util
import io
import sys
import types
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import Any

BENCHMARK_VERSION = "v1.2.2"
"""The version of the suites that every figure is about."""


def _without_model_clients() -> None:
    """Registers stand-ins for the modules that import vendors' client libraries."""
    if "agentdojo.agent_pipeline" in sys.modules:
        return
    found = importlib.util.find_spec("agentdojo")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("error: the package `agentdojo` is not installed\nhint: run evals/agentdojo/setup.sh")
    root = Path(next(iter(found.submodule_search_locations)))
    for name, folder in (("agent_pipeline", "agent_pipeline"), ("agent_pipeline.llms", "agent_pipeline/llms")):
        package = types.ModuleType(f"agentdojo.{name}")
        package.__path__ = [str(root / folder)]
        sys.modules[package.__name__] = package
    google = types.ModuleType("agentdojo.agent_pipeline.llms.google_llm")
    google.EMPTY_FUNCTION_NAME = "<empty-function>"
    sys.modules[google.__name__] = google


_without_model_clients()

from agentdojo.attacks.base_attacks import FixedJailbreakAttack  # noqa: E402
from agentdojo.attacks.important_instructions_attacks import ImportantInstructionsAttack  # noqa: E402
from agentdojo.functions_runtime import Function, FunctionCall, FunctionsRuntime  # noqa: E402
from agentdojo.task_suite.load_suites import get_suite, get_suites  # noqa: E402
from agentdojo.types import text_content_block_from_string  # noqa: E402

__all__ = [
    "BENCHMARK_VERSION",
    "Function",
    "FunctionCall",
    "FunctionsRuntime",
    "environment",
    "ground_truth",
    "injected_texts",
    "score",
    "suite",
    "suite_names",
]


def suite_names() -> list[str]:
    """All suites of the package."""
    return sorted(get_suites(BENCHMARK_VERSION))


@lru_cache
def suite(name: str) -> Any:
    """One suite, in the version that is measured."""
    if name not in get_suites(BENCHMARK_VERSION):
        raise SystemExit(f"error: there is no suite `{name}`\nhint: choose one of {', '.join(suite_names())}")
    return get_suite(BENCHMARK_VERSION, name)


@lru_cache
def _attack(name: str) -> FixedJailbreakAttack:
    """The package's attack "important instructions", addressed to nobody in particular."""
    return FixedJailbreakAttack(ImportantInstructionsAttack._JB_STRING, suite(name), None)


@lru_cache(maxsize=4096)
def _injections(name: str, user_task: str, injection_task: str) -> tuple[tuple[str, str], ...]:
    try:
        texts = _attack(name).attack(
            suite(name).get_user_task_by_id(user_task), suite(name).get_injection_task_by_id(injection_task)
        )
    except ValueError:
        # The package says so when no text that an outsider writes is read on the way of this task.
        return ()
    return tuple(sorted(texts.items()))


def injected_texts(name: str, user_task: str, injection_task: str | None) -> dict[str, str]:
    """What the attacker has written, by the place where it stands. Empty where a task reads nothing of an outsider."""
    return dict(_injections(name, user_task, injection_task)) if injection_task else {}


@lru_cache(maxsize=64)
def _loaded(name: str, user_task: str, injection_task: str | None) -> Any:
    loaded = suite(name).load_and_inject_default_environment(injected_texts(name, user_task, injection_task))
    return suite(name).get_user_task_by_id(user_task).init_environment(loaded)


def environment(name: str, user_task: str, injection_task: str | None) -> Any:
    """A fresh world in which a task begins, with the attacker's text in it if there is an injection task."""
    return _loaded(name, user_task, injection_task).model_copy(deep=True)


def ground_truth(name: str, task: str, world: Any) -> list[FunctionCall]:
    """The calls that solve a user task, or that reach the goal of an injection task."""
    known = suite(name).user_tasks.get(task) or suite(name).injection_tasks[task]
    return copy.deepcopy(known.ground_truth(world))


def score(name: str, task: str, answer: str, before: Any, after: Any, calls: list[FunctionCall]) -> bool:
    """The package's own verdict: whether a user task was done, or whether the goal of an injection was reached."""
    known = suite(name).user_tasks.get(task) or suite(name).injection_tasks[task]
    # Some checks print what they miss; that is of no use in a table.
    with redirect_stdout(io.StringIO()):
        return bool(
            suite(name)._check_task_result(known, [text_content_block_from_string(answer)], before, after, calls)
        )
