"""Tests of the harness that need no daemon. Run them with `evals/agentdojo/test.sh`."""
