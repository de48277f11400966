//! Events of a run: the event itself and the bodies that are not about a tool's call.

use palyra_common::{
    A2uiUpdate, CallProgress, JournalEvent, LimitsUsed, ModelToken, RunStatus, RunStreamBody, RunStreamEvent,
    StatusDetail,
};

use crate::ProtoError;
use crate::common::v1 as wire;
use crate::common::v1::run_stream_event::Body;
use crate::value::{
    contract_from_wire, contract_to_wire, json_from_wire, optional, optional_contract, text_from_wire,
    timestamp_from_wire, timestamp_to_wire,
};

impl From<RunStreamEvent> for wire::RunStreamEvent {
    fn from(event: RunStreamEvent) -> Self {
        let body = match event.body {
            RunStreamBody::Status(body) => Body::Status(body.into()),
            RunStreamBody::ModelToken(body) => Body::ModelToken(body.into()),
            RunStreamBody::ToolProposal(body) => Body::ToolProposal(body.into()),
            RunStreamBody::ToolDecision(body) => Body::ToolDecision(body.into()),
            RunStreamBody::ToolApprovalRequest(body) => Body::ToolApprovalRequest(body.into()),
            RunStreamBody::ToolApprovalResponse(body) => Body::ToolApprovalResponse(body.into()),
            RunStreamBody::ToolResult(body) => Body::ToolResult(body.into()),
            RunStreamBody::ToolAttestation(body) => Body::ToolAttestation(body.into()),
            RunStreamBody::A2uiUpdate(body) => Body::A2uiUpdate(body.into()),
            RunStreamBody::JournalEvent(body) => Body::JournalEvent(body.into()),
        };
        Self {
            run_id: event.run_id.to_string(),
            seq: event.seq,
            at: Some(timestamp_to_wire(event.at)),
            body: Some(body),
        }
    }
}

impl TryFrom<wire::RunStreamEvent> for RunStreamEvent {
    type Error = ProtoError;
    fn try_from(event: wire::RunStreamEvent) -> Result<Self, ProtoError> {
        let at = event.at.ok_or_else(|| ProtoError::missing("at"))?;
        let body = match event.body.ok_or_else(|| ProtoError::missing("body"))? {
            Body::Status(body) => body.try_into().map(RunStreamBody::Status),
            Body::ModelToken(body) => Ok(RunStreamBody::ModelToken(body.into())),
            Body::ToolProposal(body) => body.try_into().map(RunStreamBody::ToolProposal),
            Body::ToolDecision(body) => body.try_into().map(RunStreamBody::ToolDecision),
            Body::ToolApprovalRequest(body) => body.try_into().map(RunStreamBody::ToolApprovalRequest),
            Body::ToolApprovalResponse(body) => body.try_into().map(RunStreamBody::ToolApprovalResponse),
            Body::ToolResult(body) => body.try_into().map(RunStreamBody::ToolResult),
            Body::ToolAttestation(body) => body.try_into().map(RunStreamBody::ToolAttestation),
            Body::A2uiUpdate(body) => body.try_into().map(RunStreamBody::A2uiUpdate),
            Body::JournalEvent(body) => body.try_into().map(RunStreamBody::JournalEvent),
        };
        Ok(Self {
            run_id: text_from_wire(&event.run_id, "run_id")?,
            seq: event.seq,
            at: timestamp_from_wire(&at, "at")?,
            body: body.map_err(|error: ProtoError| error.inside("body"))?,
        })
    }
}

impl From<RunStatus> for wire::RunStatus {
    fn from(status: RunStatus) -> Self {
        Self {
            phase: contract_to_wire(status.phase),
            reason: status.reason.map(contract_to_wire),
            detail: status.detail.map(Into::into),
            progress: status.progress.map(Into::into),
        }
    }
}

impl TryFrom<wire::RunStatus> for RunStatus {
    type Error = ProtoError;
    fn try_from(status: wire::RunStatus) -> Result<Self, ProtoError> {
        Ok(Self {
            phase: contract_from_wire(status.phase, "phase")?,
            reason: optional_contract(status.reason, "reason")?,
            detail: status.detail.map(Into::into),
            progress: optional(status.progress, "progress")?,
        })
    }
}

impl From<StatusDetail> for wire::StatusDetail {
    fn from(detail: StatusDetail) -> Self {
        Self { code: detail.code, message: detail.message }
    }
}

impl From<wire::StatusDetail> for StatusDetail {
    fn from(detail: wire::StatusDetail) -> Self {
        Self { code: detail.code, message: detail.message }
    }
}

impl From<CallProgress> for wire::CallProgress {
    fn from(progress: CallProgress) -> Self {
        Self {
            call_id: progress.call_id,
            percent: progress.percent.map(u32::from),
            message: progress.message,
            output: progress.output,
        }
    }
}

impl TryFrom<wire::CallProgress> for CallProgress {
    type Error = ProtoError;
    fn try_from(progress: wire::CallProgress) -> Result<Self, ProtoError> {
        let percent = progress.percent.map(|percent| {
            u8::try_from(percent)
                .map_err(|_| ProtoError::invalid("percent", format!("`{percent}` is not a percentage")))
        });
        Ok(Self {
            call_id: progress.call_id,
            percent: percent.transpose()?,
            message: progress.message,
            output: progress.output,
        })
    }
}

impl From<ModelToken> for wire::ModelToken {
    fn from(token: ModelToken) -> Self {
        Self { turn: token.turn, text: token.text }
    }
}

impl From<wire::ModelToken> for ModelToken {
    fn from(token: wire::ModelToken) -> Self {
        Self { turn: token.turn, text: token.text }
    }
}

impl From<LimitsUsed> for wire::LimitsUsed {
    fn from(limits: LimitsUsed) -> Self {
        Self {
            wall_ms: limits.wall_ms,
            cpu_ms: limits.cpu_ms,
            memory_bytes: limits.memory_bytes,
            fuel: limits.fuel,
            output_bytes: limits.output_bytes,
        }
    }
}

impl From<wire::LimitsUsed> for LimitsUsed {
    fn from(limits: wire::LimitsUsed) -> Self {
        Self {
            wall_ms: limits.wall_ms,
            cpu_ms: limits.cpu_ms,
            memory_bytes: limits.memory_bytes,
            fuel: limits.fuel,
            output_bytes: limits.output_bytes,
        }
    }
}

impl From<A2uiUpdate> for wire::A2uiUpdate {
    fn from(update: A2uiUpdate) -> Self {
        Self { payload_json: update.payload.to_string() }
    }
}

impl TryFrom<wire::A2uiUpdate> for A2uiUpdate {
    type Error = ProtoError;
    fn try_from(update: wire::A2uiUpdate) -> Result<Self, ProtoError> {
        Ok(Self { payload: json_from_wire(&update.payload_json, "payload_json")? })
    }
}

impl From<JournalEvent> for wire::JournalEvent {
    fn from(event: JournalEvent) -> Self {
        Self { kind: event.kind, payload_json: event.payload.to_string() }
    }
}

impl TryFrom<wire::JournalEvent> for JournalEvent {
    type Error = ProtoError;
    fn try_from(event: wire::JournalEvent) -> Result<Self, ProtoError> {
        Ok(Self { kind: event.kind, payload: json_from_wire(&event.payload_json, "payload_json")? })
    }
}
