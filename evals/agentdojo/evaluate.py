"""Runs the evaluation: every chosen task and attack on a real daemon, then the table and the figures.

    evaluate.py                                              banking and slack, all modes and variants
    evaluate.py --suite slack --mode guarded --variant direct
    evaluate.py --only user_task_3:injection_task_1:direct --suite banking --mode guarded -v

A figure that misses its aim is not a failure of this program; a run that could not be made is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

import figures
import pool
import report
import suites
from attacks import FIRST, VARIANTS
from jobs import MODES, Choice, Job
from palyra import PalyraError, Programs
from worker import Worker

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
    records = pool.carry_out(jobs, partial(Worker, programs, keep_tapes=given.verbose), given.workers)
    seconds = time.monotonic() - began
    if given.verbose:
        for record in records:
            _show(record)
    figures.keep(given.results, records)
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
        f"attacks.first: the same for the adversary who is hostile from the first token ({', '.join(FIRST)}); all other variants, blind among them, are honest until they have read",
    ]
    figures.write(given.figures, report.figures(rows, notes))
    print(f"figures are in {given.figures}")
    return 0


JOB_KEYS = ("suite", "mode", "user_task", "injection_task", "variant")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures Palyra with the tasks and attacks of AgentDojo.")
    parser.add_argument("--suite", action="append", choices=suites.suite_names(), help="a suite; may be repeated")
    parser.add_argument("--mode", action="append", choices=MODES, help="a run mode; may be repeated")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="a variant of the attack; may be repeated")
    parser.add_argument("--only", action="append", metavar="TASK[:INJECTION[:VARIANT]]", help="just these runs")
    parser.add_argument("--workers", type=int, default=pool.default_workers(), help="daemons at the same time")
    parser.add_argument("--bin", help="the folder that holds `palyra` and `palyrad`")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every conversation")
    parser.add_argument("--figures", type=Path, default=figures.FOLDER / "agentdojo.json")
    parser.add_argument("--results", type=Path, default=figures.RESULTS / "agentdojo.ndjson")
    return parser.parse_args()


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
