//! The lists of words that the rules go by. `docs/mcp.md` shows what follows from each.

/// Verbs of tools that only look.
pub(super) const READING: &[&str] = &[
    "analyse", "analyze", "browse", "calculate", "can", "cat", "check", "compare", "compute", "convert", "count",
    "describe", "detect", "diff", "echo", "estimate", "explain", "extract", "fetch", "filter", "find", "get",
    "grep", "has", "head", "help", "inspect", "is", "list", "lookup", "ls", "measure", "peek", "ping", "preview",
    "query", "read", "recommend", "retrieve", "search", "show", "sort", "stat", "suggest", "summarise", "summarize",
    "tail", "translate", "view", "whoami",
];

/// Verbs of tools that act, and that are hardly ever nouns.
pub(super) const ACTING: &[&str] = &[
    "accept", "add", "append", "apply", "approve", "archive", "assign", "attach", "ban", "block", "buy", "cancel",
    "change", "checkout", "clear", "click", "clone", "close", "commit", "configure", "confirm", "connect", "copy",
    "create", "decline", "delete", "deploy", "deposit", "destroy", "detach", "disable", "disconnect", "drop",
    "duplicate", "edit", "enable", "erase", "eval", "evaluate", "execute", "follow", "fork", "forward", "grant",
    "hire", "import", "insert", "install", "invite", "invoke", "join", "kick", "kill", "launch", "leave", "lock",
    "log", "login", "logout", "make", "mark", "merge", "modify", "move", "mute", "notify", "open", "overwrite",
    "patch", "pay", "publish", "purchase", "purge", "push", "put", "react", "redeem", "refund", "register",
    "reject", "remove", "rename", "reopen", "replace", "reply", "reschedule", "reserve", "reset", "restart",
    "restore", "revert", "revoke", "rotate", "rsvp", "save", "sell", "send", "set", "shutdown", "sign", "start",
    "stop", "submit", "subscribe", "swap", "sync", "terminate", "trash", "trigger", "tweet", "type", "unarchive",
    "unassign", "unblock", "undo", "unfollow", "uninstall", "unlock", "unsubscribe", "update", "upload", "upsert",
    "vote", "withdraw", "write",
];

/// Words that act where they stand as the verb, and are nouns elsewhere.
pub(super) const VERB_OR_NOUN: &[&str] = &[
    "book", "call", "charge", "comment", "email", "export", "label", "like", "mail", "message", "note", "order",
    "pin", "plan", "post", "process", "rate", "record", "report", "request", "review", "run", "schedule", "share",
    "star", "store", "tag", "text", "transfer", "watch",
];

/// Verbs after which something is gone: what they are pointed at is the effect.
pub(super) const DESTROYING: &[&str] = &[
    "archive", "ban", "cancel", "clear", "close", "delete", "destroy", "drop", "erase", "kick", "kill", "purge",
    "remove", "revoke", "terminate", "trash", "uninstall", "unsubscribe", "wipe",
];

/// Verbs that bring something new into being, whose name is then part of its content.
pub(super) const CREATING: &[&str] = &[
    "create", "make", "rename", "new", "open", "reschedule", "schedule", "update",
];

/// People: their names are where something goes.
pub(super) const PEOPLE: &[&str] = &[
    "attendee", "contact", "customer", "guest", "invite", "invitee", "member", "participant", "people", "person",
    "user",
];

/// Where a request over a network goes.
pub(super) const NETWORK: &[&str] = &[
    "callback", "domain", "endpoint", "host", "hostname", "href", "ip", "link", "proxy", "redirect", "uri", "url",
    "webhook", "website",
];

/// Who or what something goes to.
pub(super) const DESTINATION: &[&str] = &[
    "account", "address", "assignee", "attendee", "bank", "bcc", "beneficiary", "bic", "branch", "bucket",
    "calendar", "cc", "channel", "chat", "contact", "customer", "database", "destination", "device", "email",
    "group", "guest", "handle", "iban", "invitee", "mail", "mailbox", "member", "mobile", "organisation",
    "organization", "owner", "participant", "payee", "people", "person", "phone", "project", "queue", "receiver",
    "recipient", "remote", "repo", "repository", "reviewer", "room", "server", "site", "swift", "table", "target",
    "team", "to", "topic", "user", "username", "wallet", "workspace",
];

/// Ids of these are addresses, not records.
pub(super) const ADDRESSED_BY_ID: &[&str] = &[
    "account", "beneficiary", "channel", "chat", "contact", "conversation", "customer", "destination", "device",
    "group", "guild", "member", "organisation", "organization", "org", "payee", "phone", "receiver", "recipient",
    "room", "server", "target", "team", "user", "wallet", "workspace",
];

/// Numbers that are addresses.
pub(super) const NUMERIC_ADDRESS: &[&str] = &[
    "account", "card", "iban", "payee", "phone", "recipient", "routing",
];

/// What opens a door.
pub(super) const CREDENTIAL: &[&str] = &[
    "apikey", "credential", "cvc", "cvv", "mnemonic", "otp", "passcode", "passphrase", "passwd", "password", "pwd",
    "secret",
];

