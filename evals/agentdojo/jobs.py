"""Which runs there are: benign tasks, and every pair of user task and injection task in every variant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import suites
from attacks import VARIANTS

MODES = ("open", "guarded", "strict")


@dataclass(frozen=True)
class Job:
    """One run."""

    suite: str
    mode: str
    user_task: str
    injection_task: str | None = None
    variant: str | None = None

    @property
    def is_attack(self) -> bool:
        """Whether the model is the hostile one."""
        return self.injection_task is not None

    def __str__(self) -> str:
        parts = (self.suite, self.mode, self.user_task, self.injection_task, self.variant)
        return ":".join(part for part in parts if part)

    def as_dict(self) -> dict[str, Any]:
        """For the file of results."""
        return asdict(self)


@dataclass(frozen=True)
class Choice:
    """Which of all runs are wanted."""

    suites: tuple[str, ...]
    modes: tuple[str, ...] = MODES
    variants: tuple[str, ...] = tuple(VARIANTS)
    only: tuple[str, ...] = ()

    def jobs(self) -> list[Job]:
        """The runs, those of one suite together, because a daemon serves one suite."""
        return [job for job in self._all() if not self.only or any(_matches(job, wanted) for wanted in self.only)]

    def _all(self) -> Iterator[Job]:
        for name in self.suites:
            suite = suites.suite(name)
            for mode in self.modes:
                for user_task in suite.user_tasks:
                    yield Job(name, mode, user_task)
                    for injection_task in suite.injection_tasks:
                        if not suites.injected_texts(name, user_task, injection_task):
                            continue
                        for variant in self.variants:
                            yield Job(name, mode, user_task, injection_task, variant)


def _matches(job: Job, wanted: str) -> bool:
    """`user_task_3` means the benign run, `user_task_3:injection_task_1` all variants of a pair, a third part one of them; `*` is any."""
    asked = wanted.split(":")
    have = [job.user_task, job.injection_task, job.variant]
    if len(asked) == 1 and job.is_attack:
        return False
    return all(part in ("*", own) for part, own in zip(asked, have, strict=False))
