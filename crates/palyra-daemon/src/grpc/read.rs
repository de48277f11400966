//! Messages as parameters of commands. Reading checks what the schema cannot say; whether the parameters make sense is the dispatcher's
//! work.

use std::str::FromStr;

use palyra_client::api::{
    ApprovalState, ArchivedFilter, AttachmentParams, ClientResultParams, ClientToolParams, CreateRunParams,
    CreateTokenParams, DecideApprovalParams, DeliverResultsParams, ListAgentsParams, ListApprovalsParams,
    ListBindingsParams, ListRunsParams, ListSessionsParams, RunInputParams, RunLimitsParams, SetAgentParams,
};
use palyra_proto::auth::v1 as auth;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::{ProtoError, contract_from_wire, json_from_wire};

pub(super) type Read<T> = Result<T, ProtoError>;

/// An id, or another value with a text form.
pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str, field: &str) -> Read<T> {
    text.parse().map_err(|error: T::Err| ProtoError::invalid(field, error.to_string()))
}

pub(super) fn optional<T: FromStr<Err: std::fmt::Display>>(text: Option<&str>, field: &str) -> Read<Option<T>> {
    text.map(|text| parsed(text, field)).transpose()
}

/// The place of a page, which is empty for the first one.
fn place<T: FromStr<Err: std::fmt::Display>>(token: &str) -> Read<Option<T>> {
    let token = Some(token).filter(|token| !token.is_empty());
    optional(token, "page_token")
        .map_err(|_| ProtoError::invalid("page_token", "it is not a token from the previous page"))
}

/// How many entries, where zero leaves it to the daemon.
fn size(asked: u32) -> Option<u32> {
    Some(asked).filter(|asked| *asked > 0)
}

pub(super) fn run_spec(spec: Option<wire::RunSpec>) -> Read<CreateRunParams> {
    let spec = spec.ok_or_else(|| ProtoError::missing("start.run"))?;
    let (session_id, session_key) = match spec.session {
        Some(wire::run_spec::Session::SessionId(id)) => (Some(parsed(&id, "start.run.session_id")?), None),
        Some(wire::run_spec::Session::SessionKey(key)) => (None, Some(key)),
        None => (None, None),
    };
    let limits = spec.limits.map(|limits| RunLimitsParams {
        max_turns: limits.max_turns,
        max_tool_calls: limits.max_tool_calls,
        wall_clock_seconds: limits.wall_clock_seconds,
    });
    Ok(CreateRunParams {
        attachments: attachments(spec.attachments, "start.run.attachments.artifact")?,
        objective: spec.objective,
        max_attempts: spec.max_attempts,
        binding: None,
        session_id,
        session_key,
        prompt: spec.prompt,
        workspace: spec.workspace,
        model: spec.model,
        agent: spec.agent,
        mode: spec.mode.map(|mode| contract_from_wire(mode, "start.run.mode")).transpose()?,
        limits,
        client_tools: spec.client_tools.into_iter().map(client_tool).collect::<Read<_>>()?,
        history: Vec::new(),
        idempotency_key: spec.idempotency_key,
    })
}

/// Files that were handed over before.
pub(super) fn attachments(files: Vec<wire::Attachment>, field: &'static str) -> Read<Vec<AttachmentParams>> {
    let read = |file: wire::Attachment| {
        Ok(AttachmentParams {
            artifact: parsed(&file.artifact, field)?,
            name: file.name,
            media_type: file.media_type,
            size_bytes: file.size_bytes,
        })
    };
    files.into_iter().map(read).collect()
}

fn client_tool(tool: wire::ClientTool) -> Read<ClientToolParams> {
    Ok(ClientToolParams {
        input_schema: json_from_wire(&tool.input_schema_json, "start.run.client_tools.input_schema_json")?,
        name: tool.name,
        description: tool.description,
    })
}

