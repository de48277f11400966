"""The one place that talks to the product: a real daemon with a state of its own.

Owns: starting and stopping `palyrad`, the command line, starting runs, following their tapes and answering their questions. Set-up
goes through the command line, as an operator would do it; runs go through the daemon's HTTP interface on its Unix socket, because
thousands of them would otherwise start a process each. Which servers there are, and how they are classified, is each evaluation's own.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENCE = 30.0
"""Seconds that a daemon may take to come up or to go; machines that measure are busy."""
SILENCE = 60.0
"""Seconds after which a run that says nothing is given up."""


class PalyraError(Exception):
    """The product did not do what the harness needs."""


@dataclass(frozen=True)
class Programs:
    """The two programs under test."""

    cli: Path
    daemon: Path

    @staticmethod
    def find(folder: str | None) -> Programs:
        """Those of a folder, of `PALYRA_BIN`, or of the search path."""
        folder = folder or os.environ.get("PALYRA_BIN")
        if folder:
            found = [Path(folder) / name for name in ("palyra", "palyrad")]
        else:
            found = [Path(shutil.which(name) or name) for name in ("palyra", "palyrad")]
        for program in found:
            if not program.exists():
                raise PalyraError(f"`{program}` does not exist; build it and name its folder with --bin or PALYRA_BIN")
        return Programs(found[0].resolve(), found[1].resolve())


@dataclass
class Outcome:
    """How a run went, as its tape tells it."""

    run_id: str
    phase: str = "unknown"
    reason: str | None = None
    detail: str | None = None
    answer: str = ""
    approvals: list[dict[str, Any]] = field(default_factory=list)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    tape: list[dict[str, Any]] = field(default_factory=list)


class Daemon:
    """One `palyrad` with a state of its own. It is not started before `start`, so that servers can be added first."""

    def __init__(
        self,
        programs: Programs,
        scratch: Path,
        model_url: str,
        *,
        home: Path | None = None,
        workspace: Path | None = None,
        settings: str = "",
        path: str | None = None,
    ) -> None:
        self.programs = programs
        self.home = home or scratch
        self.state = scratch / "state"
        self.workspace = workspace or scratch / "workspace"
        self.log = scratch / "palyrad.log"
        for folder in (self.state, self.workspace):
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        configuration = scratch / "palyra.toml"
        configuration.write_text(f"version = 1\n{settings}")
        # Nothing of whoever runs this leaks in: no configuration, no keys, no other model.
        self.environment = {
            "PATH": path or os.environ.get("PATH", ""),
            "HOME": str(self.home),
            "PALYRA_CONFIG": str(configuration),
            "PALYRA_STATE_ROOT": str(self.state),
            "PALYRA_DAEMON_HTTP_BIND": "127.0.0.1:0",
            "PALYRA_GRPC_BIND": "127.0.0.1:0",
            "PALYRA_QUIC_ENABLED": "false",
            "OPENAI_BASE_URL": model_url,
            "OPENAI_API_KEY": "evaluation",
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._steering: _Connection | None = None

    def cli(self, *arguments: str) -> str:
        """Runs the command line and gives what it prints."""
        done = subprocess.run(
            [self.programs.cli, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode != 0:
            shown = " ".join(arguments)
            raise PalyraError(f"`palyra {shown}` ended with {done.returncode}:\n{done.stderr}{done.stdout}{self.tail()}")
        return done.stdout

    def start(self) -> None:
        """Starts it and waits until it is healthy."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.programs.daemon],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._request("GET", "/healthz")
                return
            except (OSError, http.client.HTTPException):
                if self._process.poll() is not None:
                    raise PalyraError(f"the daemon ended with {self._process.returncode}\n{self.tail()}") from None
                if time.monotonic() > deadline:
                    raise PalyraError(f"the daemon is not healthy after {PATIENCE} s\n{self.tail()}") from None
                time.sleep(0.01)

    def tail(self) -> str:
        """The end of the daemon's log."""
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def run(self, prompt: str, mode: str, model: str, decision: str | Callable[[dict[str, Any]], str]) -> Outcome:
        """Runs a task to its end and answers `allow` or `deny` to whatever is asked on the way: always the same, or by the question."""
        body = {"prompt": prompt, "workspace": str(self.workspace), "model": model, "mode": mode}
        created = self._request("POST", "/api/v1/runs", body)
        outcome = Outcome(created["run_id"])
        for event in self._tape(outcome.run_id):
            outcome.tape.append(event)
            if "tool_approval_request" in event:
                request = event["tool_approval_request"]
                outcome.approvals.append(request)
                answer = {"decision": decision if isinstance(decision, str) else decision(request), "scope": "once"}
                self._request("POST", f"/api/v1/approvals/{request['approval_id']}/decide", answer)
            elif "tool_decision" in event:
                outcome.decisions.append(event["tool_decision"])
            elif "model_token" in event:
                outcome.answer += event["model_token"]["text"]
            elif "status" in event:
                status = event["status"]
                outcome.phase, outcome.reason = status["phase"], status.get("reason")
                outcome.detail = (status.get("detail") or {}).get("message")
        return outcome

    def _tape(self, run_id: str) -> Iterator[dict[str, Any]]:
        connection = _Connection(self.state / "palyrad.sock")
        try:
            connection.request("GET", f"/api/v1/runs/{run_id}/tape?follow=true")
            response = connection.getresponse()
            if response.status != 200:
                raise PalyraError(f"the tape of {run_id}: {response.read().decode(errors='replace')}")
            while line := response.readline():
                event = json.loads(line)
                if "error" in event:
                    raise PalyraError(f"the tape of {run_id}: {event['error']}")
                yield event
        except TimeoutError as error:
            raise PalyraError(f"run {run_id} said nothing for {SILENCE} s\n{self.tail()}") from error
        finally:
            connection.close()

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request on a connection that is kept; a daemon that closed it is asked once more on a new one."""
        for attempt in (1, 2):
            connection = self._steering or _Connection(self.state / "palyrad.sock")
            self._steering = connection
            try:
                payload = None if body is None else json.dumps(body)
                connection.request(method, path, payload, {"Content-Type": "application/json"} if payload else {})
                response = connection.getresponse()
                text = response.read()
                break
            except (OSError, http.client.HTTPException):
                connection.close()
                self._steering = None
                # Only reading may be repeated blindly.
                if attempt == 2 or method != "GET":
                    raise
        if response.status >= 400:
            raise PalyraError(f"{method} {path} gave {response.status}: {text.decode(errors='replace')}")
        return json.loads(text)

    def stop(self) -> None:
        """Ends the daemon and everything it started."""
        if self._steering is not None:
            self._steering.close()
            self._steering = None
        process = self._process
        if process is None:
            return
        self._process = None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class _Connection(http.client.HTTPConnection):
    """HTTP over the daemon's Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("palyrad", timeout=SILENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
