//! The addresses of the API, written once for the server's router and for the client.
//!
//! Templates use `{name}` for path parameters, which is also the router's syntax; the functions fill them in. Ids are ULIDs
//! and numbers, so nothing needs escaping.

use palyra_common::{ApprovalId, RunId, SessionId};

/// Health of the daemon; the only route that needs no authentication.
pub const HEALTH: &str = "/healthz";
/// Whether work can begin.
pub const READY: &str = "/readyz";
/// Numbers for Prometheus.
pub const METRICS: &str = "/metrics";
/// Collection of runs: list and create.
pub const RUNS: &str = "/api/v1/runs";
/// One run.
pub const RUN: &str = "/api/v1/runs/{run_id}";
/// A run's events.
pub const RUN_TAPE: &str = "/api/v1/runs/{run_id}/tape";
/// Ends a run.
pub const RUN_ABORT: &str = "/api/v1/runs/{run_id}/abort";
/// Holds a run.
pub const RUN_PAUSE: &str = "/api/v1/runs/{run_id}/pause";
/// Lets a held run go on.
pub const RUN_RESUME: &str = "/api/v1/runs/{run_id}/resume";
/// Steers a run with a further message.
pub const RUN_INPUT: &str = "/api/v1/runs/{run_id}/input";
/// Takes back the file changes of a run.
pub const RUN_UNDO: &str = "/api/v1/runs/{run_id}/undo";
/// What a run's model saw.
pub const RUN_CONTEXT: &str = "/api/v1/runs/{run_id}/context";
/// Takes the newest summary of a run's context back.
pub const RUN_COMPACTION_REVERT: &str = "/api/v1/runs/{run_id}/compaction/revert";
/// Auxiliary tasks: list and carry out.
pub const AUXILIARY: &str = "/api/v1/auxiliary";
/// One auxiliary task.
pub const AUXILIARY_TASK: &str = "/api/v1/auxiliary/{task_id}";
/// How it is with the models.
pub const MODELS: &str = "/api/v1/models";
/// Which models would be asked.
pub const MODELS_EXPLAIN: &str = "/api/v1/models/explain";
/// See [`crate::command::Command::ModelsOffered`].
pub const MODELS_OFFERED: &str = "/api/v1/models/offered";
/// See [`crate::command::Command::ModelsTest`].
pub const MODELS_TEST: &str = "/api/v1/models/test";
/// What models used and cost.
pub const USAGE: &str = "/api/v1/usage";
/// Feeds a run's tape to the machine again and compares.
pub const RUN_REPLAY: &str = "/api/v1/runs/{run_id}/replay";
/// Changes what a run is meant to do.
pub const RUN_ENVELOPE: &str = "/api/v1/runs/{run_id}/envelope";
/// Questions put to a person.
pub const APPROVALS: &str = "/api/v1/approvals";
/// Answers one question.
pub const APPROVAL_DECIDE: &str = "/api/v1/approvals/{approval_id}/decide";
/// One question.
pub const APPROVAL: &str = "/api/v1/approvals/{approval_id}";
/// What people agreed to for longer than once.
pub const PATTERNS: &str = "/api/v1/approval-patterns";
/// Takes one of them back.
pub const PATTERN_REVOKE: &str = "/api/v1/approval-patterns/{approval_id}/revoke";
/// Collection of sessions.
pub const SESSIONS: &str = "/api/v1/sessions";
/// One session with its runs.
pub const SESSION: &str = "/api/v1/sessions/{session_id}";
/// Finds the session of a key, or starts it.
pub const SESSION_RESOLVE: &str = "/api/v1/sessions/resolve";
/// Finds what was said before.
pub const SESSION_RECALL: &str = "/api/v1/sessions/recall";
/// What is at work and waits in a session.
pub const SESSION_RESUME: &str = "/api/v1/sessions/{session_id}/resume";
/// Another title.
pub const SESSION_RENAME: &str = "/api/v1/sessions/{session_id}/rename";
/// Puts a session away.
pub const SESSION_ARCHIVE: &str = "/api/v1/sessions/{session_id}/archive";
/// Starts a session from a point in another.
pub const SESSION_FORK: &str = "/api/v1/sessions/{session_id}/fork";
/// Writes a session down.
pub const SESSION_EXPORT: &str = "/api/v1/sessions/{session_id}/export";
/// How a session came to be.
pub const SESSION_EXPLAIN: &str = "/api/v1/sessions/{session_id}/explain";
/// All events of a session.
pub const SESSION_REPLAY: &str = "/api/v1/sessions/{session_id}/replay";
/// How untrusted results are treated.
pub const SESSION_MODE: &str = "/api/v1/sessions/{session_id}/mode";
/// A session's settings.
pub const SESSION_CONFIG: &str = "/api/v1/sessions/{session_id}/config";
/// What compacting a session's history keeps.
pub const SESSION_COMPACTION: &str = "/api/v1/sessions/{session_id}/compaction";
/// Takes the newest compaction back.
pub const SESSION_COMPACTION_REVERT: &str = "/api/v1/sessions/{session_id}/compaction/revert";
/// Writes to a session; what waits in it.
pub const SESSION_INPUT: &str = "/api/v1/sessions/{session_id}/input";
/// Takes back what waits.
pub const SESSION_WITHDRAW: &str = "/api/v1/sessions/{session_id}/input/withdraw";
/// Results of calls that were handed to the client.
pub const RUN_DELIVER: &str = "/api/v1/runs/{run_id}/results";
/// A run's events as Server-Sent Events.
pub const RUN_EVENTS: &str = "/api/v1/runs/{run_id}/events";
/// All tools.
pub const TOOLS: &str = "/api/v1/tools";
/// The policies in force.
pub const POLICIES: &str = "/api/v1/policies";
/// API tokens.
pub const TOKENS: &str = "/api/v1/tokens";
/// Gives a token a new secret.
pub const TOKEN_ROTATE: &str = "/api/v1/tokens/{token_id}/rotate";
/// Makes a token worthless.
pub const TOKEN_REVOKE: &str = "/api/v1/tokens/{token_id}/revoke";
/// Devices that have a certificate.
pub const DEVICES: &str = "/api/v1/devices";
/// Makes the certificates of a device worthless.
pub const DEVICE_REVOKE: &str = "/api/v1/devices/{device_id}/revoke";
/// Below which directories principals may work: list and grant.
pub const WORKSPACES: &str = "/api/v1/workspaces";
/// Takes a granted directory back.
pub const WORKSPACE_REVOKE: &str = "/api/v1/workspaces/revoke";
/// Files whose content is not trusted.
pub const FILE_LABELS: &str = "/api/v1/files/labels";
/// A person's word for the content of a file.
pub const FILE_ENDORSE: &str = "/api/v1/files/endorse";
/// Which session a place outside belongs to: list and set.
pub const BINDINGS: &str = "/api/v1/bindings";
/// One binding.
pub const BINDING: &str = "/api/v1/bindings/{binding_id}";
/// Unties a place.
pub const BINDING_REMOVE: &str = "/api/v1/bindings/{binding_id}/remove";
/// Canvases: list.
pub const CANVASES: &str = "/api/v1/canvases";
/// One canvas with its document.
pub const CANVAS: &str = "/api/v1/canvases/{canvas_id}";
/// Makes a link to a canvas.
pub const CANVAS_LINK: &str = "/api/v1/canvases/{canvas_id}/link";
/// Hands over what a person did on a canvas.
pub const CANVAS_SUBMIT: &str = "/api/v1/canvases/{canvas_id}/submit";
/// Closes a canvas.
pub const CANVAS_CLOSE: &str = "/api/v1/canvases/{canvas_id}/close";
/// Follows a canvas.
pub const CANVAS_WATCH: &str = "/api/v1/canvases/{canvas_id}/watch";
/// A canvas as a page, for whoever has a link.
pub const CANVAS_PAGE: &str = "/canvas/v1/{token}";
/// New versions of a canvas as Server-Sent Events, for its page.
pub const CANVAS_PAGE_EVENTS: &str = "/canvas/v1/{token}/events";
/// Takes the forms of a canvas's page.
pub const CANVAS_PAGE_ACTIONS: &str = "/canvas/v1/{token}/actions";
/// Agents: list and set.
pub const AGENTS: &str = "/api/v1/agents";
/// One agent.
pub const AGENT: &str = "/api/v1/agents/{agent_id}";
/// Removes an agent.
pub const AGENT_REMOVE: &str = "/api/v1/agents/{agent_id}/remove";
/// Records of clients' own.
pub const EVENTS: &str = "/api/v1/events";
/// Files to be attached.
pub const ATTACHMENTS: &str = "/api/v1/attachments";
/// Files to be attached, as a form.
pub const ATTACHMENT_FORM: &str = "/api/v1/attachments/form";
/// Messages of chat channels.
pub const MESSAGES: &str = "/api/v1/messages";
/// Skills: list and install.
pub const SKILLS: &str = "/api/v1/skills";
/// Takes a piece of a skill archive.
pub const SKILL_UPLOAD: &str = "/api/v1/skill-uploads";
/// One skill.
pub const SKILL: &str = "/api/v1/skills/{skill_id}";
/// Removes a skill.
pub const SKILL_REMOVE: &str = "/api/v1/skills/{skill_id}/remove";
/// Lets a skill run.
pub const SKILL_ENABLE: &str = "/api/v1/skills/{skill_id}/enable";
/// Switches a skill off.
pub const SKILL_DISABLE: &str = "/api/v1/skills/{skill_id}/disable";
/// Holds a skill back.
pub const SKILL_QUARANTINE: &str = "/api/v1/skills/{skill_id}/quarantine";
/// Audits a skill again.
pub const SKILL_AUDIT: &str = "/api/v1/skills/{skill_id}/audit";
/// Sets what a skill may use.
pub const SKILL_CONFIGURE: &str = "/api/v1/skills/{skill_id}/configure";
/// Calls a skill's tool outside a run.
pub const SKILL_CALL: &str = "/api/v1/skills/{skill_id}/call";
/// Publishers of skills and their keys: list and trust.
pub const PUBLISHERS: &str = "/api/v1/publishers";
/// Takes trust back from a publisher.
pub const PUBLISHER_UNTRUST: &str = "/api/v1/publishers/{publisher}/untrust";
/// Takes in what a publisher signed about its keys and skills.
pub const PUBLISHER_IMPORT: &str = "/api/v1/publisher-statements";
/// Revokes a publisher's key.
pub const PUBLISHER_REVOKE_KEY: &str = "/api/v1/publisher-keys/revoke";
/// Which plugins are told of which events: list and set.
pub const HOOKS: &str = "/api/v1/hooks";
/// Takes a binding of a hook back.
pub const HOOK_REMOVE: &str = "/api/v1/hooks/{hook_id}/remove";
/// Who the caller is.
pub const PRINCIPAL: &str = "/api/v1/principal";
/// What a client whose connection broke needs.
pub const RECONNECT: &str = "/api/v1/reconnect";
/// Any command, as an envelope.
pub const ACP_COMMAND: &str = "/acp/v1/command";
/// Commands and streams over one WebSocket.
pub const ACP_SOCKET: &str = "/acp/v1/ws";
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
    template.replace("{run_id}", &id.to_string())
}

/// Fills a session id into one of the `SESSION…` templates.
#[must_use]
pub fn for_session(template: &str, id: SessionId) -> String {
    template.replace("{session_id}", &id.to_string())
}

/// Fills an approval id into one of the paths of approvals and patterns.
#[must_use]
pub fn for_approval(path: &str, id: ApprovalId) -> String {
    path.replace("{approval_id}", &id.to_string())
}

/// Fills a record's position into [`JOURNAL_PROVE`].
#[must_use]
pub fn for_proof(seq: u64) -> String {
    JOURNAL_PROVE.replace("{seq}", &seq.to_string())
}
