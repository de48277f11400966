//! Telemetry of surfaces: what a person did and where they got stuck, kept in the journal and nowhere else.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    CanvasId, DeviceId, ErrorCategory, HandoffIntent, HandoffSection, ObjectiveId, RunId, SessionId,
    StableErrorEnvelope, TelemetrySurface, ToStableError, UxOutcome,
};

/// Longest event name; names are chosen by programs, so a longer one is a mistake or an attack on the journal.
const NAME_LIMIT: usize = 64;

/// Longest summary in characters, so that telemetry stays one line and cannot carry a conversation.
const SUMMARY_LIMIT: usize = 240;

/// A telemetry event that breaks its contract.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidTelemetry {
    /// A name that is not `ux.` and dotted words.
    #[error("`{0}` is not a telemetry event name; expected `ux.` and lower-case words, such as `ux.surface.opened`")]
    Name(String),
    /// A summary that is too long.
    #[error("a telemetry summary has {0} characters; at most {SUMMARY_LIMIT} are allowed")]
    SummaryTooLong(usize),
}

impl ToStableError for InvalidTelemetry {
    fn to_stable(&self) -> StableErrorEnvelope {
        StableErrorEnvelope::new("telemetry_invalid", ErrorCategory::Validation, self.to_string())
    }
}

/// The name of a telemetry event: `ux.` and dotted words of lower-case letters, digits and `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct UxEventName(String);

impl UxEventName {
    /// The names that Palyra's own surfaces use.
    pub const KNOWN: &'static [&'static str] = &[
        "ux.surface.opened",
        "ux.mode.changed",
        "ux.handoff.opened",
        "ux.onboarding.step",
        "ux.chat.prompt_submitted",
        "ux.approval.resolved",
        "ux.run.inspected",
        "ux.session.resumed",
        "ux.canvas.entry",
    ];

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for UxEventName {
    type Error = InvalidTelemetry;
    fn try_from(name: String) -> Result<Self, InvalidTelemetry> {
        let word = |word: &str| {
            !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        let fits = name.len() <= NAME_LIMIT && name.strip_prefix("ux.").is_some_and(|rest| rest.split('.').all(word));
        if fits { Ok(Self(name)) } else { Err(InvalidTelemetry::Name(name.chars().take(NAME_LIMIT).collect())) }
    }
}

impl From<UxEventName> for String {
    fn from(name: UxEventName) -> Self {
        name.0
    }
}

impl fmt::Display for UxEventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A summary of at most 240 characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TelemetrySummary(String);

impl TelemetrySummary {
    /// The summary as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for TelemetrySummary {
    type Error = InvalidTelemetry;
    fn try_from(text: String) -> Result<Self, InvalidTelemetry> {
        match text.chars().count() {
            0..=SUMMARY_LIMIT => Ok(Self(text)),
            characters => Err(InvalidTelemetry::SummaryTooLong(characters)),
        }
    }
}

impl From<TelemetrySummary> for String {
    fn from(summary: TelemetrySummary) -> Self {
        summary.0
    }
}

/// What a surface reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UxTelemetryEvent {
    /// What happened.
    pub name: UxEventName,
    /// Where.
    pub surface: TelemetrySurface,
    /// In which part of it.
    pub section: HandoffSection,
    /// How it ended.
    pub outcome: UxOutcome,
    /// The step of a longer procedure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The session it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The device it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<DeviceId>,
    /// The objective it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective_id: Option<ObjectiveId>,
    /// The canvas it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canvas_id: Option<CanvasId>,
    /// What the person meant to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<HandoffIntent>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// One line for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<TelemetrySummary>,
}

/// The flat record in which the journal keeps a telemetry event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemEventRecord {
    /// Who reported it, as they were authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What happened.
    pub event: String,
    /// Where.
    pub surface: TelemetrySurface,
    /// In which part of it.
    pub section: HandoffSection,
    /// How it ended.
    pub outcome: UxOutcome,
    /// The step of a longer procedure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The session it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The device it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<DeviceId>,
    /// The objective it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective_id: Option<ObjectiveId>,
    /// The canvas it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canvas_id: Option<CanvasId>,
    /// What the person meant to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<HandoffIntent>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// One line for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

impl From<UxTelemetryEvent> for SystemEventRecord {
    fn from(event: UxTelemetryEvent) -> Self {
        Self {
            by: None,
            event: event.name.into(),
            surface: event.surface,
            section: event.section,
            outcome: event.outcome,
            step: event.step,
            session_id: event.session_id,
            run_id: event.run_id,
            device_id: event.device_id,
            objective_id: event.objective_id,
            canvas_id: event.canvas_id,
            intent: event.intent,
            latency_ms: event.latency_ms,
            summary: event.summary.map(Into::into),
        }
    }
}
