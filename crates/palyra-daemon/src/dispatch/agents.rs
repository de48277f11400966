//! Commands about agents: named ways of working.
//!
//! Agents belong to the daemon and not to whoever set them: what one says counts as the operator's word in everybody's runs, so only owners set and remove
//! them, and everybody may look.

use palyra_agent::AgentProfile;
use palyra_client::api::{AgentView, ListAgentsParams, ListAgentsResponse, RemoveAgentResponse, SetAgentParams};
use palyra_common::AcpCommand;

use super::caller::Caller;
use super::refusal::Result;
use super::runs::page_size;
use super::{bindings, workspaces};
use crate::app::App;
use crate::views;

pub(super) fn list(app: &App, params: &ListAgentsParams) -> Result<ListAgentsResponse> {
    let limit = page_size(params.limit)? as usize;
    let behind = |id: &str| params.after.as_deref().is_none_or(|after| id > after);
    let mut rows: Vec<_> = app.engine.agents().into_iter().filter(|row| behind(&row.profile.agent_id)).collect();
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_after = if more { rows.last().map(|row| row.profile.agent_id.clone()) } else { None };
    Ok(ListAgentsResponse { agents: rows.into_iter().map(views::agent).collect(), next_after })
}

pub(super) fn get(app: &App, id: &str) -> Result<AgentView> {
    Ok(views::agent(app.engine.agent(id)?))
}

pub(super) async fn set(app: &App, caller: &Caller, params: SetAgentParams, version: Option<u64>) -> Result<AgentView> {
    if let Some(workspace) = &params.workspace {
        workspaces::permit_later(app, caller, AcpCommand::AgentSet, workspace).await?;
    }
    let SetAgentParams { agent_id, name, instructions, model, mode, workspace, tools } = params;
    let profile = AgentProfile { agent_id, name, instructions, model, mode, workspace, tools };
    Ok(views::agent(app.engine.set_agent(profile, caller.id(), version).await?))
}

/// Removes an agent with the bindings that name it, in one commit.
pub(super) async fn remove(app: &App, by: &str, id: &str, version: Option<u64>) -> Result<RemoveAgentResponse> {
    // One that is tied in between names an agent that is gone, and its messages are refused.
    let untied = bindings::without_agent(app, by, id).await?;
    let removed_bindings = u32::try_from(untied.len()).unwrap_or(u32::MAX);
    let row = app.engine.remove_agent(id, by, version, untied).await?;
    Ok(RemoveAgentResponse { agent: views::agent(row), removed_bindings })
}
