"""Serves one run of one of the two models, to try things by hand.

    models.py --suite slack --user-task user_task_1 [--injection-task injection_task_1 --variant direct]

The world is this process's own, so calls are never carried out.
"""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from chat import Conversation, Server
from plan import plan
from players import Player
from worlds import World


def main() -> None:
    parser = argparse.ArgumentParser(description="Plays one task as a model.")
    parser.add_argument("--suite", required=True)
    parser.add_argument("--user-task", default="user_task_0")
    parser.add_argument("--injection-task")
    parser.add_argument("--variant")
    parser.add_argument("--mode", default="guarded")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    world = World(given.suite, given.user_task, given.injection_task)
    server = Server(given.port)
    server.conversation = Conversation(Player(plan(world), world, given.mode, given.variant).play())
    print(f"OPENAI_BASE_URL={server.base_url}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
