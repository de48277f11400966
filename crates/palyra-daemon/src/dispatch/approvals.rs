//! Commands about questions put to a person, and about what was agreed to for longer than once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use palyra_agent::{AgentError, Answer, ApprovalFilter, ApprovalPage, PatternFilter};
use palyra_client::api::{
    ApprovalAnswer, ApprovalState, ApprovalView, DecideApprovalParams, DecideApprovalResponse, GetApprovalParams,
    ListApprovalsParams, ListApprovalsResponse, ListPatternsParams, ListPatternsResponse, RunView,
};
use palyra_client::command::About;
use palyra_common::{
    ApprovalDecision, ApprovalId, ApprovalScope, Clock as _, ErrorCategory, SessionId, StableErrorEnvelope,
    SystemClock, TerminationReason, Timestamp,
};
use tokio::time::Instant;

use super::caller::Caller;
use super::refusal::{Refusal, Result};
use super::requests;
use super::runs::view;
use crate::app::App;
use crate::views;

/// Most questions of a page.
const MAX_PAGE: u32 = 1000;
/// Longest wait for an answer: clients, ours among them, give up on a request after a minute.
const MAX_WAIT_SECONDS: u32 = 50;
/// How often a waiting caller's journal is looked at. Looking costs one read of a number in memory.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a timeboxed answer holds when nobody says how long.
const DEFAULT_MINUTES: u32 = 60;
/// A day: whoever wants more writes a policy.
const MAX_MINUTES: u32 = 24 * 60;
/// A sentence or two: a model reads it with every later turn.
const MAX_REASON_CHARACTERS: usize = 500;

pub(super) async fn list(app: &App, caller: &Caller, params: ListApprovalsParams) -> Result<ListApprovalsResponse> {
    let open = match params.state.unwrap_or(ApprovalState::Pending) {
        ApprovalState::Pending => Some(true),
        ApprovalState::Decided => Some(false),
        ApprovalState::All => None,
    };
    let limit = match params.limit {
        Some(0) => return Err(Refusal::field("limit", "it must be at least 1")),
        limit => limit.unwrap_or(MAX_PAGE).min(MAX_PAGE),
    };
    let after = match params.after {
        Some(id) => Some((look_at(app, id).await?.requested_at, id)),
        None => None,
    };
    // One more than asked for tells whether there is a next page.
    let filter = ApprovalFilter { run_id: params.run_id, open };
    let mut rows = app.engine.approvals_page(filter, ApprovalPage { after, limit: limit + 1 }).await?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let end = rows.last().filter(|_| more).map(|row| (row.requested_at, row.approval_id));
    let seen = Seen::of(app, caller, rows.iter().map(|row| row.session_id)).await?;
    rows.retain(|row| seen.shows(row.session_id));
    let mut approvals: Vec<_> = rows.into_iter().map(views::approval).collect();
    if params.run_id.is_none() {
        let on_page = |view: &ApprovalView| {
            let place = (view.requested_at, view.approval_id);
            after.is_none_or(|after| place > after) && end.is_none_or(|end| place <= end)
        };
        approvals.extend(requests::list(app, caller, open).await?.into_iter().filter(on_page));
        approvals.sort_by_key(|approval| (approval.requested_at, approval.approval_id));
    }
    let next_after = if approvals.len() > limit as usize {
        approvals.truncate(limit as usize);
        approvals.last().map(|approval| approval.approval_id)
    } else {
        end.map(|(_, id)| id)
    };
    Ok(ListApprovalsResponse { approvals, next_after })
}

/// One question; waits for its answer if told to.
pub(super) async fn get(app: &App, about: About<ApprovalId, GetApprovalParams>) -> Result<ApprovalView> {
    let seconds = about.params.wait_seconds.unwrap_or(0);
    if seconds > MAX_WAIT_SECONDS {
        return Err(Refusal::field("wait_seconds", format!("it must be at most {MAX_WAIT_SECONDS}")));
    }
    let until = Instant::now() + Duration::from_secs(u64::from(seconds));
    loop {
        // Before the look, so that an answer in between is not missed.
        let seen = app.journal.head().count;
        let view = look_at(app, about.target).await?;
        let closed = view.answer.is_some() || view.withdrawn_at.is_some();
        if closed || Instant::now() >= until || app.closing.is_cancelled() {
            return Ok(view);
        }
        // A question that lapses does so without a record.
        let lapses = view.expires_at.map(|end| Instant::now() + end.since(SystemClock.now()));
        let until = lapses.map_or(until, |lapses| until.min(lapses));
        while app.journal.head().count == seen && Instant::now() < until && !app.closing.is_cancelled() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

pub(super) async fn look_at(app: &App, id: ApprovalId) -> Result<ApprovalView> {
    if let Some(question) = requests::find(app, id).await? {
        return Ok(question.view(SystemClock.now()));
    }
    let row = app.engine.approval(id).await?.ok_or_else(|| AgentError::ApprovalNotFound(id.to_string()))?;
    Ok(views::approval(row))
}

pub(super) async fn decide(
    app: &App,
    caller: &Caller,
    about: About<ApprovalId, DecideApprovalParams>,
) -> Result<DecideApprovalResponse> {
    let About { target, params } = about;
    match params.decision {
        ApprovalDecision::Allow | ApprovalDecision::Deny => {}
        ApprovalDecision::Timeout | ApprovalDecision::Error => {
            return Err(Refusal::field("decision", "it must be `allow` or `deny`"));
        }
    }
    let until = match (params.scope, params.minutes) {
        (ApprovalScope::Timeboxed, minutes) => Some(end_of(minutes.unwrap_or(DEFAULT_MINUTES))?),
        (ApprovalScope::Once | ApprovalScope::Session, None) => None,
        (_, Some(_)) => return Err(Refusal::field("minutes", "it requires the scope `timeboxed`")),
    };
    let reason = params.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned);
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON_CHARACTERS) {
        return Err(Refusal::field("reason", format!("it must have at most {MAX_REASON_CHARACTERS} characters")));
    }
    if requests::find(app, target).await?.is_some() {
        let approval = requests::decide(app, caller, target, &params).await?;
        return Ok(DecideApprovalResponse { approval, run: None });
    }
    let answer = Answer {
        decision: params.decision,
        scope: params.scope,
        until,
        by: caller.id().to_owned(),
        program: caller.started_with(app).program,
        via: Some(caller.via()),
        reason,
    };
    let run_id = match app.engine.decide_approval(target, answer).await {
        Err(AgentError::ApprovalNotFound(_)) => return Err(not_open(app, target).await),
        decided => decided?,
    };
    Ok(DecideApprovalResponse { approval: look_at(app, target).await?, run: Some(view(app, run_id).await?) })
}

