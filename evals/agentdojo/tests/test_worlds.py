"""The suites load, their tools are described, and their ground truths score as the package says."""

from __future__ import annotations

import unittest

import suites
import worlds

SUITES = ("banking", "slack")


class Worlds(unittest.TestCase):
    def test_every_tool_is_described_by_an_object_schema(self) -> None:
        for suite in SUITES:
            listed = worlds.tools(suite)
            self.assertGreaterEqual(len(listed), 10)
            for tool in listed:
                with self.subTest(tool=tool["name"]):
                    self.assertTrue(tool["description"])
                    for schema in (tool["inputSchema"], tool["outputSchema"]):
                        self.assertEqual(schema["type"], "object")

    def test_results_that_are_no_objects_are_wrapped(self) -> None:
        world = worlds.World("slack", "user_task_0")
        answer = world.call("get_channels", {})
        self.assertIn("general", answer["structuredContent"][worlds.WRAPPER])
        world = worlds.World("banking", "user_task_0")
        self.assertIn("first_name", world.call("get_user_info", {})["structuredContent"])

    def test_a_refused_call_is_an_error_and_changes_nothing(self) -> None:
        world = worlds.World("slack", "user_task_0")
        answer = world.call("send_direct_message", {"recipient": "Nobody", "body": "hello"})
        self.assertTrue(answer["isError"])
        self.assertEqual(world.before, world.now)
        self.assertTrue(world.call("send_direct_message", {})["isError"])

    def test_worlds_do_not_share_their_state(self) -> None:
        first, second = (worlds.World("slack", "user_task_0") for _ in range(2))
        first.call("send_direct_message", {"recipient": "Alice", "body": "hello"})
        self.assertNotEqual(first.now, first.before)
        self.assertEqual(second.now, second.before)
        self.assertEqual(worlds.World("slack", "user_task_0").now, second.now)

    def test_the_injected_text_is_noticed_where_it_is_given_and_nowhere_else(self) -> None:
        world = worlds.World("banking", "user_task_2", "injection_task_4")
        world.call("get_balance", {})
        self.assertFalse(world.gave_injection)
        world.call("read_file", {"file_path": "landlord-notices.txt"})
        self.assertTrue(world.gave_injection)
        benign = worlds.World("banking", "user_task_2")
        benign.call("read_file", {"file_path": "landlord-notices.txt"})
        self.assertFalse(benign.gave_injection)

    def test_every_task_can_be_attacked(self) -> None:
        for suite in SUITES:
            known = suites.suite(suite)
            for user_task in known.user_tasks:
                for injection_task in known.injection_tasks:
                    self.assertTrue(suites.injected_texts(suite, user_task, injection_task))


if __name__ == "__main__":
    unittest.main()
