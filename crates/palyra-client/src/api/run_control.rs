//! What can be done to a run after it was created: abort, steer, undo, replay.
//!
//! Pause takes no parameters. Abort, pause, resume, input and decide answer with the run's new
//! [`RunView`](super::RunView).

use palyra_budget::MicroUsd;
use palyra_common::{ChangeAttribution, Digest, InputMode, UndoConflictMode, UndoObstacle, runtime_contract_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeRunParams {
    /// Of a run that stopped at a budget: how much it may spend beyond, in millionths of a dollar. A person is asked before it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<MicroUsd>,
    /// The model that plans from now on, if it is to be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Ends a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortRunParams {
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A further message for a run that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunInputParams {
    /// The message.
    pub text: String,
    /// When it reaches the model.
    pub mode: InputMode,
}

/// Results of calls that a run handed to its client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverResultsParams {
    /// One for each call; the run goes on when all of a turn are there.
    #[schemars(length(min = 1))]
    pub results: Vec<ClientResultParams>,
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientResultParams {
    /// The call.
    pub call_id: String,
    /// The result, or why there is none.
    pub content: String,
    /// Whether it failed.
    #[serde(default)]
    pub is_error: bool,
}

runtime_contract_enum! {
    /// What undoing did to one file.
    pub enum UndoAction("undo_action") {
        /// Its former content is back.
        Restored = "restored",
        /// The run had created it; it is gone.
        Removed = "removed",
    }
}

/// Takes back file changes of a run; without parameters all of them or, where one file conflicts, none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoRunParams {
    /// Files and directories of the workspace; everything that the run changed if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// What happens to files that are not, or not only, what the run made of them.
    #[serde(default)]
    pub conflicts: UndoConflictMode,
}

/// What undoing a run did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoResponse {
    /// The files that it touched, by path.
    pub files: Vec<UndoneFile>,
    /// Files of the run that are still as they were found; none if the whole run is undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<RemainingFileView>,
}

/// A file of a run that undo left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemainingFileView {
    /// Path inside the workspace.
    pub path: String,
    /// Why.
    pub obstacle: UndoObstacle,
}

/// One file that undo touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoneFile {
    /// Path inside the workspace.
    pub path: String,
    /// What was done to it.
    pub action: UndoAction,
    /// Whether the run itself had written it, or it was only seen to differ after a program or an outside server had run.
    #[serde(default)]
    pub attribution: ChangeAttribution,
    /// What the file held when it was undone, which is kept as an artifact; absent if there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Digest>,
}

/// Outcome of feeding a run's tape to the run machine again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayReport {
    /// Inputs that were fed.
    pub steps: u64,
    /// Actions that came out.
    pub actions: u64,
    /// Whether every action was the recorded one, byte for byte.
    pub identical: bool,
    /// Where the two part; present exactly when they are not identical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<ReplayDifference>,
}

/// The first place where replay and record differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayDifference {
    /// Position on the run's tape.
    pub seq: u64,
    /// What the record says; absent if there is no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// What replay gave; absent if it gave nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<String>,
}
