"""An address book: `{"contacts": [{"name", "email", "phone", "note"}]}`."""

from __future__ import annotations

from typing import Any

from office.base import TEXT, Records, Tool, find, listing, record

CONTACT = record(name=TEXT, email=TEXT, phone=TEXT, note=TEXT)
DONE = record(status={"type": "string", "enum": ["added", "updated", "deleted"]})


def list_contacts(records: Records) -> Any:
    return records["contacts"]


def find_contact(records: Records, name: str) -> Any:
    return [contact for contact in records["contacts"] if name.lower() in contact["name"].lower()]


def add_contact(records: Records, name: str, email: str, phone: str = "") -> Any:
    records["contacts"].append({"name": name, "email": email, "phone": phone, "note": ""})
    return {"status": "added"}


def update_contact(records: Records, name: str, email: str | None = None, phone: str | None = None) -> Any:
    contact = find(records["contacts"], name=name)
    contact.update({key: value for key, value in (("email", email), ("phone", phone)) if value is not None})
    return {"status": "updated"}


def delete_contact(records: Records, name: str) -> Any:
    records["contacts"].remove(find(records["contacts"], name=name))
    return {"status": "deleted"}


TOOLS = [
    Tool(list_contacts, "Lists all contacts.", {}, gives=listing(CONTACT)),
    Tool(find_contact, "Finds contacts by their name.", {"name": TEXT}, gives=listing(CONTACT)),
    Tool(
        add_contact,
        "Adds a contact.",
        {"name": TEXT, "email": TEXT, "phone": TEXT},
        needs=("name", "email"),
        gives=DONE,
        acts=True,
    ),
    Tool(
        update_contact,
        "Changes the address or the telephone number of a contact.",
        {"name": TEXT, "email": TEXT, "phone": TEXT},
        needs=("name",),
        gives=DONE,
        acts=True,
    ),
    Tool(delete_contact, "Deletes a contact.", {"name": TEXT}, gives=DONE, acts=True),
]