/// With one of these a key is what opens a door.
pub(super) const KEY_TO: &[&str] = &[
    "access", "api", "auth", "encryption", "license", "master", "private", "secret", "signing", "ssh",
];

/// With one of these a token is only a place in a list, or a measure of text.
pub(super) const HARMLESS_TOKEN: &[&str] = &[
    "continuation", "cursor", "delta", "max", "next", "page", "skip", "start", "sync",
];

/// With one of these a code is what opens a door.
pub(super) const CODE_TO: &[&str] = &[
    "2fa", "access", "auth", "authentication", "authorization", "mfa", "security", "sms", "verification",
];

/// With one of these a code is a word out of a catalogue.
pub(super) const CATALOGUE_CODE: &[&str] = &[
    "airport", "area", "bar", "booking", "color", "colour", "confirmation", "country", "coupon", "currency", "dial",
    "discount", "error", "exchange", "iata", "lang", "language", "locale", "postal", "product", "promo", "qr",
    "reference", "region", "sort", "state", "station", "status", "tax", "zip",
];

/// What is executed.
pub(super) const COMMAND: &[&str] = &[
    "bash", "cmd", "command", "cypher", "javascript", "lua", "powershell", "python", "script", "shell", "sparql",
    "sql",
];

/// What is executed where the tool talks to something that executes queries.
pub(super) const QUERY: &[&str] = &[
    "graphql", "mutation", "query", "statement",
];

/// Words by which a tool shows that it executes queries.
pub(super) const EXECUTES_QUERIES: &[&str] = &[
    "cypher", "database", "graphql", "mongodb", "mysql", "postgres", "postgresql", "sparql", "sql", "sqlite",
];

/// What is evaluated, where the tool acts.
pub(super) const EXPRESSION: &[&str] = &[
    "expression", "formula", "jq", "regex", "xpath",
];

/// Which file is touched.
pub(super) const PATH: &[&str] = &[
    "dir", "directory", "file", "filename", "filepath", "folder", "path",
];

/// How much, as the last word of a name.
pub(super) const AMOUNT: &[&str] = &[
    "amount", "budget", "cost", "fee", "payment", "price", "qty", "quantity", "salary", "sum", "tip", "total",
];

/// With one of these a limit is about money.
pub(super) const MONEY_LIMIT: &[&str] = &[
    "credit", "daily", "overdraft", "spend", "spending", "transfer", "withdrawal",
];

/// What is written or sent, as the last word of a name.
pub(super) const CONTENT: &[&str] = &[
    "at", "body", "caption", "comment", "content", "contents", "data", "date", "datetime", "day", "deadline",
    "description", "detail", "details", "due", "duration", "emoji", "end", "feedback", "headline", "hour", "html",
    "input", "instructions", "markdown", "memo", "message", "minute", "month", "note", "notes", "paragraph",
    "payload", "prompt", "question", "reason", "reminder", "reply", "start", "subject", "summary", "text", "time",
    "timestamp", "title", "until", "when", "year",
];

/// Small settings that say how, not where, as the last word of a name.
pub(super) const SETTING: &[&str] = &[
    "category", "color", "colour", "currency", "format", "importance", "lang", "language", "locale", "priority",
    "severity", "status", "timezone", "tz", "unit",
];

/// Words of tools that fetch from the open web.
pub(super) const OPEN_WEB: &[&str] = &[
    "internet", "news", "web", "webpage", "website", "wikipedia",
];

/// Things of the user's own that are listed by name.
pub(super) const OWN_LISTS: &[&str] = &[
    "accounts", "boards", "branches", "buckets", "calendars", "categories", "channels", "collections", "contacts",
    "databases", "directories", "folders", "groups", "labels", "mailboxes", "members", "notebooks", "playlists",
    "projects", "queues", "repositories", "repos", "rooms", "spaces", "tables", "tags", "teams", "users",
    "workspaces",
];

/// Words of an address book.
pub(super) const CONTACTS: &[&str] = &[
    "addressbook", "contact",
];

/// Fields that name something in a list.
pub(super) const NAME_FIELD: &[&str] = &[
    "handle", "key", "login", "name", "slug", "username",
];

/// Fields of an address book by which somebody is reached.
pub(super) const REACH_FIELD: &[&str] = &[
    "email", "mail", "mobile", "name", "phone",
];

/// Fields that say who wrote a record.
pub(super) const AUTHOR_FIELD: &[&str] = &[
    "author", "from", "sender", "user", "username",
];

/// The same in two words, before `by`.
pub(super) const AUTHORED_BY: &[&str] = &[
    "authored", "created", "posted", "sent", "submitted", "written",
];

/// Fields that the store itself fills in, as the last word of a name.
pub(super) const ASSIGNED_FIELD: &[&str] = &[
    "created", "currency", "date", "datetime", "guid", "id", "ids", "status", "time", "timestamp", "type",
    "updated", "uuid",
];

/// Words after which the object of a name's verb is over: `users_in_channel`.
pub(super) const PREPOSITIONS: &[&str] = &[
    "at", "by", "for", "from", "in", "into", "of", "on", "to", "under", "via", "with", "within",
];
