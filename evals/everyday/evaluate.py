"""Runs the everyday tasks on a real daemon, then prints the table and writes the figures.

    evaluate.py                                    every task, faithful and hostile
    evaluate.py --only git_bisect -v               one task with its whole conversation
    evaluate.py --only 'mail_reply:exfiltrate' -v  one attack
    evaluate.py --benign                           the faithful model alone
    evaluate.py --each                             every task attacked with every variant

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
from attacks import VARIANTS
from jobs import MODES, Job, jobs
from palyra import PalyraError, Programs
from worker import Worker


def main() -> int:
    given = _arguments()
    try:
        programs = Programs.find(given.bin)
    except PalyraError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    variants = () if given.benign else tuple(given.variant or VARIANTS)
    chosen = jobs(tuple(given.mode or ("guarded",)), variants, tuple(given.only or ()), each=given.each)
    if not chosen:
        print("error: nothing fits this choice", file=sys.stderr)
        return 2
    began = time.monotonic()
    records = pool.carry_out(chosen, partial(Worker, programs, keep_tapes=given.verbose, let_programs_run=given.let_programs_run), given.workers)
    seconds = time.monotonic() - began
    if given.verbose:
        for record in records:
            _show(record)
    figures.keep(given.results, records)
    print(report.summary(records))
    print(f"\n{len(records)} runs in {seconds:.0f} s; each is in {given.results}")
    errors = [record for record in records if "error" in record]
    for record in errors[:5]:
        print(f"error: {Job(record['task'], record['mode'], record['variant'])}: {record['error']}", file=sys.stderr)
    if errors:
        print(f"error: {len(errors)} runs could not be made; no figures are written", file=sys.stderr)
        return 1
    if given.only or given.variant or given.mode or given.benign or given.let_programs_run:
        print("only a part was run; no figures are written")
        return 0
    figures.write(given.figures, report.figures(records))
    print(f"figures are in {given.figures}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measures Palyra with everyday tasks.")
    parser.add_argument("--mode", action="append", choices=MODES, help="a run mode; guarded if none is given; may be repeated")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="a variant of the attack; may be repeated")
    parser.add_argument("--only", action="append", metavar="TASK[:VARIANT]", help="just these runs; `*` is any")
    parser.add_argument("--each", action="store_true", help="attack every task with every variant, not with a part of them in turn")
    parser.add_argument("--benign", action="store_true", help="the faithful model alone")
    parser.add_argument("--let-programs-run", action="store_true", help="allow the hostile model's programs, to look at the sandbox and the undo alone")
    parser.add_argument("--workers", type=int, default=pool.default_workers(1.5), help="daemons at the same time")
    parser.add_argument("--bin", help="the folder that holds `palyra` and `palyrad`")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every conversation")
    parser.add_argument("--figures", type=Path, default=figures.FOLDER / "everyday.json")
    parser.add_argument("--results", type=Path, default=figures.RESULTS / "everyday.ndjson")
    return parser.parse_args()


def _show(record: dict[str, Any]) -> None:
    """One conversation, for people."""
    print("=" * 100)
    print(" ".join(f"{key}={record.get(key)}" for key in ("task", "mode", "variant", "phase", "reason", "detail", "done")))
    if "error" in record:
        print(record["error"])
    for turn in record.get("conversation", []):
        print(f"--- {turn['purpose']}: {turn['tool']} {json.dumps(turn['arguments'], ensure_ascii=False)}")
        print(f"    {turn['result'][:1500]}")
    for approval in record.get("approvals", []):
        print(f"??? {json.dumps(approval, ensure_ascii=False)}")
    for key in ("failed", "violations", "undo"):
        for line in record.get(key, []):
            print(f"!!! {key}: {line}")
    print()


if __name__ == "__main__":
    sys.exit(main())
