//! Questions that a client puts to its person through Palyra: an editor before its own tool runs, an agent before something it is not sure of.
//!
//! Palyra carries the question and the answer and does nothing else with either: no run waits, nothing is permitted by it. The words are the
//! client's own; they are bounded, told apart from Palyra's own questions by `asked_by`, and never more than data.
//!
//! INVARIANT: the program that asks does not answer. A question is answered by the person it belongs to, with another credential than the one that asked
//! where that is one that programs hold.

mod table;

use std::time::Duration;

use palyra_agent::AgentError;
use palyra_client::api::{ApprovalView, DecideApprovalParams, RequestApprovalParams};
use palyra_common::{
    ApprovalDecision, ApprovalId, ApprovalScope, Clock as _, Digest, ErrorCategory, Risk, StableErrorEnvelope,
    SystemClock,
};
use palyra_identity::Via;

use self::table::{Answered, Asked, Question, Which};
use super::caller::Caller;
use super::records;
use super::refusal::{Refusal, Result};
use crate::app::App;

pub(super) use table::Requests;

/// Longest question: what does not fit here is not read before it is answered.
const MAX_SUMMARY: usize = 240;
/// Longest reason.
const MAX_REASON: usize = 2_000;
/// Largest details, as JSON.
const MAX_DETAILS: usize = 16 * 1024;
/// Questions of one principal that may wait at a time. A person who is asked more than this answers without reading.
const MAX_OPEN: usize = 32;
/// Longest life of a question that lapses: a week.
const MAX_LIFE: u64 = 7 * 24 * 3600;

/// Puts a question.
pub(super) async fn ask(
    app: &App,
    caller: &Caller,
    params: RequestApprovalParams,
    key: Option<String>,
) -> Result<ApprovalView> {
    check(&params)?;
    if let Some(session_id) = params.session_id
        && app.engine.session(session_id).await?.owner != caller.id()
    {
        return Err(Refusal::field("session_id", "the session belongs to another user"));
    }
    let now = SystemClock.now();
    let asked = Asked {
        approval_id: key.map_or_else(ApprovalId::generate, |key| id_of(caller, &key)),
        owner: caller.id().to_owned(),
        via: caller.via(),
        credential: credential(app, caller),
        session_id: params.session_id,
        subject: params.subject,
        risk: params.risk.unwrap_or(Risk::Medium),
        summary: params.summary,
        reason: params.reason.unwrap_or_default(),
        details: params.details,
        at: now,
        expires_at: params.expires_in_seconds.map(|seconds| now.plus(Duration::from_secs(seconds))),
    };
    let _turn = app.keys.turn("\u{0}requests", caller.id()).await;
    if let Some(known) = find(app, asked.approval_id).await? {
        // The same command, taken up again after its daemon died.
        return Ok(known.view(now));
    }
    let owner = asked.owner.clone();
    let waiting = questions(app, Some(owner), Which::Unanswered).await?;
    if waiting.iter().filter(|question| question.answer(now).is_none()).count() >= MAX_OPEN {
        return Err(full());
    }
    app.journal.append(vec![records::record(table::ASKED, now, &asked)?]).await?;
    Ok(Question { asked, answered: None }.view(now))
}

/// A question of a client, if this is one.
pub(super) async fn find(app: &App, id: ApprovalId) -> Result<Option<Question>> {
    Ok(app.journal.read(move |reader| Ok(table::question(reader.connection(), id)?)).await?)
}

/// The questions that a caller sees: open ones, closed ones or both.
pub(super) async fn list(app: &App, caller: &Caller, open: Option<bool>) -> Result<Vec<ApprovalView>> {
    let which = if open == Some(true) { Which::Unanswered } else { Which::All };
    let now = SystemClock.now();
    let mut views: Vec<_> =
        questions(app, caller.sees(), which).await?.into_iter().map(|question| question.view(now)).collect();
    views.retain(|view| open.is_none_or(|open| view.answer.is_none() == open));
    Ok(views)
}