pub(super) fn input(steer: wire::SteerRun) -> Read<RunInputParams> {
    Ok(RunInputParams { text: steer.text, mode: contract_from_wire(steer.mode, "steer.mode")? })
}

pub(super) fn results(deliver: wire::DeliverResults) -> DeliverResultsParams {
    let result = |result: wire::ClientResult| ClientResultParams {
        call_id: result.call_id,
        content: result.content,
        is_error: result.is_error,
    };
    DeliverResultsParams { results: deliver.results.into_iter().map(result).collect() }
}

pub(super) fn decision(
    decision: i32,
    scope: i32,
    minutes: Option<u32>,
    reason: Option<String>,
) -> Read<DecideApprovalParams> {
    Ok(DecideApprovalParams {
        decision: contract_from_wire(decision, "decision")?,
        scope: contract_from_wire(scope, "scope")?,
        minutes,
        reason,
    })
}

pub(super) fn list_runs(request: &wire::ListRunsRequest) -> Read<ListRunsParams> {
    Ok(ListRunsParams {
        session_id: optional(request.session_id.as_deref(), "session_id")?,
        phase: request.phase.map(|phase| contract_from_wire(phase, "phase")).transpose()?,
        limit: size(request.page_size),
        before: place(&request.page_token)?,
    })
}

pub(super) fn list_sessions(request: &wire::ListSessionsRequest) -> Read<ListSessionsParams> {
    Ok(ListSessionsParams {
        limit: size(request.page_size),
        before: place(&request.page_token)?,
        archived: request.include_archived.then_some(ArchivedFilter::Include),
    })
}

pub(super) fn list_bindings(request: &wire::ListBindingsRequest) -> Read<ListBindingsParams> {
    Ok(ListBindingsParams {
        agent: request.agent_id.clone().filter(|agent| !agent.is_empty()),
        limit: size(request.page_size),
        after: place(&request.page_token)?,
        ..ListBindingsParams::default()
    })
}

pub(super) fn list_agents(request: &wire::ListAgentsRequest) -> ListAgentsParams {
    let after = Some(request.page_token.clone()).filter(|token| !token.is_empty());
    ListAgentsParams { limit: size(request.page_size), after }
}

pub(super) fn agent(agent: wire::Agent) -> Read<SetAgentParams> {
    let mode = match agent.mode {
        0 => None,
        mode => Some(contract_from_wire(mode, "agent.mode")?),
    };
    Ok(SetAgentParams {
        agent_id: agent.agent_id,
        name: agent.name,
        instructions: agent.instructions,
        model: Some(agent.model).filter(|model| !model.is_empty()),
        mode,
        workspace: Some(agent.workspace).filter(|path| !path.is_empty()),
        tools: agent.tools,
    })
}

pub(super) fn list_approvals(request: &wire::ListApprovalsRequest) -> Read<ListApprovalsParams> {
    let state = match wire::ApprovalState::try_from(request.state) {
        Ok(wire::ApprovalState::Unspecified | wire::ApprovalState::Pending) => ApprovalState::Pending,
        Ok(wire::ApprovalState::Decided) => ApprovalState::Decided,
        Ok(wire::ApprovalState::All) => ApprovalState::All,
        Err(error) => return Err(ProtoError::invalid("state", error.to_string())),
    };
    Ok(ListApprovalsParams {
        run_id: optional(request.run_id.as_deref(), "run_id")?,
        state: Some(state),
        ..Default::default()
    })
}

pub(super) fn new_token(request: auth::CreateTokenRequest) -> Read<CreateTokenParams> {
    let scopes = request.scopes.iter().map(|scope| contract_from_wire(*scope, "scopes")).collect::<Read<Vec<_>>>()?;
    Ok(CreateTokenParams {
        name: request.name,
        role: contract_from_wire(request.role, "role")?,
        scopes: Some(scopes).filter(|scopes| !scopes.is_empty()),
        subject: request.subject,
        expires_in_seconds: request.expires_in_seconds,
        rate_per_minute: request.rate_per_minute,
    })
}
