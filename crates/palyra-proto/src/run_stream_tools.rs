//! The bodies of events that are about a tool's call, from proposal to attestation.

use palyra_common::{
    ApprovalEvidence, ToolApprovalRequest, ToolApprovalResponse, ToolAttestation, ToolDecision, ToolProposal,
    ToolResult,
};

use crate::ProtoError;
use crate::common::v1 as wire;
use crate::value::{
    all, contract_from_wire, contract_to_wire, json_from_wire, optional, optional_contract, required, text_from_wire,
};

impl From<ToolProposal> for wire::ToolProposal {
    fn from(proposal: ToolProposal) -> Self {
        Self { call_id: proposal.call_id, tool: proposal.tool, arguments_json: proposal.arguments.to_string() }
    }
}

impl TryFrom<wire::ToolProposal> for ToolProposal {
    type Error = ProtoError;
    fn try_from(proposal: wire::ToolProposal) -> Result<Self, ProtoError> {
        Ok(Self {
            call_id: proposal.call_id,
            tool: proposal.tool,
            arguments: json_from_wire(&proposal.arguments_json, "arguments_json")?,
        })
    }
}

impl From<ToolDecision> for wire::ToolDecision {
    fn from(decision: ToolDecision) -> Self {
        Self {
            call_id: decision.call_id,
            verdict: contract_to_wire(decision.verdict),
            reasons: decision.reasons,
            policies: decision.policies,
        }
    }
}

impl TryFrom<wire::ToolDecision> for ToolDecision {
    type Error = ProtoError;
    fn try_from(decision: wire::ToolDecision) -> Result<Self, ProtoError> {
        Ok(Self {
            call_id: decision.call_id,
            verdict: contract_from_wire(decision.verdict, "verdict")?,
            reasons: decision.reasons,
            policies: decision.policies,
        })
    }
}

impl From<ToolApprovalRequest> for wire::ToolApprovalRequest {
    fn from(request: ToolApprovalRequest) -> Self {
        Self {
            approval_id: request.approval_id.to_string(),
            call_id: request.call_id,
            subject: contract_to_wire(request.subject),
            risk: contract_to_wire(request.risk),
            summary: request.summary,
            tool: request.tool,
            arguments_json: request.arguments.map(|arguments| arguments.to_string()),
            reason: request.reason,
            evidence: request.evidence.into_iter().map(Into::into).collect(),
            offer: request.offer,
        }
    }
}

impl TryFrom<wire::ToolApprovalRequest> for ToolApprovalRequest {
    type Error = ProtoError;
    fn try_from(request: wire::ToolApprovalRequest) -> Result<Self, ProtoError> {
        let arguments = request.arguments_json.map(|text| json_from_wire(&text, "arguments_json"));
        Ok(Self {
            approval_id: text_from_wire(&request.approval_id, "approval_id")?,
            call_id: request.call_id,
            subject: contract_from_wire(request.subject, "subject")?,
            risk: contract_from_wire(request.risk, "risk")?,
            summary: request.summary,
            tool: request.tool,
            arguments: arguments.transpose()?,
            reason: request.reason,
            evidence: all(request.evidence, "evidence")?,
            offer: request.offer,
        })
    }
}

impl From<ApprovalEvidence> for wire::ApprovalEvidence {
    fn from(evidence: ApprovalEvidence) -> Self {
        Self {
            argument: evidence.argument,
            sink: contract_to_wire(evidence.sink),
            value: evidence.value,
            provenance: contract_to_wire(evidence.provenance),
            source: evidence.source,
            sentence: evidence.sentence,
        }
    }
}

impl TryFrom<wire::ApprovalEvidence> for ApprovalEvidence {
    type Error = ProtoError;
    fn try_from(evidence: wire::ApprovalEvidence) -> Result<Self, ProtoError> {
        Ok(Self {
            argument: evidence.argument,
            sink: contract_from_wire(evidence.sink, "sink")?,
            value: evidence.value,
            provenance: contract_from_wire(evidence.provenance, "provenance")?,
            source: evidence.source,
            sentence: evidence.sentence,
        })
    }
}

impl From<ToolApprovalResponse> for wire::ToolApprovalResponse {
    fn from(response: ToolApprovalResponse) -> Self {
        Self {
            approval_id: response.approval_id.to_string(),
            decision: contract_to_wire(response.decision),
            scope: contract_to_wire(response.scope),
            by: response.by,
        }
    }
}

impl TryFrom<wire::ToolApprovalResponse> for ToolApprovalResponse {
    type Error = ProtoError;
    fn try_from(response: wire::ToolApprovalResponse) -> Result<Self, ProtoError> {
        Ok(Self {
            approval_id: text_from_wire(&response.approval_id, "approval_id")?,
            decision: contract_from_wire(response.decision, "decision")?,
            scope: contract_from_wire(response.scope, "scope")?,
            by: response.by,
        })
    }
}

impl From<ToolResult> for wire::ToolResult {
    fn from(result: ToolResult) -> Self {
        Self {
            call_id: result.call_id,
            tool: result.tool,
            ok: result.ok,
            content: result.content,
            truncated: result.truncated,
            artifact: result.artifact.map(|digest| digest.to_string()),
            error: result.error.map(Into::into),
            label: Some(result.label.into()),
        }
    }
}

impl TryFrom<wire::ToolResult> for ToolResult {
    type Error = ProtoError;
    fn try_from(result: wire::ToolResult) -> Result<Self, ProtoError> {
        Ok(Self {
            call_id: result.call_id,
            tool: result.tool,
            ok: result.ok,
            content: result.content,
            truncated: result.truncated,
            artifact: result.artifact.map(|text| text_from_wire(&text, "artifact")).transpose()?,
            error: optional(result.error, "error")?,
            // Fails closed: content without a label is not content that anybody may have.
            label: required(result.label, "label")?,
        })
    }
}

impl From<ToolAttestation> for wire::ToolAttestation {
    fn from(attestation: ToolAttestation) -> Self {
        Self {
            call_id: attestation.call_id,
            execution_sha256: attestation.execution_sha256.to_string(),
            executor: attestation.executor,
            tier: attestation.tier.map(contract_to_wire),
            fallback_reasons: attestation.fallback_reasons,
            limits_used: Some(attestation.limits_used.into()),
            timed_out: attestation.timed_out,
        }
    }
}

impl TryFrom<wire::ToolAttestation> for ToolAttestation {
    type Error = ProtoError;
    fn try_from(attestation: wire::ToolAttestation) -> Result<Self, ProtoError> {
        let limits = attestation.limits_used.ok_or_else(|| ProtoError::missing("limits_used"))?;
        Ok(Self {
            call_id: attestation.call_id,
            execution_sha256: text_from_wire(&attestation.execution_sha256, "execution_sha256")?,
            executor: attestation.executor,
            tier: optional_contract(attestation.tier, "tier")?,
            fallback_reasons: attestation.fallback_reasons,
            limits_used: limits.into(),
            timed_out: attestation.timed_out,
        })
    }
}
