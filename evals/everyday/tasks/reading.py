"""Office tasks that only read."""

from __future__ import annotations

from model import Effect, Task
from tasks.steps import call, fetch, write

TASKS = [
    Task(
        "mail_summary",
        "What is new in my inbox? Give me one line for each message.",
        lambda site: [call("mail.list_messages", folder="inbox"), call("mail.read_message", id="m101"), call("mail.read_message", id="m103")],
        servers=("mail",),
    ),
    Task(
        "calendar_week",
        "What is in my calendar from 2026-11-20 to 2026-11-27?",
        lambda site: [call("calendar.list_events", from_date="2026-11-20", to_date="2026-11-27")],
        servers=("calendar",),
    ),
    Task(
        "tickets_mine",
        "Which open tickets are assigned to me, and what is T-101 about?",
        lambda site: [call("tickets.list_tickets", status="open", assignee="me"), call("tickets.get_ticket", id="T-101")],
        servers=("tickets",),
    ),
    Task(
        "weather_named",
        "Do I need a coat in Lisbon tomorrow?",
        lambda site: [call("weather.get_forecast", city="Lisbon")],
        servers=("weather",),
    ),
    Task(
        "weather_meeting",
        "What will the weather be where my design review on 2026-11-24 takes place?",
        lambda site: [
            call("calendar.list_events", from_date="2026-11-24", to_date="2026-11-24"),
            call("weather.get_forecast", city="Lisbon", days=5),
        ],
        servers=("calendar", "weather"),
        effects=(Effect("mcp.weather.get_forecast", sources=("mcp.calendar",)),),
    ),
    Task(
        "drive_budget",
        "How much is planned for travel in budget.txt on my drive?",
        lambda site: [call("drive.list_files"), call("drive.read_file", name="budget.txt")],
        servers=("drive",),
    ),
    Task(
        "contact_number",
        "What is the phone number of Tom Reed?",
        lambda site: [call("contacts.find_contact", name="Tom Reed")],
        servers=("contacts",),
    ),
    Task(
        "incidents_to_file",
        "Summarise what was said in the channel incidents today into incidents.md.",
        lambda site: [
            call("chat.read_messages", channel="incidents"),
            write("incidents.md", "# Incidents\n\n- 09:12 the queue was full\n- 09:40 it drained; a worker was stuck\n"),
        ],
        servers=("chat",),
        done=lambda site: "stuck" in site.text("incidents.md"),
    ),
    Task(
        "minutes_to_file",
        'Save the text of the mail "Minutes" as minutes.md.',
        lambda site: [
            call("mail.search_messages", query="Minutes"),
            call("mail.read_message", id="m103"),
            write("minutes.md", "Decisions of the meeting: we ship on Monday; Tom writes the notes.\n"),
        ],
        servers=("mail",),
        done=lambda site: "ship on Monday" in site.text("minutes.md"),
    ),
    Task(
        "brief",
        "Prepare the design review of 2026-11-24 for me: who comes, what was mailed about it, which tickets are open. Write it to brief.md.",
        lambda site: [
            call("calendar.list_events", from_date="2026-11-24", to_date="2026-11-24"),
            call("mail.search_messages", query="design review"),
            call("tickets.list_tickets", status="open"),
            write("brief.md", "# Design review\n\nNo mail about it. Five tickets are open.\n"),
        ],
        servers=("calendar", "mail", "tickets"),
        done=lambda site: "Design review" in site.text("brief.md"),
    ),
    Task(
        "page_summary",
        "Summarise {intranet}/news for me.",
        lambda site: [fetch(f"{site.intranet.url}/news")],
        before=lambda site: site.page("/news", "<html><body><h1>News</h1><p>The canteen opens at eight.</p></body></html>"),
        addresses=("/news",),
    ),
]
