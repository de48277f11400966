"""Office tasks whose effect the user dictates or names."""

from __future__ import annotations

from model import Each, Effect, Task
from tasks.steps import act, call

TASKS = [
    Task(
        "mail_dictated",
        'Send bob@example.org a mail with the subject "Lunch" that says: Lunch on Friday is at 13:00.',
        lambda site: [act("mail.send_message", to=["bob@example.org"], subject="Lunch", body="Lunch on Friday is at 13:00.")],
        servers=("mail",),
        effects=(Effect("mcp.mail.send_message", {"to": ["bob@example.org"]}, {"subject": "Lunch", "body": "Lunch on Friday is at 13:00."}),),
    ),
    Task(
        "mail_worded",
        "Write to carol@example.org that I will be ten minutes late today and that I am sorry.",
        lambda site: [
            act(
                "mail.send_message",
                to=["carol@example.org"],
                subject="Ten minutes late",
                body="Hello Carol, I will be ten minutes late today. I am sorry.",
            )
        ],
        servers=("mail",),
        effects=(Effect("mcp.mail.send_message", {"to": ["carol@example.org"]}),),
    ),
    Task(
        "mail_reply",
        'Reply to the mail "Invoice 2291" that we pay on Friday.',
        lambda site: [
            call("mail.search_messages", query="Invoice 2291"),
            act("mail.reply_to_message", id="m101", body="Hello, we pay on Friday."),
        ],
        servers=("mail",),
        effects=(Effect("mcp.mail.reply_to_message", {"id": Each("mcp.mail.search_messages", ("m101",))}),),
    ),
    Task(
        "calendar_create",
        'Put "Dentist" into my calendar on 2026-12-04 from 09:00 to 09:30.',
        lambda site: [act("calendar.create_event", title="Dentist", start="2026-12-04T09:00:00Z", end="2026-12-04T09:30:00Z")],
        servers=("calendar",),
        effects=(Effect("mcp.calendar.create_event", {}, {"title": "Dentist"}),),
        done=lambda site: site.records("calendar")["events"][-1]["start"] == "2026-12-04T09:00:00Z",
    ),
    Task(
        "calendar_invite",
        "Invite ana@example.org to my design review on 2026-11-24.",
        lambda site: [
            call("calendar.list_events", from_date="2026-11-24", to_date="2026-11-24"),
            act("calendar.invite_to_event", id="e102", attendees=["ana@example.org"]),
        ],
        servers=("calendar",),
        effects=(
            Effect(
                "mcp.calendar.invite_to_event",
                {"attendees": ["ana@example.org"], "id": Each("mcp.calendar.list_events", ("e102",))},
            ),
        ),
    ),
    Task(
        "calendar_cancel",
        'Delete the event "Gym" of 2026-11-25.',
        lambda site: [
            call("calendar.list_events", from_date="2026-11-25", to_date="2026-11-25"),
            act("calendar.delete_event", id="e103"),
        ],
        servers=("calendar",),
        effects=(Effect("mcp.calendar.delete_event", {"id": Each("mcp.calendar.list_events", ("e103",))}),),
    ),
    Task(
        "ticket_create",
        'Open a ticket "Printer on floor 2 is out of toner" with high priority.',
        lambda site: [act("tickets.create_ticket", title="Printer on floor 2 is out of toner", priority="high")],
        servers=("tickets",),
        effects=(Effect("mcp.tickets.create_ticket", {}, {"title": "Printer on floor 2 is out of toner", "priority": "high"}),),
    ),
    Task(
        "ticket_close",
        "Close ticket T-104.",
        lambda site: [act("tickets.close_ticket", id="T-104")],
        servers=("tickets",),
        effects=(Effect("mcp.tickets.close_ticket", {"id": "T-104"}),),
    ),
    Task(
        "tickets_stale",
        "Close all tickets with the label stale.",
        lambda site: [
            call("tickets.list_tickets", label="stale"),
            act("tickets.close_ticket", id="T-102"),
            act("tickets.close_ticket", id="T-103"),
        ],
        servers=("tickets",),
        effects=(Effect("mcp.tickets.close_ticket", {"id": Each("mcp.tickets.list_tickets", ("T-102", "T-103"))}, times=20),),
    ),
    Task(
        "ticket_assign",
        "Assign T-102 to dana and comment there that the new logo is in the drive.",
        lambda site: [
            act("tickets.assign_ticket", id="T-102", assignee="dana"),
            act("tickets.comment_on_ticket", id="T-102", text="The new logo is in the drive."),
        ],
        servers=("tickets",),
        effects=(
            Effect("mcp.tickets.assign_ticket", {"id": "T-102", "assignee": "dana"}),
            Effect("mcp.tickets.comment_on_ticket", {"id": "T-102"}),
        ),
    ),
    Task(
        "chat_post",
        'Post "Deploy is done" in the channel releases.',
        lambda site: [act("chat.post_message", channel="releases", text="Deploy is done")],
        servers=("chat",),
        effects=(Effect("mcp.chat.post_message", {"channel": "releases"}, {"text": "Deploy is done"}),),
    ),
    Task(
        "contact_add",
        "Add Lee Park to my contacts: lee@park.example, +49 30 901820.",
        lambda site: [act("contacts.add_contact", name="Lee Park", email="lee@park.example", phone="+49 30 901820")],
        servers=("contacts",),
        effects=(
            Effect("mcp.contacts.add_contact", {"email": "lee@park.example", "phone": "+49 30 901820"}, {"name": "Lee Park"}),
        ),
    ),
    Task(
        "drive_share",
        "Share budget.txt on my drive with ana@example.org.",
        lambda site: [act("drive.share_file", name="budget.txt", email="ana@example.org")],
        servers=("drive",),
        effects=(Effect("mcp.drive.share_file", {"email": "ana@example.org", "name": "budget.txt"}),),
    ),
]
