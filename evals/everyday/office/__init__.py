"""Seven servers of an office: mail, calendar, tickets, chat, contacts, weather and a drive.

Each is a program of its own that speaks the protocol over standard input and output, keeps its records in a file and writes every call
that it carries out into a log, which is what the oracle reads. Names, descriptions and schemas are what an ordinary author of such a
server would publish.
"""
