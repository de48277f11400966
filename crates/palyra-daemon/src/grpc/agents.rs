//! Methods about agents.

use std::sync::Arc;

use palyra_client::command::{About, AgentName};
use palyra_proto::ProtoError;
use palyra_proto::gateway::v1 as wire;
use tonic::Status;

use super::ask::{outcome, unreadable};
use super::{read, write};
use crate::app::App;
use crate::dispatch::Caller;

pub(super) async fn list(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::ListAgentsRequest,
) -> Result<wire::ListAgentsResponse, Status> {
    let page = outcome!(app, caller, AgentList(read::list_agents(request)));
    Ok(wire::ListAgentsResponse {
        agents: page.agents.into_iter().map(write::agent).collect(),
        next_page_token: page.next_after.unwrap_or_default(),
    })
}

pub(super) async fn get(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::GetAgentRequest,
) -> Result<wire::GetAgentResponse, Status> {
    let agent = outcome!(app, caller, AgentGet(About::only(name(&request.agent_id)?)));
    Ok(wire::GetAgentResponse { agent: Some(write::agent(agent)) })
}

pub(super) async fn set(
    app: &Arc<App>,
    caller: &Caller,
    request: wire::SetAgentRequest,
) -> Result<wire::SetAgentResponse, Status> {
    let agent = request.agent.ok_or_else(|| unreadable(ProtoError::missing("agent")))?;
    let params = read::agent(agent).map_err(unreadable)?;
    let agent = outcome!(app, caller, AgentSet(params), version request.expected_version);
    Ok(wire::SetAgentResponse { agent: Some(write::agent(agent)) })
}

pub(super) async fn remove(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::RemoveAgentRequest,
) -> Result<wire::RemoveAgentResponse, Status> {
    let about = About::only(name(&request.agent_id)?);
    let removed = outcome!(app, caller, AgentRemove(about), version request.expected_version);
    Ok(wire::RemoveAgentResponse { removed_bindings: removed.removed_bindings })
}

fn name(text: &str) -> Result<AgentName, Status> {
    read::parsed(text, "agent_id").map_err(unreadable)
}
