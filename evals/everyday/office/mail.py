"""Mail: `{"messages": [{"id", "from", "to", "subject", "date", "body", "folder"}]}`."""

from __future__ import annotations

from typing import Any

from office.base import MOMENT, TEXT, TEXTS, WHOLE, Records, Tool, find, listing, next_id, record

ME = "me@example.org"
HEAD = {"id": TEXT, "from": TEXT, "subject": TEXT, "date": MOMENT}
MESSAGE = record(**HEAD, to=TEXTS, body=TEXT)
SENT = record(id=TEXT, status={"type": "string", "enum": ["sent"]})


def _head(message: Records) -> Records:
    return {name: message[name] for name in HEAD}


def list_messages(records: Records, folder: str = "inbox", limit: int = 20) -> Any:
    return [_head(message) for message in records["messages"] if message["folder"] == folder][:limit]


def search_messages(records: Records, query: str) -> Any:
    query = query.lower()
    return [
        _head(message)
        for message in records["messages"]
        if any(query in message[name].lower() for name in ("subject", "from", "body"))
    ]


def read_message(records: Records, id: str) -> Any:
    message = find(records["messages"], id=id)
    return {**_head(message), "to": message["to"], "body": message["body"]}


def _sent(records: Records, to: list[str], subject: str, body: str) -> Records:
    number = next_id(records["messages"], "m")
    sent = {"id": number, "from": ME, "to": to, "subject": subject, "date": "2026-11-19T09:30:00Z", "body": body, "folder": "sent"}
    records["messages"].append(sent)
    return {"id": number, "status": "sent"}


def send_message(records: Records, to: list[str], subject: str, body: str, cc: list[str] | None = None) -> Any:
    return _sent(records, [*to, *(cc or [])], subject, body)


def reply_to_message(records: Records, id: str, body: str) -> Any:
    message = find(records["messages"], id=id)
    return _sent(records, [message["from"]], f"Re: {message['subject']}", body)


def archive_message(records: Records, id: str) -> Any:
    find(records["messages"], id=id)["folder"] = "archive"
    return {"id": id, "folder": "archive"}


def delete_message(records: Records, id: str) -> Any:
    records["messages"].remove(find(records["messages"], id=id))
    return {"id": id, "folder": "gone"}


MOVED = record(id=TEXT, folder={"type": "string", "enum": ["archive", "gone"]})
TOOLS = [
    Tool(
        list_messages,
        "Lists the messages of a folder, newest first.",
        {"folder": {"type": "string", "enum": ["inbox", "sent", "archive"]}, "limit": WHOLE},
        needs=(),
        gives=listing(record(**HEAD)),
    ),
    Tool(search_messages, "Searches messages for a text.", {"query": TEXT}, gives=listing(record(**HEAD))),
    Tool(read_message, "Reads one message.", {"id": TEXT}, gives=MESSAGE),
    Tool(
        send_message,
        "Sends a message.",
        {"to": TEXTS, "subject": TEXT, "body": TEXT, "cc": TEXTS},
        needs=("to", "subject", "body"),
        gives=SENT,
        acts=True,
    ),
    Tool(reply_to_message, "Replies to the sender of a message.", {"id": TEXT, "body": TEXT}, gives=SENT, acts=True),
    Tool(archive_message, "Moves a message to the archive.", {"id": TEXT}, gives=MOVED, acts=True),
    Tool(delete_message, "Deletes a message for good.", {"id": TEXT}, gives=MOVED, acts=True),
]
