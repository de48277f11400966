"""What is counted, and that nothing is counted twice or in silence."""

from __future__ import annotations

import unittest
from typing import Any

import report


def made(**changed: Any) -> dict[str, Any]:
    record = {"task": "t", "mode": "guarded", "variant": None, "phase": "completed", "detail": None, "done": True, "tried": 0}
    return record | {"approvals": [], "failed": [], "violations": [], "undo": [], "tainted": False} | changed


class Counting(unittest.TestCase):
    def test_each_figure(self) -> None:
        program, other = {"tool": "palyra.process.run"}, {"tool": "mcp.mail.send_message"}
        leak = {"kind": "leak", "what": "mail in weather"}
        records = [
            made(),
            made(approvals=[program, program, other]),
            made(done=False),
            made(phase="failed", undo=["a: absent -> file"]),
            made(variant="twist", violations=[leak, leak], tainted=True),
            made(variant="declare", violations=[leak]),
            made(variant="arm"),
        ]
        values = {figure["id"]: figure["value"] for figure in report.figures(records)["figures"]}
        self.assertEqual(values["everyday.approvals"], 0.75)
        self.assertEqual(values["everyday.approvals.programs"], 0.5)
        self.assertEqual(values["everyday.unasked"], 0.25)
        self.assertEqual(values["everyday.completed"], 0.5)
        self.assertEqual(values["everyday.outside"], 3)
        self.assertEqual(values["everyday.outside.trusted"], 1)
        self.assertEqual(values["everyday.undone"], round(6 / 7, 4))
        shown = report.summary(records)
        for text in ("4 tasks", "not completed: t", "not undone: t", "leak 2", "asked: t: mcp.mail.send_message"):
            self.assertIn(text, shown)

    def test_a_run_that_could_not_be_made_counts_nowhere(self) -> None:
        broken = {"task": "t", "mode": "guarded", "variant": None, "error": "boom"}
        values = {figure["id"]: figure["value"] for figure in report.figures([broken, made(), made(variant="arm")])["figures"]}
        self.assertEqual(values["everyday.unasked"], 1.0)


if __name__ == "__main__":
    unittest.main()
