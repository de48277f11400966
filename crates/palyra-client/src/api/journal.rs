//! The journal over HTTP: tail, verify, prove, export, backup.
//!
//! An inclusion proof is passed through as the JSON document that the journal made, so that it can be checked by any program
//! years later; it has no wire type of its own here.

use palyra_common::{Digest, RunId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which records to stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TailJournalParams {
    /// The newest so many; excludes `from_seq`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// All from this position on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_seq: Option<u64>,
    /// Whether to wait for records that are yet to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<bool>,
}

/// Which records to export: all from a position on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportJournalParams {
    /// The first position wanted; from the beginning when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_seq: Option<u64>,
}

/// One record of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalRecordView {
    /// Position in the log, gapless from 1.
    pub seq: u64,
    /// When it was made.
    pub at: Timestamp,
    /// What kind of record it is.
    pub kind: String,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Position on that run's tape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_seq: Option<u64>,
    /// Its link of the hash chain.
    pub hash: Digest,
    /// What it says.
    pub payload: serde_json::Value,
}

/// One line of the answer to a verification: progress, any number of times, and then the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyLine {
    /// How far it is.
    Progress(VerifyProgress),
    /// What was found; the last line.
    Report(VerifyReport),
}

/// How far a verification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyProgress {
    /// Records checked.
    pub done: u64,
    /// Records in all.
    pub total: u64,
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyReport {
    /// Records that were read.
    pub records: u64,
    /// Archived segments that were read.
    pub segments: u64,
    /// Signed checkpoints that were checked.
    pub checkpoints: u64,
    /// Artifacts whose bytes were checked.
    #[serde(default)]
    pub artifacts: u64,
    /// Derived tables that were rebuilt from the log and compared.
    #[serde(default)]
    pub projections: Vec<String>,
    /// Derived tables that were not compared.
    #[serde(default)]
    pub unchecked_projections: Vec<String>,
    /// Derived tables that were compared with the digest that the journal keeps of them.
    #[serde(default)]
    pub projections_by_digest: Vec<String>,
    /// What could not be verified, and why.
    #[serde(default)]
    pub unverified: Vec<String>,
    /// Records that a derived table is known to go on without, because it refuses them.
    #[serde(default)]
    pub quarantined: u64,
    /// What is no problem and stays worth knowing, such as an acknowledged change of the signing key.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Whether there were more problems than are listed.
    #[serde(default)]
    pub more_problems: bool,
    /// Everything that is wrong, in the order it was found; empty means sound.
    pub problems: Vec<ProblemView>,
}

/// One thing that is wrong with the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemView {
    /// Where: `record 42`, `file journal.db offset 8192`, …
    pub position: String,
    /// Stable snake_case code.
    pub code: String,
    /// What is wrong, in one line.
    pub message: String,
}

/// Copies the journal while it is in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupJournalParams {
    /// Absolute path of a directory that does not exist yet.
    pub dest: String,
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupJournalResponse {
    /// The directory that now holds the copy.
    pub dest: String,
    /// Records in it.
    pub records: u64,
    /// Archived segments in it.
    pub segments: u64,
    /// Artifacts in it.
    pub artifacts: u64,
    /// Bytes of the copy.
    pub bytes: u64,
    /// What is not in the copy: the rest of the state root, and configuration and policies outside of it.
    #[serde(default)]
    pub left_out: Vec<String>,
}
