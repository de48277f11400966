"""Carries out many runs in several processes.

A worker is made once per process and has `carry_out(job)`, which gives a record, and `close()`. A job has `as_dict()`.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol


# How often progress is reported where nobody sits at a terminal.
SECONDS_BETWEEN_LINES = 30


class Worker(Protocol):
    """Carries out runs one after another."""

    def carry_out(self, job: Any) -> dict[str, Any]:
        """One run."""

    def close(self) -> None:
        """Ends everything and leaves nothing behind."""


def default_workers(per_core: float = 2) -> int:
    """How many workers are of use. A run waits for the journal and for other processes in turn, so a core carries more than one."""
    return max(1, round(per_core * len(os.sched_getaffinity(0))))


def carry_out(jobs: list[Any], make: Callable[[], Worker], workers: int) -> list[dict[str, Any]]:
    """Carries out the jobs; the records are in the order of the jobs."""
    # Whoever ends the evaluation ends its workers, which inherit this, and then, too, nothing is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    workers = max(1, min(workers, len(jobs)))
    if workers == 1:
        worker = make()
        try:
            return [worker.carry_out(job) for job in jobs]
        finally:
            worker.close()
    # Forking shares what is imported, which can take seconds; no thread runs yet.
    context = multiprocessing.get_context("fork")
    waiting: Any = context.Queue()
    finished: Any = context.Queue()
    for numbered in enumerate(jobs):
        waiting.put(numbered)
    for _ in range(workers):
        waiting.put(None)
    processes = [context.Process(target=_work, args=(waiting, finished, make), daemon=True) for _ in range(workers)]
    for process in processes:
        process.start()
    records: dict[int, dict[str, Any]] = {}
    on_terminal = sys.stderr.isatty()
    shown = time.monotonic()
    while len(records) < len(jobs):
        try:
            number, record = finished.get(timeout=1)
            records[number] = record
        except queue.Empty:
            if not any(process.is_alive() for process in processes):
                break
        # A log gets a line now and then, so that an evaluation of an hour can be told from one that hangs.
        if time.monotonic() - shown > (1 if on_terminal else SECONDS_BETWEEN_LINES):
            shown = time.monotonic()
            count = f"{len(records)} of {len(jobs)} runs"
            print(f"\r{count}" if on_terminal else count, end="" if on_terminal else "\n", file=sys.stderr, flush=True)
    if on_terminal:
        print("\r\033[K", end="", file=sys.stderr)
    for process in processes:
        process.join()
    for number, job in enumerate(jobs):
        records.setdefault(number, {**job.as_dict(), "error": "the worker ended before the run did", "ms": 0})
    return [records[number] for number in range(len(jobs))]


def _work(waiting: Any, finished: Any, make: Callable[[], Worker]) -> None:
    parent = os.getppid()
    worker = make()
    try:
        while (numbered := waiting.get()) is not None and os.getppid() == parent:
            number, job = numbered
            finished.put((number, worker.carry_out(job)))
    finally:
        worker.close()
