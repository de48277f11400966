//! Agent Control Protocol: one command in, one result out.
//!
//! INVARIANT: a result carries either a value or an error, never both and never neither. The fields are private, so
//! that neither construction nor reading can break it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{AcpCommand, RequestId, StableErrorEnvelope};

/// One command of a control client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcpCommandEnvelope {
    /// Chosen by the client; comes back with the result.
    pub request_id: RequestId,
    /// What is asked for.
    pub command: AcpCommand,
    /// The command's own parameters.
    #[serde(default)]
    pub params: serde_json::Value,
    /// The same key with the same payload gives the stored result instead of a second effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The command is refused if the thing it changes is no longer at this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
}

/// The answer to one [`AcpCommandEnvelope`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WireResult", into = "WireResult")]
#[schemars(with = "WireResult")]
pub struct AcpCommandResultEnvelope {
    request_id: RequestId,
    command: AcpCommand,
    outcome: Result<serde_json::Value, StableErrorEnvelope>,
    idempotency_key: Option<String>,
    replayed: bool,
}

impl AcpCommandResultEnvelope {
    /// The answer to `command`, with its key, computed now.
    #[must_use]
    pub fn answer(command: &AcpCommandEnvelope, outcome: Result<serde_json::Value, StableErrorEnvelope>) -> Self {
        Self {
            request_id: command.request_id,
            command: command.command,
            outcome,
            idempotency_key: command.idempotency_key.clone(),
            replayed: false,
        }
    }

    /// The same stored answer, given again to a request that carries the same idempotency key.
    #[must_use]
    pub fn replayed_for(mut self, request_id: RequestId) -> Self {
        self.request_id = request_id;
        self.replayed = true;
        self
    }

    /// Which request this answers.
    #[must_use]
    pub const fn request_id(&self) -> RequestId {
        self.request_id
    }

    /// Which command this answers.
    #[must_use]
    pub const fn command(&self) -> AcpCommand {
        self.command
    }

    /// The value or the error.
    pub const fn outcome(&self) -> Result<&serde_json::Value, &StableErrorEnvelope> {
        self.outcome.as_ref()
    }

    /// The value or the error, taken out.
    pub fn into_outcome(self) -> Result<serde_json::Value, StableErrorEnvelope> {
        self.outcome
    }

    /// The key the command carried.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// Whether this is a stored answer given again.
    #[must_use]
    pub const fn is_replayed(&self) -> bool {
        self.replayed
    }
}

/// A result that carries both a value and an error, neither, or an `ok` that contradicts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a result is either `ok: true` with `result` or `ok: false` with `error`")]
pub struct InconsistentResult;

/// The same on the wire, where the three fields could contradict each other.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AcpCommandResultEnvelope")]
struct WireResult {
    request_id: RequestId,
    command: AcpCommand,
    ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    result: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<StableErrorEnvelope>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    replayed: bool,
}

/// Keeps `"result": null`, which is a value, apart from a missing `result`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some)
}

impl TryFrom<WireResult> for AcpCommandResultEnvelope {
    type Error = InconsistentResult;
    fn try_from(wire: WireResult) -> Result<Self, InconsistentResult> {
        let outcome = match (wire.ok, wire.result, wire.error) {
            (true, Some(value), None) => Ok(value),
            (false, None, Some(error)) => Err(error),
            _ => return Err(InconsistentResult),
        };
        Ok(Self {
            request_id: wire.request_id,
            command: wire.command,
            outcome,
            idempotency_key: wire.idempotency_key,
            replayed: wire.replayed,
        })
    }
}

impl From<AcpCommandResultEnvelope> for WireResult {
    fn from(envelope: AcpCommandResultEnvelope) -> Self {
        let (ok, result, error) = match envelope.outcome {
            Ok(value) => (true, Some(value), None),
            Err(error) => (false, None, Some(error)),
        };
        Self {
            request_id: envelope.request_id,
            command: envelope.command,
            ok,
            result,
            error,
            idempotency_key: envelope.idempotency_key,
            replayed: envelope.replayed,
        }
    }
}
