"""Starts one server: `python3 evals/everyday/office NAME DATA LOG`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "common")]

from office.base import Office
from stdio import serve

if __name__ == "__main__":
    name, data, log = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    server = importlib.import_module(f"office.{name}")
    serve(Office(name, server.TOOLS, data, log), sys.stdin.buffer, sys.stdout.buffer)
