//! Cross-surface handoff: how a person moves from one surface to another and finds the same thing there.
//!
//! The plain handoff here carries *no authority*: it only names things, and the receiving surface authenticates as
//! always. Unknown fields are refused on every path, so that a link cannot smuggle in a parameter some later version
//! will obey.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    CanvasId, DeviceId, ErrorCategory, HandoffIntent, HandoffSection, ObjectiveId, RunId, SessionId,
    StableErrorEnvelope, TelemetrySurface, ToStableError,
};

/// Where to go and what to show there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CrossSurfaceHandoff {
    /// The part of the console to open.
    pub section: HandoffSection,
    /// The session to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The device to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_id: Option<DeviceId>,
    /// The objective to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective_id: Option<ObjectiveId>,
    /// The canvas to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canvas_id: Option<CanvasId>,
    /// What the person means to do there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<HandoffIntent>,
    /// The surface the person comes from.
    pub source: TelemetrySurface,
}

/// A handoff that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidHandoff {
    /// A parameter that no handoff has.
    #[error("`{0}` is not a handoff parameter")]
    UnknownParameter(String),
    /// A parameter given twice.
    #[error("the handoff parameter `{0}` is given more than once")]
    RepeatedParameter(String),
    /// A parameter that must be there and is not.
    #[error("the handoff parameter `{0}` is missing")]
    MissingParameter(&'static str),
    /// A parameter whose value does not fit.
    #[error("the handoff parameter `{parameter}` is invalid: {reason}")]
    InvalidValue {
        /// Which one.
        parameter: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A `%` that two hexadecimal digits do not follow, or bytes that are no UTF-8.
    #[error("`{0}` is not valid percent-encoding")]
    Encoding(String),
}

impl ToStableError for InvalidHandoff {
    fn to_stable(&self) -> StableErrorEnvelope {
        StableErrorEnvelope::new("handoff_invalid", ErrorCategory::Validation, self.to_string())
            .hint("open the link again from the surface that made it")
    }
}

impl CrossSurfaceHandoff {
    /// A handoff to a section, naming nothing else yet.
    #[must_use]
    pub const fn to_section(section: HandoffSection, source: TelemetrySurface) -> Self {
        Self {
            section,
            session_id: None,
            run_id: None,
            device_id: None,
            objective_id: None,
            canvas_id: None,
            intent: None,
            source,
        }
    }

    /// The URL query, without `?`. No value needs escaping: all are ULIDs or names of letters and `-`.
    #[must_use]
    pub fn to_query(&self) -> String {
        let mut query = format!("section={}", self.section);
        let mut add = |name: &str, value: Option<&dyn fmt::Display>| {
            if let Some(value) = value {
                query.push_str(&format!("&{name}={value}"));
            }
        };
        add("sessionId", self.session_id.as_ref().map(|id| id as &dyn fmt::Display));
        add("runId", self.run_id.as_ref().map(|id| id as &dyn fmt::Display));
        add("deviceId", self.device_id.as_ref().map(|id| id as &dyn fmt::Display));
        add("objectiveId", self.objective_id.as_ref().map(|id| id as &dyn fmt::Display));
        add("canvasId", self.canvas_id.as_ref().map(|id| id as &dyn fmt::Display));
        add("intent", self.intent.as_ref().map(|intent| intent as &dyn fmt::Display));
        add("source", Some(&self.source));
        query
    }

    /// Reads a URL query, with or without the leading `?`.
    pub fn from_query(query: &str) -> Result<Self, InvalidHandoff> {
        let mut fields = QueryFields::default();
        for pair in query.strip_prefix('?').unwrap_or(query).split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            fields.take(&percent_decode(name)?, percent_decode(value)?)?;
        }
        Ok(Self {
            section: parse("section", fields.section)?.ok_or(InvalidHandoff::MissingParameter("section"))?,
            session_id: parse("sessionId", fields.session_id)?,
            run_id: parse("runId", fields.run_id)?,
            device_id: parse("deviceId", fields.device_id)?,
            objective_id: parse("objectiveId", fields.objective_id)?,
            canvas_id: parse("canvasId", fields.canvas_id)?,
            intent: parse("intent", fields.intent)?,
            source: parse("source", fields.source)?.ok_or(InvalidHandoff::MissingParameter("source"))?,
        })
    }
}

/// The parameters as text, before their types are known to fit.
#[derive(Default)]
struct QueryFields {
    section: Option<String>,
    session_id: Option<String>,
    run_id: Option<String>,
    device_id: Option<String>,
    objective_id: Option<String>,
    canvas_id: Option<String>,
    intent: Option<String>,
    source: Option<String>,
}

impl QueryFields {
    fn take(&mut self, name: &str, value: String) -> Result<(), InvalidHandoff> {
        let slot = match name {
            "section" => &mut self.section,
            "sessionId" => &mut self.session_id,
            "runId" => &mut self.run_id,
            "deviceId" => &mut self.device_id,
            "objectiveId" => &mut self.objective_id,
            "canvasId" => &mut self.canvas_id,
            "intent" => &mut self.intent,
            "source" => &mut self.source,
            _ => return Err(InvalidHandoff::UnknownParameter(name.to_owned())),
        };
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => Err(InvalidHandoff::RepeatedParameter(name.to_owned())),
        }
    }
}

fn parse<T: std::str::FromStr<Err: fmt::Display>>(
    parameter: &'static str,
    value: Option<String>,
) -> Result<Option<T>, InvalidHandoff> {
    value
        .map(|value| {
            value.parse().map_err(|error: T::Err| InvalidHandoff::InvalidValue { parameter, reason: error.to_string() })
        })
        .transpose()
}

fn percent_decode(text: &str) -> Result<String, InvalidHandoff> {
    let wrong = || InvalidHandoff::Encoding(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).ok_or_else(wrong);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).map_err(|_| wrong())?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}
