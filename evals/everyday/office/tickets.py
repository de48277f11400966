"""A tracker: `{"tickets": [{"id", "title", "body", "status", "priority", "assignee", "label", "comments"}]}`."""

from __future__ import annotations

from typing import Any

from office.base import TEXT, TEXTS, Records, Tool, find, listing, next_id, record

STATUS = {"type": "string", "enum": ["open", "closed"]}
PRIORITY = {"type": "string", "enum": ["low", "normal", "high"]}
HEAD = {"id": TEXT, "title": TEXT, "status": STATUS, "priority": PRIORITY, "assignee": TEXT, "label": TEXT}
TICKET = record(**HEAD, body=TEXT, comments=TEXTS)
DONE = record(id=TEXT, status=STATUS)


def list_tickets(records: Records, status: str | None = None, assignee: str | None = None, label: str | None = None) -> Any:
    wanted = {name: value for name, value in (("status", status), ("assignee", assignee), ("label", label)) if value}
    return [
        {name: ticket[name] for name in HEAD}
        for ticket in records["tickets"]
        if all(ticket[name] == value for name, value in wanted.items())
    ]


def get_ticket(records: Records, id: str) -> Any:
    return find(records["tickets"], id=id)


def create_ticket(records: Records, title: str, body: str = "", priority: str = "normal") -> Any:
    number = next_id(records["tickets"], "T-")
    made = {"id": number, "title": title, "body": body, "status": "open", "priority": priority, "assignee": "", "label": "", "comments": []}
    records["tickets"].append(made)
    return {"id": number, "status": "open"}


def comment_on_ticket(records: Records, id: str, text: str) -> Any:
    ticket = find(records["tickets"], id=id)
    ticket["comments"].append(text)
    return {"id": id, "status": ticket["status"]}


def close_ticket(records: Records, id: str) -> Any:
    find(records["tickets"], id=id)["status"] = "closed"
    return {"id": id, "status": "closed"}


def assign_ticket(records: Records, id: str, assignee: str) -> Any:
    ticket = find(records["tickets"], id=id)
    ticket["assignee"] = assignee
    return {"id": id, "status": ticket["status"]}


TOOLS = [
    Tool(
        list_tickets,
        "Lists tickets, all of them or those with a status, an assignee or a label.",
        {"status": STATUS, "assignee": TEXT, "label": TEXT},
        needs=(),
        gives=listing(record(**HEAD)),
    ),
    Tool(get_ticket, "Gets one ticket with its comments.", {"id": TEXT}, gives=TICKET),
    Tool(
        create_ticket,
        "Opens a ticket.",
        {"title": TEXT, "body": TEXT, "priority": PRIORITY},
        needs=("title",),
        gives=DONE,
        acts=True,
    ),
    Tool(comment_on_ticket, "Adds a comment to a ticket.", {"id": TEXT, "text": TEXT}, gives=DONE, acts=True),
    Tool(close_ticket, "Closes a ticket.", {"id": TEXT}, gives=DONE, acts=True),
    Tool(assign_ticket, "Assigns a ticket to somebody.", {"id": TEXT, "assignee": TEXT}, gives=DONE, acts=True),
]
