"""The everyday tasks. Each module holds those of one kind."""

from __future__ import annotations

import importlib
from functools import lru_cache

from model import Task

MODULES = ("rust", "git", "python", "node", "shell", "reading", "writing", "across", "servers")


@lru_cache
def all_tasks() -> dict[str, Task]:
    """Every task by its name, in a fixed order."""
    found: dict[str, Task] = {}
    for module in MODULES:
        for task in importlib.import_module(f"tasks.{module}").TASKS:
            if task.name in found:
                raise ValueError(f"two tasks are called {task.name!r}")
            found[task.name] = task
    return found
