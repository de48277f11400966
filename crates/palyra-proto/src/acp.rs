//! Commands and results of the Agent Control Protocol.
//!
//! INVARIANT: a result that was read is either a value or an error; the schema's `oneof` and the reading here both see to it.

use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope};
use serde_json::Value;

use crate::ProtoError;
use crate::common::v1 as wire;
use crate::value::{json_from_wire, text_from_wire};

impl From<AcpCommandEnvelope> for wire::AcpCommandEnvelope {
    fn from(command: AcpCommandEnvelope) -> Self {
        Self {
            request_id: command.request_id.to_string(),
            command: command.command.as_str().to_owned(),
            params_json: match command.params {
                Value::Null => String::new(),
                params => params.to_string(),
            },
            idempotency_key: command.idempotency_key,
            expected_version: command.expected_version,
        }
    }
}

impl TryFrom<wire::AcpCommandEnvelope> for AcpCommandEnvelope {
    type Error = ProtoError;
    fn try_from(command: wire::AcpCommandEnvelope) -> Result<Self, ProtoError> {
        Ok(Self {
            request_id: text_from_wire(&command.request_id, "request_id")?,
            command: text_from_wire(&command.command, "command")?,
            params: match command.params_json.as_str() {
                "" => Value::Null,
                text => json_from_wire(text, "params_json")?,
            },
            idempotency_key: command.idempotency_key,
            expected_version: command.expected_version,
        })
    }
}

impl From<AcpCommandResultEnvelope> for wire::AcpCommandResultEnvelope {
    fn from(result: AcpCommandResultEnvelope) -> Self {
        let (request_id, command) = (result.request_id().to_string(), result.command().as_str().to_owned());
        let (idempotency_key, replayed) = (result.idempotency_key().map(str::to_owned), result.is_replayed());
        let outcome = match result.into_outcome() {
            Ok(value) => wire::acp_command_result_envelope::Outcome::ResultJson(value.to_string()),
            Err(error) => wire::acp_command_result_envelope::Outcome::Error(error.into()),
        };
        Self { request_id, command, outcome: Some(outcome), idempotency_key, replayed }
    }
}

impl TryFrom<wire::AcpCommandResultEnvelope> for AcpCommandResultEnvelope {
    type Error = ProtoError;
    fn try_from(result: wire::AcpCommandResultEnvelope) -> Result<Self, ProtoError> {
        let request_id = text_from_wire(&result.request_id, "request_id")?;
        // Only what an answer repeats of its command; the parameters do not come back.
        let command = AcpCommandEnvelope {
            request_id,
            command: text_from_wire(&result.command, "command")?,
            params: Value::Null,
            idempotency_key: result.idempotency_key,
            expected_version: None,
        };
        let outcome = match result.outcome.ok_or_else(|| ProtoError::missing("outcome"))? {
            wire::acp_command_result_envelope::Outcome::ResultJson(text) => Ok(json_from_wire(&text, "result_json")?),
            wire::acp_command_result_envelope::Outcome::Error(error) => {
                Err(error.try_into().map_err(|error: ProtoError| error.inside("error"))?)
            }
        };
        let answer = Self::answer(&command, outcome);
        Ok(if result.replayed { answer.replayed_for(request_id) } else { answer })
    }
}
