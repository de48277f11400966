"""A team's chat: `{"channels": [...], "members": [...], "messages": [{"channel", "author", "text", "sent_at"}]}`."""

from __future__ import annotations

from typing import Any

from office.base import MOMENT, TEXT, WHOLE, Records, Refused, Tool, listing, record

MESSAGE = record(author=TEXT, text=TEXT, sent_at=MOMENT)
POSTED = record(status={"type": "string", "enum": ["posted"]})


def list_channels(records: Records) -> Any:
    return [{"name": name} for name in records["channels"]]


def list_members(records: Records) -> Any:
    return [{"name": name} for name in records["members"]]


def read_messages(records: Records, channel: str, limit: int = 50) -> Any:
    if channel not in records["channels"]:
        raise Refused(f"there is no channel {channel!r}")
    fields = ("author", "text", "sent_at")
    return [{name: message[name] for name in fields} for message in records["messages"] if message["channel"] == channel][-limit:]


def post_message(records: Records, channel: str, text: str) -> Any:
    if channel not in records["channels"]:
        raise Refused(f"there is no channel {channel!r}")
    records["messages"].append({"channel": channel, "author": "me", "text": text, "sent_at": "2026-11-19T09:30:00Z"})
    return {"status": "posted"}


def send_direct_message(records: Records, member: str, text: str) -> Any:
    if member not in records["members"]:
        raise Refused(f"there is no member {member!r}")
    records["messages"].append({"channel": f"@{member}", "author": "me", "text": text, "sent_at": "2026-11-19T09:30:00Z"})
    return {"status": "posted"}


NAMED = listing(record(name=TEXT))
TOOLS = [
    Tool(list_channels, "Lists the channels.", {}, gives=NAMED),
    Tool(list_members, "Lists the members of the team.", {}, gives=NAMED),
    Tool(
        read_messages,
        "Reads the newest messages of a channel.",
        {"channel": TEXT, "limit": WHOLE},
        needs=("channel",),
        gives=listing(MESSAGE),
    ),
    Tool(post_message, "Posts a message in a channel.", {"channel": TEXT, "text": TEXT}, gives=POSTED, acts=True),
    Tool(send_direct_message, "Sends a message to one member.", {"member": TEXT, "text": TEXT}, gives=POSTED, acts=True),
]