/// Answers a question.
pub(super) async fn decide(
    app: &App,
    caller: &Caller,
    id: ApprovalId,
    params: &DecideApprovalParams,
) -> Result<ApprovalView> {
    let _turn = app.keys.turn("\u{0}request", &id.to_string()).await;
    let not_open = || AgentError::ApprovalNotFound(id.to_string());
    let mut question = find(app, id).await?.ok_or_else(not_open)?;
    let now = SystemClock.now();
    if question.answer(now).is_some() {
        return Err(super::approvals::closed(&question.view(now), None));
    }
    let refused = |reason: &str| AgentError::AnswerRefused { by: caller.id().to_owned(), reason: reason.to_owned() };
    if question.asked.owner != caller.id() {
        return Err(refused("the approval is addressed to another user").into());
    }
    if question.asked.credential.is_some() && question.asked.credential == credential(app, caller) {
        return Err(refused("the credential that asked for approval may not answer it").into());
    }
    if params.decision == ApprovalDecision::Allow && params.scope != ApprovalScope::Once {
        return Err(AgentError::NothingOffered(id.to_string()).into());
    }
    let answered =
        Answered { approval_id: id, decision: params.decision, by: caller.id().to_owned(), via: caller.via(), at: now };
    app.journal.append(vec![records::record(table::ANSWERED, now, &answered)?]).await?;
    question.answered = Some(answered);
    Ok(question.view(now))
}

async fn questions(app: &App, owner: Option<String>, which: Which) -> Result<Vec<Question>> {
    let read = app.journal.read(move |reader| Ok(table::questions(reader.connection(), owner.as_deref(), which)?));
    Ok(read.await?)
}

/// What a program holds and a person does not: whoever is at the machine itself has the owner's rights anyway.
fn credential(app: &App, caller: &Caller) -> Option<String> {
    match app.gate.behind(&caller.principal.via) {
        // Here the machine's own device counts too: an editor that asks is not the person at its keyboard.
        Some(Via::Device { id, .. }) => Some(format!("device {id}")),
        // A session of the console is as good as what it was opened with.
        _ => caller.started_with(app).program,
    }
}

fn id_of(caller: &Caller, key: &str) -> ApprovalId {
    let digest = Digest::of_parts(&[b"approval.request", caller.id().as_bytes(), key.as_bytes()]);
    let mut bits = [0; 16];
    bits.copy_from_slice(digest.0.first_chunk::<16>().unwrap_or(&[0; 16]));
    ApprovalId::from_u128(u128::from_be_bytes(bits))
}

fn check(params: &RequestApprovalParams) -> Result<()> {
    if params.summary.trim().is_empty()
        || params.summary.chars().count() > MAX_SUMMARY
        || params.summary.chars().any(char::is_control)
    {
        let message = format!("it must be one line of 1 to {MAX_SUMMARY} characters");
        return Err(Refusal::field("summary", message));
    }
    if params.reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        return Err(Refusal::field("reason", format!("it must have at most {MAX_REASON} characters")));
    }
    if params.details.as_ref().is_some_and(|details| details.to_string().len() > MAX_DETAILS) {
        return Err(Refusal::field("details", format!("it must be at most {} KiB of JSON", MAX_DETAILS / 1024)));
    }
    if params.expires_in_seconds.is_some_and(|seconds| seconds == 0 || seconds > MAX_LIFE) {
        return Err(Refusal::field("expires_in_seconds", format!("it must be 1 to {MAX_LIFE}")));
    }
    Ok(())
}

fn full() -> Refusal {
    let message = format!("the limit of {MAX_OPEN} pending approvals of this principal is reached");
    StableErrorEnvelope::new("approval_requests_full", ErrorCategory::Conflict, message)
        .hint("wait until some are answered; `approval.list` shows them")
        .into()
}
