//! The port behind which hooks run, and what passes it.

use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{HookDecision, HookEvent, Label, RequestId, RunId, RunLifecycleHookPhase, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::binding::{HookBindingRecord, HookFailureMode};

/// Runs hooks. The engine orders them, keeps their deadlines and weighs their answers; whoever implements this only runs one.
#[async_trait]
pub trait HookRunner: Send + Sync {
    /// Asks the plugin of a binding. Dropped when the deadline passes, or when nobody wants the answer any more.
    ///
    /// # Errors
    /// When there is no answer: the plugin is not there or not enabled, it trapped, or what it said cannot be read.
    async fn run(
        &self,
        binding: &HookBindingRecord,
        occurrence: &HookOccurrence,
        deadline: Duration,
    ) -> Result<HookAnswer, HookFailure>;
}

/// Runs nothing: every hook is unavailable.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

#[async_trait]
impl HookRunner for NoHooks {
    async fn run(&self, _: &HookBindingRecord, _: &HookOccurrence, _: Duration) -> Result<HookAnswer, HookFailure> {
        Err(HookFailure::Unavailable("plugins are not run here".to_owned()))
    }
}

/// Something that happens, or is about to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookOccurrence {
    /// The same when hooks are asked again after a crash, so that they can recognise it.
    pub id: String,
    /// What happens.
    pub event: HookEvent,
    /// When.
    pub at: Timestamp,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Label of the payload: the worst of what is in it. What a hook says has it too, and is never trusted more than untrusted text.
    pub label: Label,
    /// What there is to know about it.
    pub payload: Value,
}

impl HookOccurrence {
    /// An occurrence that belongs to no run.
    #[must_use]
    pub fn new(event: HookEvent, at: Timestamp, payload: Value) -> Self {
        Self {
            id: format!("evt-{}", RequestId::generate()),
            event,
            at,
            run_id: None,
            session_id: None,
            label: Label::system(),
            payload,
        }
    }
}

/// What a hook says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// What it wants.
    pub decision: HookDecision,
    /// Why, or the note, in a few words for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The text it proposes instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl HookAnswer {
    /// An answer without a text.
    #[must_use]
    pub fn new(decision: HookDecision, reason: impl Into<String>) -> Self {
        Self { decision, reason: reason.into(), text: None }
    }
}

/// Why a hook gave no answer that counts.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFailure {
    /// Its plugin is not there, or not enabled.
    #[error("its plugin cannot be run: {0}")]
    Unavailable(String),
    /// It failed.
    #[error("it failed: {0}")]
    Failed(String),
    /// It took too long.
    #[error("it did not answer in time")]
    TimedOut,
    /// It answered what this event does not allow.
    #[error("it answered `{0}`, which this event does not allow")]
    OutOfPhase(HookDecision),
    /// It was to be asked and was not.
    #[error("it was not asked")]
    Unanswered,
}

/// What came of asking one hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookResult {
    /// The binding.
    pub hook: String,
    /// The plugin.
    pub plugin: String,
    /// What a failure of it means.
    pub on_failure: HookFailureMode,
    /// What it said.
    pub said: HookSaid,
    /// How long it took.
    pub duration_ms: u64,
}

impl HookResult {
    /// What it said in one line; nothing if it had nothing to say.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        match &self.said {
            HookSaid::Answered(answer) if answer.decision == HookDecision::Continue && answer.reason.is_empty() => None,
            HookSaid::Answered(HookAnswer { decision, reason, .. }) if reason.is_empty() => {
                Some(format!("hook `{}`: {decision}", self.hook))
            }
            HookSaid::Answered(HookAnswer { decision, reason, .. }) => {
                Some(format!("hook `{}`: {decision}: {reason}", self.hook))
            }
            HookSaid::Failed(failure) => Some(format!("hook `{}`: {failure}", self.hook)),
        }
    }
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookSaid {
    /// It answered.
    Answered(HookAnswer),
    /// It did not, or nothing that counts.
    Failed(HookFailure),
}

/// What came of asking all hooks of an occurrence in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HooksAnswered {
    /// The occurrence.
    pub occurrence_id: String,
    /// Where in the run.
    pub phase: RunLifecycleHookPhase,
    /// The call it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What each said, in the order in which they were asked. Nobody is asked after one that ends the run.
    pub results: Vec<HookResult>,
    /// Label of everything that was said: hooks are installed by the operator, but what they say may quote anybody.
    pub label: Label,
}
