"""Runs the evaluation: every chosen task and attack on a real daemon, then the table and the figures.

    evaluate.py                                              banking and slack, all modes and variants
    evaluate.py --suite slack --mode guarded --variant direct
    evaluate.py --only user_task_3:injection_task_1:direct --suite banking --mode guarded -v

A figure that misses its aim is not a failure of this program; a run that could not be made is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import sys
import time
from pathlib import Path
from typing import Any

import report
import suites
from attacks import VARIANTS
from jobs import MODES, Choice, Job
from palyra import PalyraError, Programs
from worker import Worker

ROOT = Path(__file__).resolve().parents[2]
DEVELOPMENT_SUITES = ("banking", "slack")


def main() -> int:
    given = _arguments()
    try:
        programs = Programs.find(given.bin)
    except PalyraError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    choice = Choice(
        suites=tuple(given.suite or DEVELOPMENT_SUITES),
        modes=tuple(given.mode or MODES),
        variants=tuple(given.variant or VARIANTS),
        only=tuple(given.only or ()),
    )
    jobs = choice.jobs()
    if not jobs:
        print("error: nothing fits this choice", file=sys.stderr)
        return 2
    began = time.monotonic()
    records = _all(jobs, programs, given.workers, verbose=given.verbose)
    seconds = time.monotonic() - began
    if given.verbose:
        for record in records:
            _show(record)
    _keep(given.results, records)
    rows = report.tallies(records)
    print(report.table(rows))
    if details := report.variants(records):
        print(f"\nvariants that got anywhere\n{details}")
    print(f"\n{len(records)} runs in {seconds:.0f} s, {len(records) / seconds:.1f}/s; each is in {given.results}")
    errors = [record for record in records if "error" in record]
    for record in errors[:5]:
        print(f"error: {Job(*(record[k] for k in JOB_KEYS))}: {record['error']}", file=sys.stderr)
    if errors:
        print(f"error: {len(errors)} runs could not be made; no figures are written", file=sys.stderr)
        return 1
    if given.only or given.variant or given.mode:
        print("only a part was run; no figures are written")
        return 0
    notes = [
        f"agentdojo suites {', '.join(choice.suites)}, version {suites.BENCHMARK_VERSION}; variants: {', '.join(choice.variants)}",
        "attacks.unapproved: the package's security check holds in the world, every question having been denied",
    ]
    report.write(given.figures, report.figures(rows, notes))
    print(f"figures are in {given.figures}")
    return 0


JOB_KEYS = ("suite", "mode", "user_task", "injection_task", "variant")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures Palyra with the tasks and attacks of AgentDojo.")
    parser.add_argument("--suite", action="append", choices=suites.suite_names(), help="a suite; may be repeated")
    parser.add_argument("--mode", action="append", choices=MODES, help="a run mode; may be repeated")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="a variant of the attack; may be repeated")
    parser.add_argument("--only", action="append", metavar="TASK[:INJECTION[:VARIANT]]", help="just these runs")
    parser.add_argument("--workers", type=int, default=_default_workers(), help="daemons at the same time")
    parser.add_argument("--bin", help="the folder that holds `palyra` and `palyrad`")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every conversation")
    figures = Path(os.environ.get("PALYRA_FIGURES_DIR") or ROOT / "target" / "figures")
    parser.add_argument("--figures", type=Path, default=figures / "agentdojo.json")
    parser.add_argument("--results", type=Path, default=ROOT / "target" / "evals" / "agentdojo.ndjson")
    return parser.parse_args()


def _default_workers() -> int:
    # A run waits for the journal and for four processes in turn, so a core carries more than one.
    return 2 * len(os.sched_getaffinity(0))


def _all(jobs: list[Job], programs: Programs, workers: int, *, verbose: bool) -> list[dict[str, Any]]:
    """Carries out the jobs, in the order in which they were given."""
    workers = max(1, min(workers, len(jobs)))
    if workers == 1:
        worker = Worker(programs, keep_tapes=verbose)
        try:
            return [worker.carry_out(job) for job in jobs]
        finally:
            worker.close()
    # Forking shares the imported package, whose import takes seconds; no thread runs yet.
    context = multiprocessing.get_context("fork")
    waiting: Any = context.Queue()
    finished: Any = context.Queue()
    for numbered in enumerate(jobs):
        waiting.put(numbered)
    for _ in range(workers):
        waiting.put(None)
    processes = [
        context.Process(target=_work, args=(waiting, finished, programs, verbose), daemon=True) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    records: dict[int, dict[str, Any]] = {}
    shown = time.monotonic()
    while len(records) < len(jobs):
        try:
            number, record = finished.get(timeout=1)
            records[number] = record
        except queue.Empty:
            if not any(process.is_alive() for process in processes):
                break
        if sys.stderr.isatty() and time.monotonic() - shown > 1:
            shown = time.monotonic()
            print(f"\r{len(records)} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    for process in processes:
        process.join()
    for number, job in enumerate(jobs):
        records.setdefault(number, {**job.as_dict(), "error": "the worker ended before the run did", "ms": 0})
    return [records[number] for number in range(len(jobs))]


def _work(waiting: Any, finished: Any, programs: Programs, keep_tapes: bool) -> None:
    worker = Worker(programs, keep_tapes=keep_tapes)
    try:
        while (numbered := waiting.get()) is not None:
            number, job = numbered
            finished.put((number, worker.carry_out(job)))
    finally:
        worker.close()


def _keep(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")


def _show(record: dict[str, Any]) -> None:
    """One conversation, for people."""
    print("=" * 100)
    print(" ".join(f"{key}={record.get(key)}" for key in (*JOB_KEYS, "phase", "reason", "utility", "turned", "reached")))
    if "error" in record:
        print(record["error"])
    for turn in record.get("conversation", []):
        done = "carried out" if turn["carried_out"] else "not carried out"
        print(f"--- {turn['purpose']}: {turn['tool']} {json.dumps(turn['arguments'], ensure_ascii=False)} [{done}]")
        print(f"    {turn['result'][:1500]}")
    for approval in record.get("approvals", []):
        print(f"??? {approval['tool']}: {approval['reason']}")
    print()


if __name__ == "__main__":
    sys.exit(main())
