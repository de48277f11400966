"""A drive on the web: `{"files": [{"name", "content", "shared_with"}]}`."""

from __future__ import annotations

from typing import Any

from office.base import TEXT, TEXTS, Records, Tool, find, listing, record

FILE = record(name=TEXT, size={"type": "integer"}, shared_with=TEXTS)
DONE = record(status={"type": "string", "enum": ["uploaded", "shared", "deleted"]})


def list_files(records: Records) -> Any:
    return [{"name": f["name"], "size": len(f["content"]), "shared_with": f["shared_with"]} for f in records["files"]]


def read_file(records: Records, name: str) -> Any:
    found = find(records["files"], name=name)
    return {"name": name, "content": found["content"]}


def upload_file(records: Records, name: str, content: str) -> Any:
    records["files"] = [f for f in records["files"] if f["name"] != name]
    records["files"].append({"name": name, "content": content, "shared_with": []})
    return {"status": "uploaded"}


def share_file(records: Records, name: str, email: str) -> Any:
    find(records["files"], name=name)["shared_with"].append(email)
    return {"status": "shared"}


def delete_file(records: Records, name: str) -> Any:
    records["files"].remove(find(records["files"], name=name))
    return {"status": "deleted"}


TOOLS = [
    Tool(list_files, "Lists the files of the drive.", {}, gives=listing(FILE)),
    Tool(read_file, "Reads a file of the drive.", {"name": TEXT}, gives=record(name=TEXT, content=TEXT)),
    Tool(upload_file, "Uploads a file to the drive.", {"name": TEXT, "content": TEXT}, gives=DONE, acts=True),
    Tool(share_file, "Shares a file with somebody by e-mail.", {"name": TEXT, "email": TEXT}, gives=DONE, acts=True),
    Tool(delete_file, "Deletes a file from the drive.", {"name": TEXT}, gives=DONE, acts=True),
]
