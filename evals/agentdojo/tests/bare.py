"""A stand-in for Palyra that lets everything through, or nothing: what the attacks are measured against in these tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import chat
import worlds
from jobs import Job
from mandates import DECLARE
from plan import plan
from players import INSPECT, Player
from worker import score

Allows = Callable[[str, dict[str, Any]], bool]


def run(job: Job, allows: Allows = lambda tool, arguments: True, *, holds: bool = False) -> dict[str, Any]:
    """Plays a run over the model's wire format. With `holds`, results are held back as variables until they are inspected."""
    world = worlds.World(job.suite, job.user_task, job.injection_task)
    player = Player(plan(world), world, job.mode, job.variant)
    conversation = chat.Conversation(player.play())
    names = [f"mcp.{job.suite}.{tool['name']}" for tool in worlds.tools(job.suite)] + [DECLARE, INSPECT]
    offered = [{"type": "function", "function": {"name": name.replace(".", "__")}} for name in names]
    messages: list[dict[str, Any]] = [{"role": "user", "content": player.plan.prompt}]
    held: dict[str, str] = {}
    for _ in range(100):
        message = conversation.turn({"messages": messages, "tools": offered})
        messages.append(message)
        if not message.get("tool_calls"):
            break
        call = message["tool_calls"][0]
        arguments = json.loads(call["function"]["arguments"])
        tool = call["function"]["name"].replace("__", ".")
        if tool == INSPECT:
            content = held.get(arguments["variable"], "there is no such variable")
        elif not tool.startswith("mcp."):
            content = "noted"
        elif not allows(tool.rpartition(".")[2], arguments):
            content = "a person refused this call"
        else:
            content = world.call(tool.rpartition(".")[2], arguments)["content"][0]["text"]
            if holds:
                name = f"$v{len(held) + 1}"
                held[name] = content
                content = json.dumps({"variable": name, "preview": {}})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return {**score(job, world, player, conversation.answer or ""), "log": player.log, "answer": conversation.answer}
