"""Which servers there are, and their registration with the product: added, classified, and the proposal accepted as it is.

Registration takes a while, and is the same in every run of a worker, so it is done once per server and put in place as files.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from model import Task
from palyra import Daemon, PalyraError

HERE = Path(__file__).resolve().parent
OWN = ("mail", "calendar", "tickets", "chat", "contacts", "weather", "drive")
OTHERS = ("documents", "memory", "git", "time", "fetch")
ATTEMPTS = 5
"""How often a server is tried to be added."""
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def command(server: str, scratch: Path) -> list[str]:
    """How a server is started."""
    if server in OWN:
        return [PYTHON, "-S", "-E", "-B", str(HERE / "office"), server, str(scratch / "data"), str(scratch / "logs")]
    modules = Path(os.environ.get("PALYRA_EVALS_NODE") or "/nonexistent") / "node_modules" / "@modelcontextprotocol"
    home = scratch / "home"
    started = {
        "documents": ["node", str(modules / "server-filesystem/dist/index.js"), str(home / "Documents")],
        "memory": ["env", f"MEMORY_FILE_PATH={home / 'memory.jsonl'}", "node", str(modules / "server-memory/dist/index.js")],
        "git": [sys.executable, "-m", "mcp_server_git"],
        "time": [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"],
        "fetch": [sys.executable, "-m", "mcp_server_fetch"],
    }[server]
    return [PYTHON, "-S", "-E", "-B", str(HERE / "relay.py"), str(scratch / "logs" / f"{server}.ndjson"), *started]


class Registry:
    """The registered servers of one worker, as the product wrote them down."""

    def __init__(self, templates: Path) -> None:
        self._templates = templates

    def register(self, daemon: Daemon, scratch: Path, server: str, task: Task | None = None) -> None:
        """Adds a server to a state that no daemon uses yet."""
        reviewed = f"-{task.name}" if task is not None and task.reviewed else ""
        kept = self._templates / f"{server}{reviewed}"
        if not kept.exists():
            self._make(daemon, scratch, server, task, kept)
        into = daemon.state / "mcp"
        into.mkdir(mode=0o700, exist_ok=True)
        listed = into / "servers.toml"
        own = (kept / "servers.toml").read_text()
        if listed.exists():
            own = listed.read_text() + "\n" + own.replace("version = 1\n", "", 1)
        listed.write_text(own)
        listed.chmod(0o600)
        for file in kept.glob(f"{server}.*"):
            shutil.copy2(file, into)

    def _make(self, daemon: Daemon, scratch: Path, server: str, task: Task | None, kept: Path) -> None:
        """Registers it in an empty state by the command line, as an operator does."""
        state = daemon.state
        aside = state.with_name("state-aside")
        if (state / "mcp").exists():
            (state / "mcp").rename(aside)
        try:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    self._classified(daemon, scratch, server, task)
                    break
                except PalyraError:
                    # A busy machine may start a server too slowly; the set-up is not what is measured.
                    shutil.rmtree(state / "mcp", ignore_errors=True)
                    if attempt == ATTEMPTS:
                        raise
                    time.sleep(attempt)
            kept.parent.mkdir(parents=True, exist_ok=True)
            (state / "mcp").rename(kept)
        finally:
            shutil.rmtree(state / "mcp", ignore_errors=True)
            if aside.exists():
                aside.rename(state / "mcp")

    def _classified(self, daemon: Daemon, scratch: Path, server: str, task: Task | None) -> None:
        """Adds it, has its classification proposed, and accepts that."""
        folder = daemon.state / "mcp"
        daemon.cli("mcp", "add", server, "--", *command(server, scratch))
        daemon.cli("mcp", "classify", server)
        if task is not None and task.reviewed:
            file = folder / f"{server}.classification.toml"
            file.write_text(task.review(server, file.read_text()))
        daemon.cli("mcp", "classify", server, "--accept")
        if not (folder / "servers.toml").read_text().startswith("version = 1\n"):
            raise PalyraError("servers.toml does not begin with its version")
