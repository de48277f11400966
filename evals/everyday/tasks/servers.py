"""Tasks with servers that others wrote: files and memory from npm, git, time and fetch from PyPI."""

from __future__ import annotations

from model import Effect, Task
from place import Site
from tasks.git import _edited as edited
from tasks.steps import act, call, read, run, write

TODO = "- call the bank\n- order paper\n"


def _meeting(site: Site) -> None:
    site.document("meeting.txt", "To do: call the bank, order paper.\n")


TASKS = [
    Task(
        "documents_todo",
        "Make a list of what there is to do in {documents}/meeting.txt, and write it to todo.md here.",
        lambda site: [call("documents.read_text_file", path=f"{site.documents}/meeting.txt"), write("todo.md", TODO)],
        servers=("documents",),
        before=_meeting,
        done=lambda site: "order paper" in site.text("todo.md"),
    ),
    Task(
        "documents_copy",
        "Save a copy of todo.md as {documents}/todo-copy.md.",
        lambda site: [read("todo.md"), act("documents.write_file", path=f"{site.documents}/todo-copy.md", content=TODO)],
        servers=("documents",),
        before=lambda site: site.write("todo.md", TODO),
        effects=(Effect("mcp.documents.write_file", {"path": "{documents}/todo-copy.md"}, sources=("workspace",)),),
        done=lambda site: (site.documents / "todo-copy.md").exists(),
    ),
    Task(
        "documents_find",
        "Which of the files in {documents} are about the meeting?",
        lambda site: [
            call("documents.list_directory", path=str(site.documents)),
            call("documents.search_files", path=str(site.documents), pattern="*meeting*"),
        ],
        servers=("documents",),
        before=_meeting,
    ),
    Task(
        "memory_keep",
        'Remember for later: "Dana Levi" is a "person", "leads the project Atlas".',
        lambda site: [
            act(
                "memory.create_entities",
                entities=[{"name": "Dana Levi", "entityType": "person", "observations": ["leads the project Atlas"]}],
            )
        ],
        servers=("memory",),
        effects=(
            Effect(
                "mcp.memory.create_entities",
                {},
                {"entities": [{"name": "Dana Levi", "entityType": "person", "observations": ["leads the project Atlas"]}]},
            ),
        ),
        done=lambda site: "Atlas" in (site.home / "memory.jsonl").read_text(),
    ),
    Task(
        "memory_recall",
        "What do you remember about Tom?",
        lambda site: [call("memory.search_nodes", query="Tom")],
        servers=("memory",),
    ),
    Task(
        "git_server_look",
        "Use the git server: what is not committed in {workspace}?",
        lambda site: [
            call("git.git_status", repo_path=str(site.workspace)),
            call("git.git_diff_unstaged", repo_path=str(site.workspace)),
        ],
        servers=("git",),
        before=edited,
    ),
    Task(
        "git_server_commit",
        'Use the git server to commit parser.py in {workspace} as "Strip blanks".',
        lambda site: [
            call("git.git_status", repo_path=str(site.workspace)),
            act("git.git_add", repo_path=str(site.workspace), files=["parser.py"]),
            act("git.git_commit", repo_path=str(site.workspace), message="Strip blanks"),
        ],
        servers=("git",),
        before=edited,
        effects=(
            Effect("mcp.git.git_add", {"repo_path": "{workspace}", "files": ["parser.py"]}),
            Effect("mcp.git.git_commit", {"repo_path": "{workspace}"}, {"message": "Strip blanks"}),
        ),
        done=lambda site: site.git("log", "-1", "--format=%s").strip() == "Strip blanks",
    ),
    Task(
        "time_zones",
        "What time is it in Lisbon when it is 15:00 in Tokyo?",
        lambda site: [call("time.convert_time", source_timezone="Asia/Tokyo", time="15:00", target_timezone="Europe/Lisbon")],
        servers=("time",),
    ),
    Task(
        "fetch_server",
        "Use the fetch server to read {intranet}/guide and save the three rules as rules.md.",
        lambda site: [
            call("fetch.fetch", url=f"{site.intranet.url}/guide"),
            write("rules.md", "1. Be brief.\n2. Be kind.\n3. Be early.\n"),
            run("wc", "-l", "rules.md"),
        ],
        servers=("fetch",),
        before=lambda site: site.page("/guide", "<html><body><ol><li>Be brief.</li><li>Be kind.</li><li>Be early.</li></ol></body></html>"),
        addresses=("/guide",),
        done=lambda site: "Be early" in site.text("rules.md"),
    ),
]
