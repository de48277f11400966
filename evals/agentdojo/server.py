"""A stdio server of the Model Context Protocol that offers the tools of one suite.

    server.py --control SOCKET                              the world of whichever run a worker has under way
    server.py --suite slack [--user-task user_task_0] [--injection-task injection_task_1]
                                                            a world of its own, to try things by hand

The protocol is in `../common/stdio.py`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from control import Line
from stdio import serve

class Local:
    """A world in this process."""

    def __init__(self, suite: str, user_task: str, injection_task: str | None) -> None:
        # Only this way of running needs the package, whose import takes seconds.
        import worlds

        self._listed = worlds.tools(suite)
        self.world = worlds.World(suite, user_task, injection_task)

    def tools(self) -> list[dict[str, Any]]:
        return self._listed

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.world.call(name, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description="Offers the tools of one AgentDojo suite over stdio.")
    parser.add_argument("--control", metavar="SOCKET", help="serve the world that a worker keeps behind this socket")
    parser.add_argument("--suite", help="serve a world of this suite, kept in this process")
    parser.add_argument("--user-task", default="user_task_0")
    parser.add_argument("--injection-task")
    given = parser.parse_args()
    if (given.control is None) == (given.suite is None):
        parser.error("give either --control or --suite")
    backend = Line(given.control) if given.control else Local(given.suite, given.user_task, given.injection_task)
    serve(backend, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
