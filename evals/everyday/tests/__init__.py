"""Tests of the harness that need no daemon and nothing from a registry. Run them with `evals/everyday/test.sh`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "common"))
