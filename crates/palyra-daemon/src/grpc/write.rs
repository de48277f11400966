//! Answers as messages: views of the API in the words of the schema. Writing cannot fail.

use std::sync::Arc;

use palyra_client::api::{
    AgentView, ApprovalAnswer, ApprovalView, FileChangeKind, FileChangeView, HealthResponse, IntentView, PatternView,
    PrincipalView, RunDetail, RunTimings, RunUsage, RunView, SessionSettingsView, SessionView, TokenSecretResponse,
    TokenView,
};
use palyra_common::{ComponentHealth, RunStreamEvent, Timestamp, ToolApprovalRequest};
use palyra_proto::auth::v1 as auth;
use palyra_proto::common::v1 as common;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::{MAX_MESSAGE_BYTES, contract_to_wire, timestamp_to_wire};
use prost::Message as _;

fn at(instant: Timestamp) -> Option<prost_types::Timestamp> {
    Some(timestamp_to_wire(instant))
}

/// What a message has besides its event.
const AROUND: usize = 64;

/// An event as a message, or what stands for one that does not fit. Without it a tape with one huge event could not be read past it.
pub(super) fn event(event: Arc<RunStreamEvent>) -> Result<common::RunStreamEvent, wire::OversizedEvent> {
    let (run_id, seq, at, kind) = (event.run_id, event.seq, event.at, event.body.kind());
    let message = common::RunStreamEvent::from(Arc::unwrap_or_clone(event));
    let size = message.encoded_len();
    if size + AROUND <= MAX_MESSAGE_BYTES {
        return Ok(message);
    }
    Err(wire::OversizedEvent {
        run_id: run_id.to_string(),
        seq,
        at: Some(timestamp_to_wire(at)),
        kind: kind.to_owned(),
        size_bytes: size as u64,
    })
}

pub(super) fn health(health: HealthResponse) -> wire::GetHealthResponse {
    let uptime = prost_types::Duration {
        seconds: i64::try_from(health.uptime_ms / 1000).unwrap_or(i64::MAX),
        nanos: i32::try_from(health.uptime_ms % 1000 * 1_000_000).unwrap_or_default(),
    };
    wire::GetHealthResponse {
        status: contract_to_wire(health.status),
        version: health.version,
        uptime: Some(uptime),
        components: health.components.into_iter().map(component).collect(),
    }
}

fn component(component: ComponentHealth) -> wire::ComponentHealth {
    wire::ComponentHealth {
        component: component.component,
        status: contract_to_wire(component.status),
        summary: component.summary,
        hint: component.hint,
    }
}

pub(super) fn run(run: RunView) -> wire::Run {
    wire::Run {
        run_id: run.run_id.to_string(),
        session_id: run.session_id.to_string(),
        phase: contract_to_wire(run.phase),
        reason: run.reason.map(contract_to_wire),
        detail: run.detail.map(Into::into),
        prompt: run.prompt,
        workspace: run.workspace,
        created_at: at(run.created_at),
        started_at: run.started_at.and_then(at),
        ended_at: run.ended_at.and_then(at),
        turns: run.turns,
        tool_calls: run.tool_calls,
        last_seq: run.last_seq,
        model: run.model,
        undone: run.undone,
        owner: run.owner,
    }
}

pub(super) fn run_detail(detail: RunDetail) -> wire::GetRunResponse {
    wire::GetRunResponse {
        run: Some(run(detail.run)),
        answer: detail.answer,
        mode: contract_to_wire(detail.mode),
        envelope: detail.envelope.into_iter().map(intent).collect(),
        changes: detail.changes.into_iter().map(change).collect(),
        pending_approvals: detail.pending_approvals.into_iter().map(|view| question(view).into()).collect(),
        usage: Some(usage(detail.usage)),
        timings: Some(timings(detail.timings)),
    }
}

fn intent(intent: IntentView) -> wire::Intent {
    wire::Intent {
        tool: intent.tool,
        destinations: intent.destinations.into_iter().collect(),
        arguments: intent.arguments.into_iter().map(|(name, value)| (name, value.to_string())).collect(),
        times: intent.times,
        from: intent.from.into_iter().map(String::from).collect(),
    }
}

fn change(change: FileChangeView) -> wire::FileChange {
    let kind = match change.kind {
        FileChangeKind::Created => wire::FileChangeKind::Created,
        FileChangeKind::Modified => wire::FileChangeKind::Modified,
        FileChangeKind::Deleted => wire::FileChangeKind::Deleted,
    };
    wire::FileChange {
        path: change.path,
        kind: kind.into(),
        before: change.before.map(|digest| digest.to_string()),
        after: change.after.map(|digest| digest.to_string()),
        observed: !change.attribution.is_written(),
    }
}