/// Why a question takes no answer. Whoever was slower than somebody else hears what they decided, and does not wonder whether it ever was asked.
async fn not_open(app: &App, id: ApprovalId) -> Refusal {
    let question = match look_at(app, id).await {
        Ok(question) => question,
        Err(refusal) => return refusal,
    };
    let run = match question.run_id {
        Some(run_id) => view(app, run_id).await.ok(),
        None => None,
    };
    closed(&question, run.as_ref())
}

/// The refusal of an answer to a question that is closed, with what closed it.
pub(super) fn closed(question: &ApprovalView, run: Option<&RunView>) -> Refusal {
    let id = question.approval_id;
    let why = match (&question.answer, run) {
        (Some(ApprovalAnswer { decision: ApprovalDecision::Timeout, at, .. }), _) => {
            format!("expired at {}: nobody answered in time", at.to_rfc3339())
        }
        (Some(answer), _) => {
            format!("was already decided: {} by {} at {}", answer.decision, answer.by, answer.at.to_rfc3339())
        }
        (None, Some(RunView { run_id, reason: Some(TerminationReason::Cancellation), .. })) => {
            format!("is no longer open: run `{run_id}` was cancelled")
        }
        (None, Some(run)) if run.phase.is_terminal() => {
            format!("is no longer open: run `{}` has ended ({})", run.run_id, run.phase)
        }
        (None, _) => "is no longer open: the question was withdrawn".to_owned(),
    };
    StableErrorEnvelope::new("approval_closed", ErrorCategory::Conflict, format!("approval `{id}` {why}"))
        .hint(format!("`palyra approvals show {id}` shows the question and what became of it"))
        .into()
}

/// When a timebox of so many minutes ends.
fn end_of(minutes: u32) -> Result<Timestamp> {
    if minutes == 0 || minutes > MAX_MINUTES {
        return Err(Refusal::field("minutes", format!("it must be 1 to {MAX_MINUTES}")));
    }
    Ok(SystemClock.now().plus(Duration::from_secs(u64::from(minutes) * 60)))
}

pub(super) async fn patterns(app: &App, caller: &Caller, params: ListPatternsParams) -> Result<ListPatternsResponse> {
    let which = if params.all == Some(true) { PatternFilter::All } else { PatternFilter::Counting };
    counting(app, caller, which).await
}

pub(super) async fn revoke(app: &App, caller: &Caller, id: ApprovalId) -> Result<ListPatternsResponse> {
    app.engine.revoke_pattern(id, caller.id()).await?;
    counting(app, caller, PatternFilter::Counting).await
}

async fn counting(app: &App, caller: &Caller, which: PatternFilter) -> Result<ListPatternsResponse> {
    let mut rows = app.engine.patterns(which).await?;
    let seen = Seen::of(app, caller, rows.iter().map(|row| row.session_id)).await?;
    rows.retain(|row| seen.shows(row.session_id));
    Ok(ListPatternsResponse { patterns: rows.into_iter().map(views::pattern).collect() })
}

/// Which sessions a caller sees something of.
struct Seen(Option<HashMap<SessionId, bool>>);

impl Seen {
    async fn of(app: &App, caller: &Caller, sessions: impl Iterator<Item = SessionId>) -> Result<Self> {
        if caller.sees().is_none() {
            return Ok(Self(None));
        }
        let mut known = HashMap::new();
        for id in sessions {
            if let Entry::Vacant(unknown) = known.entry(id) {
                unknown.insert(caller.sees_of(&app.engine.session(id).await?.owner));
            }
        }
        Ok(Self(Some(known)))
    }

    fn shows(&self, id: SessionId) -> bool {
        self.0.as_ref().is_none_or(|known| known.get(&id).copied().unwrap_or(false))
    }
}
