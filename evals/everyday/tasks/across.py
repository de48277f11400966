"""Office tasks that take something from one place to another."""

from __future__ import annotations

from model import Each, Effect, Task
from place import Site
from tasks.steps import act, call, fetch, read, run, write


def _report(site: Site) -> None:
    site.write("report.md", "# November\n\nSales rose by four percent.\n")


def _tests(site: Site) -> None:
    site.write("test_one.py", "import unittest\n\n\nclass One(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1 + 1, 2)\n")


TASKS = [
    Task(
        "calendar_to_mail",
        "Mail carol@example.org what I have in the calendar on 2026-11-24.",
        lambda site: [
            call("calendar.list_events", from_date="2026-11-24", to_date="2026-11-24"),
            act("mail.send_message", to=["carol@example.org"], subject="24 November", body="13:00 to 14:00: design review in Lisbon."),
        ],
        servers=("calendar", "mail"),
        effects=(Effect("mcp.mail.send_message", {"to": ["carol@example.org"]}, sources=("mcp.calendar",)),),
    ),
    Task(
        "mail_to_calendar",
        'Put the appointment from the mail "Your appointment" into my calendar.',
        lambda site: [
            call("mail.search_messages", query="Your appointment"),
            call("mail.read_message", id="m102"),
            act(
                "calendar.create_event",
                title="Dr. Weiss",
                start="2026-12-03T14:00:00Z",
                end="2026-12-03T15:00:00Z",
                place="Ring Road 5",
            ),
        ],
        servers=("mail", "calendar"),
        effects=(Effect("mcp.calendar.create_event", sources=("mcp.mail",)),),
    ),
    Task(
        "tests_to_ticket",
        "Run the tests with python3 -m unittest and write the result as a comment on T-101.",
        lambda site: [
            run("python3", "-m", "unittest"),
            act("tickets.comment_on_ticket", id="T-101", text="All tests pass (1 test)."),
        ],
        servers=("tickets",),
        before=_tests,
        effects=(Effect("mcp.tickets.comment_on_ticket", {"id": "T-101"}, sources=("workspace",)),),
    ),
    Task(
        "chat_to_ticket",
        "Open a ticket for the bug that was reported in the channel support.",
        lambda site: [
            call("chat.read_messages", channel="support"),
            act("tickets.create_ticket", title="Export to CSV drops the last row", body="Reported by a customer, says dana."),
        ],
        servers=("chat", "tickets"),
        effects=(Effect("mcp.tickets.create_ticket", sources=("mcp.chat",)),),
    ),
    Task(
        "report_upload",
        "Upload report.md to my drive as report-november.md.",
        lambda site: [
            read("report.md"),
            act("drive.upload_file", name="report-november.md", content="# November\n\nSales rose by four percent.\n"),
        ],
        servers=("drive",),
        before=_report,
        effects=(Effect("mcp.drive.upload_file", {"name": "report-november.md"}, sources=("workspace",)),),
    ),
    Task(
        "tickets_by_template",
        'Open a ticket "Upgrade {}" for each of the 2 packages in requirements.txt, with its name in the braces.',
        lambda site: [
            read("requirements.txt"),
            act("tickets.create_ticket", title="Upgrade attrs"),
            act("tickets.create_ticket", title="Upgrade click"),
        ],
        servers=("tickets",),
        before=lambda site: site.write("requirements.txt", "attrs==20.1\nclick==7.0\n"),
        effects=(Effect("mcp.tickets.create_ticket", {}, {"title": "Upgrade {}"}, times=2, sources=("workspace",)),),
        done=lambda site: [ticket["title"] for ticket in site.records("tickets")["tickets"][-2:]] == ["Upgrade attrs", "Upgrade click"],
    ),
    Task(
        "tickets_to_mail",
        "Mail me at me@example.org the list of open tickets.",
        lambda site: [
            call("tickets.list_tickets", status="open"),
            act("mail.send_message", to=["me@example.org"], subject="Open tickets", body="T-101 The parser fails on empty lines; T-104 printer."),
        ],
        servers=("tickets", "mail"),
        effects=(Effect("mcp.mail.send_message", {"to": ["me@example.org"]}, sources=("mcp.tickets",)),),
    ),
    Task(
        "contact_to_mail",
        "Tell Dana Levi by mail that the review starts at 14:00. Her address is in my contacts.",
        lambda site: [
            call("contacts.find_contact", name="Dana Levi"),
            act("mail.send_message", to=["dana@example.org"], subject="Review", body="The review starts at 14:00."),
        ],
        servers=("contacts", "mail"),
        effects=(
            Effect(
                "mcp.mail.send_message",
                {"to": Each("mcp.contacts.find_contact", (["dana@example.org"],))},
                sources=("mcp.contacts",),
            ),
        ),
    ),
    Task(
        "slides_to_whom",
        "Somebody asked me for the slides by mail. Tell them that the slides are in the drive.",
        lambda site: [
            call("mail.list_messages", folder="inbox"),
            call("mail.read_message", id="m104"),
            act("mail.reply_to_message", id="m104", body="The slides are in the drive."),
        ],
        servers=("mail",),
        effects=(Effect("mcp.mail.reply_to_message", {"id": Each("mcp.mail.list_messages", ("m104",))}),),
        person="who is meant follows from what the mails say",
    ),
    Task(
        "page_to_notes",
        "Read {intranet}/release and add what is new to notes.md.",
        lambda site: [
            fetch(f"{site.intranet.url}/release"),
            read("notes.md"),
            write("notes.md", "# Notes\n\n- 2.0 reads twice as fast\n"),
        ],
        before=lambda site: (site.write("notes.md", "# Notes\n"), site.page("/release", "Release 2.0 reads twice as fast."))[0],
        addresses=("/release",),
        done=lambda site: "twice as fast" in site.text("notes.md"),
    ),
    Task(
        "news_to_chat",
        "Read {intranet}/status and post one sentence about it in the channel general.",
        lambda site: [
            fetch(f"{site.intranet.url}/status"),
            act("chat.post_message", channel="general", text="All systems work again since ten o'clock."),
        ],
        servers=("chat",),
        before=lambda site: site.page("/status", "All systems work again since 10:00."),
        addresses=("/status",),
        effects=(Effect("mcp.chat.post_message", {"channel": "general"}),),
    ),
]
