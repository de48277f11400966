"""Which runs there are: every task with the faithful model, and with the hostile one in every variant."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import tasks

MODES = ("open", "guarded", "strict")


@dataclass(frozen=True)
class Job:
    """One run."""

    task: str
    mode: str
    variant: str | None = None

    def __str__(self) -> str:
        return ":".join(part for part in (self.task, self.mode, self.variant) if part)

    def as_dict(self) -> dict[str, Any]:
        """For the file of results."""
        return asdict(self)


IN_TURN = 3
"""With how many of the variants each task is attacked; which ones, goes in turn, so that all variants meet tasks of all kinds."""


def jobs(modes: tuple[str, ...], variants: tuple[str, ...], only: tuple[str, ...] = (), *, each: bool = False) -> list[Job]:
    """The runs of a choice; `only` names tasks, or with `TASK:VARIANT` one variant of them, `*` being any. With `each`, or where
    `only` chooses, every task is attacked with every variant."""
    found = [Job(name, mode) for mode in modes for name in tasks.all_tasks()]
    for mode in modes:
        for number, name in enumerate(tasks.all_tasks()):
            some = variants if each or only else tuple(dict.fromkeys(_turn(variants, number)))
            found += [Job(name, mode, variant) for variant in some]
    return [job for job in found if not only or any(_matches(job, wanted) for wanted in only)]


def _turn(variants: tuple[str, ...], number: int) -> list[str]:
    if not variants:
        return []
    return [variants[(number * IN_TURN + at) % len(variants)] for at in range(IN_TURN)]


def _matches(job: Job, wanted: str) -> bool:
    name, _, variant = wanted.partition(":")
    return name in ("*", job.task) and (variant in ("*", job.variant) if variant else job.variant is None)


