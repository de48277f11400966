//! The wire types of the daemon's HTTP API, one file per resource.
//!
//! The daemon answers with these types and the client reads them, so there is no second description that could drift. What
//! a caller sends is named `…Params` and rejects unknown fields: a misspelt limit must not silently mean "no limit". What the
//! daemon answers is named `…Response` or `…View` and tolerates fields that a newer daemon adds.
//!
//! Events of a run's tape are not here: they are `RunStreamEvent` of `palyra-common`, which every transport shares.

mod approvals;
mod config;
mod daemon;
mod error;
mod health;
mod journal;
mod run_control;
mod runs;
mod sessions;

pub mod paths;

pub use approvals::{
    ApprovalAnswer, ApprovalState, ApprovalView, DecideApprovalParams, ListApprovalsParams, ListApprovalsResponse,
    ListPatternsParams, ListPatternsResponse, PatternView,
};
pub use config::{ConfigEntryView, ConfigResponse};
pub use daemon::StopDaemonResponse;
pub use error::ErrorResponse;
pub use health::{HealthResponse, ProviderView};
pub use journal::{
    BackupJournalParams, BackupJournalResponse, ExportJournalParams, JournalRecordView, ProblemView, TailJournalParams,
    VerifyLine, VerifyProgress, VerifyReport,
};
pub use run_control::{
    AbortRunParams, ReplayDifference, ReplayReport, RunInputParams, UndoAction, UndoResponse, UndoneFile,
};
pub use runs::{
    CreateRunParams, EditEnvelopeParams, FileChangeKind, FileChangeView, IntentView, ListRunsParams, ListRunsResponse,
    RunDetail, RunLimitsParams, RunTapeParams, RunTimings, RunUsage, RunView,
};
pub use sessions::{ListSessionsParams, ListSessionsResponse, SessionDetail, SessionView};

/// Media type of streams that carry one JSON document per line; an empty line is a heartbeat.
pub const NDJSON: &str = "application/x-ndjson";
