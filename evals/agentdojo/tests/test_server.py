"""The tool server over its real line: a child process, messages on standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import server
import stdio
import suites
import worlds
from control import Exchange
from plan import plan
from worker import Served

PROGRAM = Path(server.__file__)


class Client:
    """The least that a client of the protocol has to be."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._next = 0

    def send(self, line: bytes) -> None:
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        return json.loads(self._process.stdout.readline())

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}).encode())
        answer = self.receive()
        assert answer["id"] == self._next, answer
        return answer

    def close(self) -> int:
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(10)


class OverTheLine(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.exchange = Exchange(Path(folder.name) / "world.sock")
        self.addCleanup(self.exchange.close)
        self.served = Served("slack")
        self.exchange.backend = self.served
        self.client = Client("--control", str(self.exchange.path))

    def tearDown(self) -> None:
        self.assertEqual(self.client.close(), 0)

    def test_a_session_from_greeting_to_call(self) -> None:
        greeting = self.client.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={})
        self.assertEqual(greeting["result"]["protocolVersion"], "2025-06-18")
        self.client.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        listed = self.client.ask("tools/list")["result"]["tools"]
        self.assertEqual(listed, worlds.tools("slack"))
        self.served.world = worlds.World("slack", "user_task_0")
        answer = self.client.ask("tools/call", name="get_channels", arguments={})["result"]
        self.assertFalse(answer["isError"])
        self.assertEqual(json.loads(answer["content"][0]["text"]), answer["structuredContent"])
        self.assertEqual([call.function for call in self.served.world.executed], ["get_channels"])

    def test_a_world_can_be_exchanged_between_runs(self) -> None:
        message = {"recipient": "Alice", "body": "hello"}
        for _ in range(2):
            self.served.world = worlds.World("slack", "user_task_0")
            before = len(self.served.world.now.slack.user_inbox["Alice"])
            self.client.ask("tools/call", name="send_direct_message", arguments=message)
            self.assertEqual(len(self.served.world.now.slack.user_inbox["Alice"]), before + 1)

    def test_nonsense_is_answered_and_the_line_stays_open(self) -> None:
        self.client.send(b"nonsense")
        self.assertEqual(self.client.receive()["error"]["code"], stdio.PARSE_ERROR)
        self.client.send(b"[1]")
        self.assertEqual(self.client.receive()["error"]["code"], stdio.INVALID_REQUEST)
        self.assertEqual(self.client.ask("no/such")["error"]["code"], stdio.METHOD_NOT_FOUND)
        for params in ({"name": "no_such_tool"}, {"name": 7}, {"name": "get_channels", "arguments": [1]}):
            self.assertEqual(self.client.ask("tools/call", **params)["error"]["code"], stdio.INVALID_PARAMS)
        self.assertEqual(self.client.ask("ping")["result"], {})

    def test_without_a_run_a_call_is_an_error(self) -> None:
        answer = self.client.ask("tools/call", name="get_channels", arguments={})["result"]
        self.assertTrue(answer["isError"])


class GroundTruths(unittest.TestCase):
    def test_every_task_is_solved_through_the_server(self) -> None:
        for suite in ("banking", "slack"):
            for user_task in suites.suite(suite).user_tasks:
                with self.subTest(suite=suite, user_task=user_task):
                    backend = server.Local(suite, user_task, None)
                    known = plan(backend.world)
                    for step in known.task:
                        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
                        request["params"] = {"name": step.tool, "arguments": step.arguments}
                        answer = stdio.reply(backend, json.dumps(request).encode())
                        self.assertFalse(answer["result"]["isError"], answer)
                    world = backend.world
                    solved = suites.score(suite, user_task, known.answer, world.before, world.now, world.calls())
                    self.assertTrue(solved)


class ByHand(unittest.TestCase):
    def test_a_server_with_a_world_of_its_own(self) -> None:
        client = Client("--suite", "banking", "--user-task", "user_task_2", "--injection-task", "injection_task_4")
        answer = client.ask("tools/call", name="read_file", arguments={"file_path": "landlord-notices.txt"})
        self.assertIn("INFORMATION", answer["result"]["content"][0]["text"])
        self.assertEqual(client.close(), 0)


if __name__ == "__main__":
    unittest.main()
