"""What every evaluation writes at its end: a table for people, a file of figures, a line per run."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("PALYRA_FIGURES_DIR") or ROOT / "target" / "figures")
RESULTS = ROOT / "target" / "evals"

Columns = tuple[tuple[str, Callable[[Any], Any]], ...]


def table(columns: Columns, rows: list[Any], *, left: int = 1) -> str:
    """The rows for people; the first columns stand at the left."""
    cells = [[title for title, _ in columns]] + [[str(show(row)) for _, show in columns] for row in rows]
    widths = [max(len(line[at]) for line in cells) for at in range(len(columns))]

    def aligned(line: list[str]) -> str:
        return "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()

    return "\n".join([aligned(cells[0]), "  ".join("-" * width for width in widths), *map(aligned, cells[1:])])


def figure(identifier: str, value: float, unit: str, aim: float | None, better: str, n: int) -> dict[str, Any]:
    """One figure."""
    return {"id": identifier, "value": value, "unit": unit, "reference": None, "aim": aim, "better": better, "n": n}


def page(name: str, listed: list[dict[str, Any]], notes: list[str]) -> dict[str, Any]:
    """The figures in the form that all measuring programs share."""
    return {
        "name": name,
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "machine": _machine(),
        "figures": listed,
        "notes": notes,
    }


def _machine() -> dict[str, Any]:
    names = (
        line.partition(":")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    )
    cpu = " ".join(next(names, f"unknown {platform.machine()}").split())
    return {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "kernel": f"linux {platform.release()}"}


def write(path: Path, value: dict[str, Any]) -> None:
    """Writes beside the target and renames, so that a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_suffix(".json.tmp")
    staged.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    staged.rename(path)


def keep(path: Path, records: list[dict[str, Any]]) -> None:
    """One line per run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
