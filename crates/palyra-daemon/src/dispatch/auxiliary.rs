//! Commands about auxiliary tasks.

use palyra_agent::{AuxiliaryFilter, AuxiliaryInput, AuxiliaryRow, NewAuxiliaryTask};
use palyra_client::api::{AuxiliaryTaskView, ListAuxiliaryParams, ListAuxiliaryResponse, RunAuxiliaryParams};
use palyra_common::{AuxiliaryTaskId, Confidentiality, Integrity, Label};

use super::caller::Caller;
use super::refusal::Result;
use super::runs::page_size;
use crate::app::App;

/// Carries a task out. Whoever stops waiting cancels it.
pub(super) async fn run(app: &App, caller: &Caller, params: RunAuxiliaryParams) -> Result<AuxiliaryTaskView> {
    let input = AuxiliaryInput::read(params.kind, params.input).map_err(palyra_agent::AgentError::from)?;
    // Whoever asks may have the text from anywhere, so nobody vouches for it.
    let label =
        Label::new(Integrity::Untrusted, Confidentiality::Private).from_source(format!("given by {}", caller.id()));
    let new = NewAuxiliaryTask {
        input,
        labels: vec![label],
        session_id: params.session_id,
        owner: Some(caller.id().to_owned()),
        model: params.model,
    };
    let done = app.engine.run_auxiliary(new).await?;
    get(app, done.task_id).await
}

pub(super) async fn get(app: &App, id: AuxiliaryTaskId) -> Result<AuxiliaryTaskView> {
    Ok(view(app.engine.auxiliary_task(id).await?))
}

pub(super) async fn list(app: &App, caller: &Caller, params: ListAuxiliaryParams) -> Result<ListAuxiliaryResponse> {
    let limit = page_size(params.limit)?;
    let filter = AuxiliaryFilter {
        owner: caller.sees(),
        session_id: params.session_id,
        run_id: params.run_id,
        state: params.state,
        before: params.before,
        // One more than asked for tells whether there is a next page.
        limit: limit + 1,
    };
    let mut rows = app.engine.auxiliary_tasks(filter).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_before = if more { rows.last().map(|row| row.task_id) } else { None };
    Ok(ListAuxiliaryResponse { tasks: rows.into_iter().map(view).collect(), next_before })
}

fn view(row: AuxiliaryRow) -> AuxiliaryTaskView {
    AuxiliaryTaskView {
        task_id: row.task_id,
        session_id: row.session_id,
        run_id: row.run_id,
        owner: row.owner,
        kind: row.kind,
        state: row.state,
        output: row.output,
        label: row.label,
        error: row.error,
        budget_tokens: row.budget_tokens,
        created_at: row.created_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
        calls: row.calls,
        answered_by: row.answering.map(|by| by.to_string()),
        input_tokens: row.usage.input_tokens,
        output_tokens: row.usage.output_tokens,
        micro_usd: row.cost.micro_usd,
    }
}
