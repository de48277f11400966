"""An OpenAI-compatible server of chat completions whose models are played by generators.

Owns: the wire. One server belongs to one worker, which has one run under way at a time; it plays that run's `Conversation`. Two models
are listed, `faithful` and `hostile`, so that a run's record says which one it had; who plays is up to the worker.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import mandates

MODELS = ("faithful", "hostile")
SEARCH = "palyra.tools.search"
NOT_OFFERED = "error: no such tool is offered"


@dataclass(frozen=True)
class Call:
    """A call that the model proposes; the tool's name as Palyra's own documents write it."""

    tool: str
    arguments: dict[str, Any]


Playing = Generator[Call, str, Any]
"""A model: it yields calls, is sent their results, and returns its answer."""


def _plain(name: str) -> str:
    """A tool's name without the marks that differ between what Palyra calls it and what the wire allows."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


class Conversation:
    """One run, seen from the model's side."""

    def __init__(self, playing: Playing) -> None:
        self.answer: str | None = None
        self.missing: set[str] = set()
        self.offered: dict[str, dict[str, Any]] = {}
        """What the last request offered, by plain names."""
        self.instructions = ""
        """What the last request said that is not the user's, a model's or a tool's."""
        self._playing = playing
        self._wanted: Call | None = None
        self._searched: set[str] = set()
        self._sent: dict[str, Any] | None = None
        self._answered: list[dict[str, Any]] = []
        self._calls = 0
        self._lock = threading.Lock()

    def turn(self, request: dict[str, Any]) -> dict[str, Any]:
        """The assistant's next message."""
        offered = {_plain(tool["function"]["name"]): tool["function"] for tool in request.get("tools") or []}
        if not offered:
            # An auxiliary task: it may read, but has nothing to call.
            return {"role": "assistant", "content": quarantined(request["messages"])}
        with self._lock:
            messages = request["messages"]
            system = (message for message in messages if message.get("role") in ("system", "developer"))
            self.instructions = "\n".join(str(message.get("content") or "") for message in system)
            # The same request once more, after a broken connection, gets the same answer.
            if self._sent is None or messages != self._answered:
                self.offered = offered
                self._sent = self._next(None if self._sent is None else _result(messages))
                self._answered = list(messages)
            return self._sent

    def _next(self, result: str | None) -> dict[str, Any]:
        try:
            if self._wanted is not None:
                # The last turn only looked for a tool; the call itself is still to be made.
                call, self._wanted = self._wanted, None
            else:
                call = next(self._playing) if result is None else self._playing.send(result)
            while _plain(call.tool) not in self.offered:
                if _plain(SEARCH) in self.offered and call.tool not in self._searched:
                    self._searched.add(call.tool)
                    self._wanted = call
                    return self._message(Call(SEARCH, {"query": call.tool.replace(".", " ").replace("_", " ")}))
                self.missing.add(call.tool)
                call = self._playing.send(NOT_OFFERED)
        except StopIteration as end:
            self.answer = str(end.value)
            return {"role": "assistant", "content": self.answer}
        return self._message(call)

    def _message(self, call: Call) -> dict[str, Any]:
        self._calls += 1
        function = self.offered[_plain(call.tool)]
        fitted = mandates.fitted(call.tool, call.arguments, function.get("parameters") or {})
        wire = {"name": function["name"], "arguments": json.dumps(fitted, ensure_ascii=False)}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{self._calls}", "type": "function", "function": wire}]}


def quarantined(messages: list[dict[str, Any]]) -> str:
    """What a model without tools answers: whatever fits the schema that it was given, and of that the first choice, which is the
    attacker's where the attacker chose the list."""
    text = "\n".join(str(message.get("content") or "") for message in messages if message.get("role") == "system")
    for start in (at for at, letter in enumerate(text) if letter == "{"):
        try:
            schema, _ = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        return json.dumps({name: _sample(wanted) for name, wanted in schema.get("properties", {}).items()})
    return "{}"


def _sample(schema: dict[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    return {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}.get(schema.get("type"), "words")


def _result(messages: list[dict[str, Any]]) -> str:
    """What the last call gave. Ids are no help: a client may give calls ids of its own."""
    last = next((message for message in reversed(messages) if message.get("role") == "tool"), {})
    return str(last.get("content") or "")


def chunks(message: dict[str, Any], model: str) -> Iterator[dict[str, Any]]:
    """A message as a server streams it."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "chat", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]}

    yield chunk({"role": "assistant", "content": message.get("content")})
    for index, call in enumerate(message.get("tool_calls") or []):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        middle = len(arguments) // 2
        head = {"index": index, "id": call["id"], "type": "function"}
        yield chunk({"tool_calls": [{**head, "function": {"name": name, "arguments": arguments[:middle]}}]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[middle:]}}]})
    yield chunk({}, "tool_calls" if message.get("tool_calls") else "stop")
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    yield {**chunk({}), "choices": [], "usage": usage}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing: a line per request would drown the table."""

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "evals"} for name in MODELS]
            self._json(200, {"object": "list", "data": listed})
        else:
            self._json(404, {"error": {"message": f"there is no `{self.path}`"}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.endswith("/chat/completions"):
            self._json(404, {"error": {"message": f"there is no `{self.path}`"}})
            return
        conversation = self.server.conversation
        if conversation is None:
            self._json(503, {"error": {"message": "no run is under way"}})
            return
        request = json.loads(body)
        model = request.get("model") or MODELS[0]
        message = conversation.turn(request)
        if not request.get("stream"):
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            choice = {"index": 0, "message": message, "finish_reason": reason}
            self._json(200, {"id": "chat", "object": "chat.completion", "model": model, "choices": [choice]})
            return
        lines = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks(message, model))
        self._send(200, "text/event-stream", lines + b"data: [DONE]\n\n")

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        # Head and body in one write: two small ones would wait for each other's acknowledgement.
        head = f"HTTP/1.1 {status} \r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """The server of one worker."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.conversation: Conversation | None = None
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()

    @property
    def base_url(self) -> str:
        """What goes into `OPENAI_BASE_URL`."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def close(self) -> None:
        """Stops listening."""
        self.shutdown()
        self.server_close()
