//! Commands about what models used and saw.

use palyra_agent::{ContextSegment, ContextView, OfferedTool, WireCost};
use palyra_budget::{Account, BudgetScope, Day, Month};
use palyra_client::api::{
    BudgetView, ContextSegmentView, OfferedToolView, RunContextParams, RunContextResponse, UsageParams, UsageResponse,
    WireCostView,
};
use palyra_client::command::About;
use palyra_common::{RunId, Timestamp};

use super::caller::Caller;
use super::refusal::Result;
use crate::app::App;

/// What was used in the caller's sessions, or in all of them.
pub(super) async fn report(app: &App, caller: &Caller, params: UsageParams) -> Result<UsageResponse> {
    let by = params.by.unwrap_or(palyra_budget::UsageGrouping::Model);
    let report = app.engine.usage(caller.sees(), by).await?;
    Ok(UsageResponse { report, budgets: budgets(app) })
}

fn budgets(app: &App) -> Vec<BudgetView> {
    let spending = app.engine.spending();
    let now = app.engine.now();
    spending
        .limits()
        .iter()
        .map(|limit| {
            let standing = account(limit.scope, now).map(|account| spending.ledger().standing(&account));
            BudgetView {
                scope: limit.scope,
                soft: limit.soft,
                hard: limit.hard,
                spent: standing.map(|standing| standing.spent),
                reserved: standing.map(|standing| standing.reserved),
            }
        })
        .collect()
}

/// The account of a budget that everybody shares.
fn account(scope: BudgetScope, now: Timestamp) -> Option<Account> {
    match scope {
        BudgetScope::Day => Some(Account::Day(Day::of(now))),
        BudgetScope::Month => Some(Account::Month(Month::of(now))),
        BudgetScope::Global => Some(Account::Global),
        BudgetScope::Run | BudgetScope::Session | BudgetScope::Agent => None,
    }
}

/// What the model of a run saw.
pub(super) async fn context(app: &App, about: About<RunId, RunContextParams>) -> Result<RunContextResponse> {
    let ContextView {
        turn,
        attempt,
        turns,
        window,
        counted,
        stable_messages,
        digest,
        is_exact,
        segments,
        originals,
        model,
        is_language_model,
        offered,
        deferred,
        wires,
    } = app.engine.context(about.target, about.params.turn).await?;
    Ok(RunContextResponse {
        run_id: about.target,
        turn,
        attempt,
        turns,
        window,
        tokens: segments.iter().map(|segment| segment.tokens).fold(0, u32::saturating_add),
        model,
        language_model: is_language_model,
        counted,
        stable_messages,
        digest,
        exact: is_exact,
        segments: segments.into_iter().map(segment).collect(),
        originals: originals.into_iter().filter(|_| about.params.originals).map(segment).collect(),
        offered_tools: offered.into_iter().map(offered_tool).collect(),
        deferred_tools: deferred,
        wires: wires.into_iter().map(wire).collect(),
    })
}

fn offered_tool(tool: OfferedTool) -> OfferedToolView {
    OfferedToolView { name: tool.name, tokens: tool.tokens, core: tool.is_core }
}

fn wire(cost: WireCost) -> WireCostView {
    WireCostView {
        total: cost.total(),
        wire: cost.wire.to_string(),
        system: cost.system,
        core_tools: cost.core_tools,
        extra_tools: cost.extra_tools,
        project: cost.project,
        history: cost.history,
        task: cost.task,
        steps: cost.steps,
    }
}

fn segment(segment: ContextSegment) -> ContextSegmentView {
    ContextSegmentView {
        kind: segment.kind.to_string(),
        source: segment.source,
        tokens: segment.tokens,
        label: segment.label,
        text: segment.text,
    }
}
