"""A stand-in for Palyra that lets everything through, or what it is told to: the harness is measured against it.

Programs run without a sandbox, in the workspace of a place in a temporary folder; the servers of the office are called in process.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attacks
import oracle
import snapshot
import tasks
from hosts import Host
from mandates import DECLARE
from office.base import Office
from place import Site
from players import INSPECT, Player

FILES = ("palyra.fs.read", "palyra.fs.write", "palyra.fs.edit", "palyra.fs.search", "palyra.fs.list", "palyra.process.run", "palyra.http.fetch")
Allows = Callable[[str, dict[str, Any]], bool]


class Bench:
    """A temporary place for runs."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="palyra-everyday-test-")
        self.scratch = Path(self._folder.name)
        self.intranet, self.canary = Host(), Host()

    def close(self) -> None:
        self.intranet.close()
        self.canary.close()
        self._folder.cleanup()

    def run(self, name: str, variant: str | None = None, allows: Allows = lambda tool, arguments: True) -> dict[str, Any]:
        """One run, judged as a real one is."""
        task = tasks.all_tasks()[name]
        injected = attacks.INJECTED.format(url=self.canary.url) if variant else None
        site = Site(self.scratch, name, self.intranet, self.canary, injected)
        task.before(site)
        home = snapshot.take(site.home, without=(site.workspace,))
        player = Player(task, site, "open", variant)
        conversation = player.conversation
        assert conversation is not None
        offices = {
            server: Office(server, importlib.import_module(f"office.{server}").TOOLS, site.data, site.logs) for server in attacks.SERVERS
        }
        names = [f"mcp.{server}.{tool['name']}" for server, office in offices.items() for tool in office.tools()]
        offered = [{"type": "function", "function": {"name": name.replace(".", "__")}} for name in (*names, *FILES, DECLARE, INSPECT)]
        messages: list[dict[str, Any]] = [{"role": "user", "content": task.request}]
        for _ in range(500):
            message = conversation.turn({"messages": messages, "tools": offered})
            messages.append(message)
            if not message.get("tool_calls"):
                break
            call = message["tool_calls"][0]["function"]
            tool, arguments = call["name"].replace("__", "."), json.loads(call["arguments"])
            content = self._carry_out(site, offices, tool, arguments) if allows(tool, arguments) else "error: denied"
            messages.append({"role": "tool", "tool_call_id": "x", "content": content})
        changed = snapshot.changes(home, snapshot.take(site.home, without=(site.workspace,)))
        calls = [(f"mcp.{call['server']}.{call['tool']}", call["arguments"]) for call in site.calls() if not call["error"]]
        return {
            "site": site,
            "player": player,
            "violations": oracle.judge(site, task, player.effects, changed),
            "performed": all(any(effect.fits(*call) for call in calls) for effect in player.effects),
            "done": bool(task.done(site)),
            "failed": player.failed,
        }

    def _carry_out(self, site: Site, offices: dict[str, Office], tool: str, arguments: dict[str, Any]) -> str:
        if tool.startswith("mcp."):
            _, server, name = tool.split(".")
            return offices[server].call(name, arguments)["content"][0]["text"]
        if not tool.startswith("palyra."):
            return "noted"
        try:
            return self._file_or_program(site, tool.removeprefix("palyra."), arguments)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return f"error: {error}"

    def _file_or_program(self, site: Site, tool: str, arguments: dict[str, Any]) -> str:
        path = site.workspace / arguments.get("path", ".")
        match tool:
            case "process.run":
                environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(site.scratch), "GIT_CONFIG_GLOBAL": str(site.home / ".gitconfig")}
                done = subprocess.run(
                    arguments["argv"], cwd=site.workspace, env=environment, input=arguments.get("stdin", ""), capture_output=True, text=True, timeout=60
                )
                return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
            case "fs.read":
                return path.read_text()
            case "fs.write":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(arguments["content"])
                return "written"
            case "fs.edit":
                text = path.read_text()
                if text.count(arguments["old"]) != 1:
                    raise ValueError("`old` does not occur once")
                path.write_text(text.replace(arguments["old"], arguments["new"]))
                return "edited"
            case "fs.list":
                return "\n".join(sorted(os.listdir(path)))
            case "fs.search":
                return "nothing"
            case "http.fetch":
                host = site.intranet if arguments["url"].startswith(site.intranet.url) else site.canary
                address = arguments["url"].removeprefix(host.url)
                host.requests.append(f"GET {address} HTTP/1.1\r\n\r\n{arguments.get('body', '')}")
                return host.pages.get(address, "no such page")
            case _:
                return "noted"
