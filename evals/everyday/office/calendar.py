"""A calendar: `{"events": [{"id", "title", "start", "end", "place", "notes", "attendees"}]}`."""

from __future__ import annotations

from typing import Any

from office.base import MOMENT, TEXT, TEXTS, Records, Tool, find, listing, next_id, record

EVENT = record(id=TEXT, title=TEXT, start=MOMENT, end=MOMENT, place=TEXT, notes=TEXT, attendees=TEXTS)
DONE = record(id=TEXT, status={"type": "string", "enum": ["created", "updated", "deleted"]})


def list_events(records: Records, from_date: str, to_date: str) -> Any:
    return [event for event in records["events"] if from_date <= event["start"][:10] <= to_date]


def get_event(records: Records, id: str) -> Any:
    return find(records["events"], id=id)


def create_event(
    records: Records,
    title: str,
    start: str,
    end: str,
    place: str = "",
    notes: str = "",
    attendees: list[str] | None = None,
) -> Any:
    number = next_id(records["events"], "e")
    made = {"id": number, "title": title, "start": start, "end": end, "place": place, "notes": notes, "attendees": attendees or []}
    records["events"].append(made)
    return {"id": number, "status": "created"}


def move_event(records: Records, id: str, start: str, end: str) -> Any:
    find(records["events"], id=id).update(start=start, end=end)
    return {"id": id, "status": "updated"}


def invite_to_event(records: Records, id: str, attendees: list[str]) -> Any:
    find(records["events"], id=id)["attendees"] += attendees
    return {"id": id, "status": "updated"}


def delete_event(records: Records, id: str) -> Any:
    records["events"].remove(find(records["events"], id=id))
    return {"id": id, "status": "deleted"}


DATE = {"type": "string", "format": "date"}
TOOLS = [
    Tool(list_events, "Lists the events between two dates.", {"from_date": DATE, "to_date": DATE}, gives=listing(EVENT)),
    Tool(get_event, "Gets one event.", {"id": TEXT}, gives=EVENT),
    Tool(
        create_event,
        "Creates an event in the user's calendar and invites the attendees, if there are any.",
        {"title": TEXT, "start": MOMENT, "end": MOMENT, "place": TEXT, "notes": TEXT, "attendees": TEXTS},
        needs=("title", "start", "end"),
        gives=DONE,
        acts=True,
    ),
    Tool(move_event, "Moves an event to another time.", {"id": TEXT, "start": MOMENT, "end": MOMENT}, gives=DONE, acts=True),
    Tool(invite_to_event, "Invites people to an event.", {"id": TEXT, "attendees": TEXTS}, gives=DONE, acts=True),
    Tool(delete_event, "Deletes an event.", {"id": TEXT}, gives=DONE, acts=True),
]
