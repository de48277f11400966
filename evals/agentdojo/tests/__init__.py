"""Tests of the harness that need no daemon. Run them with `evals/agentdojo/test.sh`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "common"))
