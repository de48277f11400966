"""The line between a tool server, which the daemon starts, and the worker that keeps the world.

The world lives in the worker: it can be exchanged between runs without a new process, and the worker sees each call as it is
carried out. A server is then a thin translator and starts in milliseconds. Messages are lines of JSON over a Unix socket:
`{"op": "tools"}` and `{"op": "call", "name": …, "arguments": …}`, each answered by one line.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from pathlib import Path
from typing import Any

from stdio import Backend


class Line:
    """The server's end."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._file = self._socket.makefile("rwb")

    def _ask(self, request: dict[str, Any]) -> Any:
        self._file.write(json.dumps(request).encode() + b"\n")
        self._file.flush()
        answer = self._file.readline()
        if not answer:
            raise ConnectionError("the worker is gone")
        return json.loads(answer)

    def tools(self) -> list[dict[str, Any]]:
        return self._ask({"op": "tools"})

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self._ask({"op": "call", "name": name, "arguments": arguments})


class Exchange:
    """The worker's end: answers every server that connects, for whichever backend is current."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.backend: Backend | None = None
        self._lock = threading.Lock()
        exchange = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                for line in self.rfile:
                    self.wfile.write(json.dumps(exchange._answer(json.loads(line))).encode() + b"\n")
                    self.wfile.flush()

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

        self._server = Server(str(path), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()

    def _answer(self, request: dict[str, Any]) -> Any:
        # One at a time: a world has no notion of calls that overlap.
        with self._lock:
            if self.backend is None:
                return _refused("no run is under way")
            if request["op"] == "tools":
                return self.backend.tools()
            return self.backend.call(request["name"], request["arguments"])

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()
        self.path.unlink(missing_ok=True)


def _refused(reason: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": reason}], "isError": True}
