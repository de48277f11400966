//! Commands about what the daemon has and how it is: tools, policies, configuration, stopping, taking up a broken connection.

use palyra_client::api::{
    ActiveRunView, ConfigEntryView, ConfigResponse, ListApprovalsParams, ListPoliciesResponse, ListToolsResponse,
    PolicyView, ReconnectResponse, StopDaemonResponse, ToolView,
};
use palyra_common::{BuildInfo, Consequence};

use super::approvals;
use super::caller::Caller;
use super::refusal::{Refusal, Result};
use crate::app::App;

pub(super) async fn tools(app: &App) -> ListToolsResponse {
    app.outside.refresh().await;
    let mut tools: Vec<_> = app
        .outside
        .registry()
        .declarations()
        .map(|declaration| ToolView {
            name: declaration.name.to_string(),
            description: declaration.description.clone(),
            scope: declaration.scope,
            consequential: declaration.consequence == Consequence::Consequential,
            input_schema: declaration.input_schema.as_ref().clone(),
        })
        .collect();
    tools.sort_by(|left, right| left.name.cmp(&right.name));
    ListToolsResponse { tools }
}

pub(super) fn policies(app: &App) -> ListPoliciesResponse {
    let view = |entry: &palyra_policy::PolicyEntry| PolicyView {
        id: entry.id.clone(),
        source: entry.at.to_string(),
        text: entry.text.clone(),
    };
    ListPoliciesResponse { policies: app.policies.current().entries().map(view).collect() }
}

/// The configuration that the daemon runs with, every value with its source.
pub(super) fn config(app: &App) -> Result<ConfigResponse> {
    let mut entries = Vec::new();
    for entry in app.config.list() {
        let value = serde_json::to_value(&entry.value).map_err(|error| Refusal::internal(error.to_string()))?;
        entries.push(ConfigEntryView { key: entry.key.to_owned(), value, source: entry.source.to_string() });
    }
    entries.sort_by(|left, right| left.key.cmp(&right.key));
    Ok(ConfigResponse { file: app.config.file().map(|path| path.display().to_string()), entries })
}

/// Stops the daemon. This answer is still delivered: closing waits for answers under way.
pub(super) fn stop(app: &App, caller: &Caller) -> StopDaemonResponse {
    let unfinished_runs = app.engine.unfinished() as u64;
    tracing::info!(by = caller.id(), unfinished_runs, "stopping on request");
    app.closing.cancel();
    StopDaemonResponse { pid: std::process::id(), unfinished_runs }
}

/// What a client needs whose connection broke.
pub(super) async fn reconnect(app: &App, caller: &Caller) -> Result<ReconnectResponse> {
    let mut active_runs = Vec::new();
    // Whatever is not over has a driver, so nothing has to be searched for.
    for run_id in app.engine.unfinished_runs() {
        let row = app.engine.run(run_id).await?;
        if caller.sees_of(&row.owner) {
            active_runs.push(ActiveRunView { run_id, last_seq: app.engine.last_seq(run_id).await? });
        }
    }
    active_runs.sort_by_key(|run| run.run_id);
    let mut pending_approvals = Vec::new();
    let mut params = ListApprovalsParams::default();
    loop {
        let page = approvals::list(app, caller, params.clone()).await?;
        pending_approvals.extend(page.approvals);
        params.after = page.next_after;
        if params.after.is_none() {
            break;
        }
    }
    Ok(ReconnectResponse {
        principal: caller.view(),
        version: BuildInfo::current().version.to_owned(),
        active_runs,
        pending_approvals,
    })
}
