"""The tasks are what they claim to be: solvable, complete, and with nothing authorised that the request does not say."""

from __future__ import annotations

import importlib
import unittest
from typing import Any

import servers
import tasks
from model import Each, Effect, Task
from place import Site
from tests.bare import Bench

OFFICE = {
    f"mcp.{server}.{tool.name}": tool for server in servers.OWN for tool in importlib.import_module(f"office.{server}").TOOLS
}
SLOW = ("cargo_", "npm_", "python_serve")
"""Tasks of programs that take their time, or need the product; the real evaluation runs them."""


def texts(value: Any) -> list[str]:
    match value:
        case Each():
            return []
        case str():
            return [part for part in value.split("{}") if part]
        case list():
            return [text for member in value for text in texts(member)]
        case dict():
            return [text for member in value.values() for text in texts(member)]
        case _:
            return [str(value)]


class Tasks(unittest.TestCase):
    def setUp(self) -> None:
        self.bench = Bench()
        self.addCleanup(self.bench.close)

    def site(self, task: Task) -> Site:
        site = Site(self.bench.scratch, task.name, self.bench.intranet, self.bench.canary)
        task.before(site)
        return site

    def test_there_are_enough_of_them(self) -> None:
        known = tasks.all_tasks()
        self.assertGreaterEqual(len(known), 40)
        self.assertLessEqual(sum(1 for task in known.values() if task.person), len(known) // 10)

    def test_what_is_authorised_stands_in_the_request(self) -> None:
        for task in tasks.all_tasks().values():
            for effect in task.effects:
                for value in (*effect.targets.values(), *effect.says.values()):
                    for text in texts(value):
                        self.assertIn(text, task.request, task.name)

    def test_every_change_of_the_steps_is_authorised_and_nothing_else_is(self) -> None:
        for task in tasks.all_tasks().values():
            site = self.site(task)
            calls = [step.call for step in task.steps(site)]
            for call in calls:
                tool = OFFICE.get(call.tool)
                if call.tool.startswith("mcp.") and tool is not None:
                    self.assertLessEqual(set(call.arguments), set(tool.listed["inputSchema"]["properties"]), task.name)
                    if tool.acts:
                        self.assertTrue(any(effect.fits(call.tool, call.arguments) for effect in task.effects), task.name)
                if call.tool.startswith("mcp."):
                    self.assertIn(call.tool.split(".")[1], task.servers, task.name)
            for effect in task.effects:
                self.assertIn(effect.tool, [call.tool for call in calls], task.name)

    def test_a_mandate_holds_what_the_effect_says(self) -> None:
        effect = Effect("mcp.m.t", {"to": ["a@b.example"], "id": Each("mcp.m.list", ("1",))}, {"subject": "Lunch"}, 2, ("mcp.c",))
        self.assertEqual(
            effect.mandate(),
            {
                "tool": "mcp.m.t",
                "destinations": ["a@b.example"],
                "arguments": {"subject": "Lunch", "id": {"each": "mcp.m.list"}},
                "from": ["mcp.c"],
            },
        )
        self.assertEqual(Effect("mcp.m.t", {"id": "T-1"}, times=2).mandate(), {"tool": "mcp.m.t", "destinations": ["T-1"], "times": 2})
        self.assertTrue(effect.fits("mcp.m.t", {"to": ["a@b.example"], "id": "1", "subject": "Lunch", "body": "x"}))
        self.assertFalse(effect.fits("mcp.m.t", {"to": ["a@b.example"], "id": "2", "subject": "Lunch"}))
        self.assertTrue(Effect("t", says={"title": "Upgrade {}"}).fits("t", {"title": "Upgrade serde"}))

    def test_where_nothing_stops_the_faithful_model_every_task_is_done(self) -> None:
        for name, task in tasks.all_tasks().items():
            if name.startswith(SLOW) or set(task.servers) - set(servers.OWN):
                continue
            with self.subTest(task=name):
                done = self.bench.run(name)
                self.assertEqual(done["failed"], [])
                self.assertTrue(done["done"])
                self.assertTrue(done["performed"])
                self.assertEqual(done["violations"], [])


if __name__ == "__main__":
    unittest.main()
