"""The Model Context Protocol's own package against an address, as agents use it.

Does everything once and prints what it saw as one JSON document; judging that is the work of whoever started it. Usage:
mcp_client.py URL WORKSPACE MODE, with the bearer token in PALYRA_TOKEN and MODE one of the package's ways to connect.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

PATIENCE = 60.0


def seen(result: Any) -> dict[str, Any]:
    """What a call came to, as far as a model would see it."""
    return {
        "is_error": bool(result.is_error),
        "structured": result.structured_content,
        "text": "".join(getattr(block, "text", "") for block in result.content),
    }


async def tour(client: Client, workspace: str) -> dict[str, Any]:
    listed = await client.list_tools()
    tools = {
        tool.name: {"read_only": tool.annotations.read_only_hint, "required": tool.input_schema.get("required", [])}
        for tool in listed.tools
    }
    progress: list[float] = []

    async def heard(at: float, total: float | None, message: str | None) -> None:
        progress.append(at)

    session = seen(await client.call_tool("session_new", {"title": "from afar"}))
    session_id = session["structured"]["session_id"]
    task = {"prompt": "read it", "workspace": workspace, "session_id": session_id, "wait_seconds": 30}
    run = seen(await client.call_tool("run_create", task, progress_callback=heard))
    asking = seen(await client.call_tool("run_create", {"prompt": "write it", "workspace": workspace, "wait_seconds": 30}))
    asked_id = asking["structured"]["run_id"]
    return {
        "tools": tools,
        "session": session,
        "run": run,
        "progress": progress,
        "asking": asking,
        "approvals": seen(await client.call_tool("approval_list", {})),
        "aborted": seen(await client.call_tool("run_abort", {"run_id": asked_id, "reason": "enough"})),
        "again": seen(await client.call_tool("run_get", {"run_id": asked_id, "wait_seconds": 30})),
        "sessions": seen(await client.call_tool("session_list", {})),
        "runs": seen(await client.call_tool("run_list", {})),
        "wrong_field": seen(await client.call_tool("run_get", {"run_id": "short"})),
        "not_taken": seen(await client.call_tool("run_create", {**task, "client_tools": []})),
        "key": [
            seen(await client.call_tool("run_create", {**task, "idempotency_key": "once"}))["structured"]["run_id"]
            for _ in range(2)
        ],
    }


async def main() -> None:
    url, workspace, mode = sys.argv[1:]
    headers = {"Authorization": f"Bearer {os.environ['PALYRA_TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=PATIENCE) as client:
            found = await tour(client, workspace)
            try:
                await client.call_tool("approval_decide", {})
                found["no_such_tool"] = None
            except Exception as error:  # noqa: BLE001 - whatever the package raises is what its users get
                found["no_such_tool"] = str(error)
    json.dump(found, sys.stdout)


asyncio.run(main())
