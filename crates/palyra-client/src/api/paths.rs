//! The addresses of the API, written once for the server's router and for the client.
//!
//! Templates use `{name}` for path parameters, which is also the router's syntax; the functions fill them in. Ids are ULIDs
//! and numbers, so nothing needs escaping.

use palyra_common::{ApprovalId, RunId, SessionId};

/// Health of the daemon; the only route that needs no authentication.
pub const HEALTH: &str = "/healthz";
/// Collection of runs: list and create.
pub const RUNS: &str = "/api/v1/runs";
/// One run.
pub const RUN: &str = "/api/v1/runs/{id}";
/// A run's events.
pub const RUN_TAPE: &str = "/api/v1/runs/{id}/tape";
/// Ends a run.
pub const RUN_ABORT: &str = "/api/v1/runs/{id}/abort";
/// Holds a run.
pub const RUN_PAUSE: &str = "/api/v1/runs/{id}/pause";
/// Lets a held run go on.
pub const RUN_RESUME: &str = "/api/v1/runs/{id}/resume";
/// Steers a run with a further message.
pub const RUN_INPUT: &str = "/api/v1/runs/{id}/input";
/// Takes back the file changes of a run.
pub const RUN_UNDO: &str = "/api/v1/runs/{id}/undo";
/// Feeds a run's tape to the machine again and compares.
pub const RUN_REPLAY: &str = "/api/v1/runs/{id}/replay";
/// Changes what a run is meant to do.
pub const RUN_ENVELOPE: &str = "/api/v1/runs/{id}/envelope";
/// Questions put to a person.
pub const APPROVALS: &str = "/api/v1/approvals";
/// Answers one question.
pub const APPROVAL_DECIDE: &str = "/api/v1/approvals/{id}/decide";
/// One question.
pub const APPROVAL: &str = "/api/v1/approvals/{id}";
/// What people agreed to for longer than once.
pub const PATTERNS: &str = "/api/v1/approval-patterns";
/// Takes one of them back.
pub const PATTERN_REVOKE: &str = "/api/v1/approval-patterns/{id}/revoke";
/// Collection of sessions.
pub const SESSIONS: &str = "/api/v1/sessions";
/// One session with its runs.
pub const SESSION: &str = "/api/v1/sessions/{id}";
/// The newest journal records.
pub const JOURNAL_TAIL: &str = "/api/v1/journal/tail";
/// Checks the whole journal.
pub const JOURNAL_VERIFY: &str = "/api/v1/journal/verify";
/// Inclusion proof of one record.
pub const JOURNAL_PROVE: &str = "/api/v1/journal/prove/{seq}";
/// All records from a position on.
pub const JOURNAL_EXPORT: &str = "/api/v1/journal/export";
/// Copies the journal while it is in use.
pub const JOURNAL_BACKUP: &str = "/api/v1/journal/backup";
/// Effective configuration with provenance.
pub const CONFIG: &str = "/api/v1/config";
/// Graceful stop.
pub const DAEMON_STOP: &str = "/api/v1/daemon/stop";

/// Fills a run id into one of the `RUN…` templates.
#[must_use]
pub fn for_run(template: &str, id: RunId) -> String {
    template.replace("{id}", &id.to_string())
}

/// Fills a session id into [`SESSION`].
#[must_use]
pub fn for_session(id: SessionId) -> String {
    SESSION.replace("{id}", &id.to_string())
}

/// Fills an approval id into one of the paths of approvals and patterns.
#[must_use]
pub fn for_approval(path: &str, id: ApprovalId) -> String {
    path.replace("{id}", &id.to_string())
}

/// Fills a record's position into [`JOURNAL_PROVE`].
#[must_use]
pub fn for_proof(seq: u64) -> String {
    JOURNAL_PROVE.replace("{seq}", &seq.to_string())
}