fn usage(usage: RunUsage) -> wire::RunUsage {
    wire::RunUsage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cost_micro_usd: usage.cost.map(|cost| cost.0),
        cost_assumed: usage.cost_assumed,
    }
}

fn timings(timings: RunTimings) -> wire::RunTimings {
    wire::RunTimings {
        total_ms: timings.total_ms,
        model_ms: timings.model_ms,
        tools_ms: timings.tools_ms,
        waiting_ms: timings.waiting_ms,
    }
}

pub(super) fn session(session: SessionView) -> wire::Session {
    wire::Session {
        session_id: session.session_id.to_string(),
        session_key: session.session_key,
        title: session.title,
        created_at: at(session.created_at),
        updated_at: at(session.updated_at),
        run_count: session.run_count,
        version: session.version,
        archived_at: session.archived_at.and_then(at),
        owner: session.owner,
        forked_from: session.forked_from.map(|id| id.to_string()),
        mode: session.mode.map(contract_to_wire),
        settings: Some(settings(session.settings)),
    }
}

fn settings(settings: SessionSettingsView) -> wire::SessionSettings {
    wire::SessionSettings { model: settings.model, workspace: settings.workspace, agent: settings.agent }
}

pub(super) fn agent(agent: AgentView) -> wire::Agent {
    wire::Agent {
        agent_id: agent.agent_id,
        name: agent.name,
        instructions: agent.instructions,
        model: agent.model.unwrap_or_default(),
        mode: agent.mode.map(contract_to_wire).unwrap_or_default(),
        workspace: agent.workspace.unwrap_or_default(),
        tools: agent.tools,
        version: agent.version,
        created_at: at(agent.created_at),
        updated_at: at(agent.updated_at),
    }
}

/// The question alone, as the tape has it.
fn question(view: ApprovalView) -> ToolApprovalRequest {
    ToolApprovalRequest {
        approval_id: view.approval_id,
        call_id: view.call_id,
        subject: view.subject,
        risk: view.risk,
        summary: view.summary,
        tool: view.tool,
        arguments: view.arguments,
        reason: view.reason,
        evidence: view.evidence,
        offer: view.offer,
    }
}

pub(super) fn approval(mut view: ApprovalView) -> wire::Approval {
    wire::Approval {
        run_id: view.run_id.map(|id| id.to_string()).unwrap_or_default(),
        session_id: view.session_id.map(|id| id.to_string()).unwrap_or_default(),
        asked_by: view.asked_by.take(),
        requested_at: at(view.requested_at),
        answer: view.answer.take().map(answer),
        withdrawn_at: view.withdrawn_at.and_then(at),
        request: Some(question(view).into()),
    }
}

fn answer(answer: ApprovalAnswer) -> wire::ApprovalAnswer {
    wire::ApprovalAnswer {
        decision: contract_to_wire(answer.decision),
        scope: contract_to_wire(answer.scope),
        by: answer.by,
        via: answer.via,
        at: at(answer.at),
    }
}

pub(super) fn pattern(view: PatternView) -> wire::Pattern {
    wire::Pattern {
        approval_id: view.approval_id.to_string(),
        session_id: view.session_id.to_string(),
        tool: view.tool,
        sentence: view.sentence,
        scope: contract_to_wire(view.scope),
        until: view.until.and_then(at),
        by: view.by,
        at: at(view.at),
        revoked_at: view.revoked_at.and_then(at),
    }
}

pub(super) fn principal(view: PrincipalView) -> auth::WhoAmIResponse {
    auth::WhoAmIResponse {
        principal: view.principal,
        role: contract_to_wire(view.role),
        scopes: view.scopes.into_iter().map(contract_to_wire).collect(),
        via: view.via,
    }
}

pub(super) fn token(view: TokenView) -> auth::Token {
    auth::Token {
        token_id: view.token_id,
        name: view.name,
        role: contract_to_wire(view.role),
        scopes: view.scopes.into_iter().map(contract_to_wire).collect(),
        created_at: at(view.created_at),
        expires_at: view.expires_at.and_then(at),
        last_used_at: view.last_used_at.and_then(at),
        revoked_at: view.revoked_at.and_then(at),
        rate_per_minute: view.rate_per_minute,
        subject: view.subject,
        created_by: view.created_by,
        rotated_at: view.rotated_at.and_then(at),
    }
}

pub(super) fn new_token(made: TokenSecretResponse) -> auth::CreateTokenResponse {
    auth::CreateTokenResponse { token: Some(token(made.token)), secret: made.secret }
}

pub(super) fn rotated_token(made: TokenSecretResponse) -> auth::RotateTokenResponse {
    auth::RotateTokenResponse { token: Some(token(made.token)), secret: made.secret }
}
