//! The page itself.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use palyra_a2ui::html::{Acting, Entered, Frame, Notice, Origin, Question, Questions, View};
use palyra_a2ui::{Document, html};
use palyra_client::api::{ApprovalState, ApprovalView, CanvasAccess, CanvasDetail, ListApprovalsParams, paths};
use palyra_client::command::{About, Command, Outcome};
use palyra_common::{Integrity, RequestId, SessionId, TokenScope};

use super::{Token, admit, refused, respond, shown};
use crate::app::App;
use crate::auth::Peer;
use crate::dispatch::{self, Answer, Caller, Link, Refusal, Result};
use crate::serve::Connection;

/// Longest text of arguments on a card.
const MAX_ARGUMENTS: usize = 16 * 1024;

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Extension(connection): Extension<Connection>,
    path: Token,
    RawQuery(query): RawQuery,
) -> Response {
    let token = shown(path);
    let (link, caller) = match admit(&app, &peer, &connection, &token).await {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    let notice = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "done")
        .and_then(|(_, what)| Done::read(&what))
        .map(Done::sentence);
    let said = Said { status: StatusCode::OK, notice: notice.map(Notice::Done), entered: None };
    write(&app, &link, &caller, &token, said).await
}

/// What a page says besides its canvas.
pub(super) struct Said<'a> {
    pub(super) status: StatusCode,
    pub(super) notice: Option<Notice<'a>>,
    /// What was entered into a form that was refused.
    pub(super) entered: Option<Entered<'a>>,
}

/// What became of what a person did. It travels in the address, so it is one of a few words and not a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Done {
    Sent,
    Queued,
    Answered,
}

impl Done {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Queued => "queued",
            Self::Answered => "answered",
        }
    }

    fn read(word: &str) -> Option<Self> {
        [Self::Sent, Self::Queued, Self::Answered].into_iter().find(|done| done.word() == word)
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Sent => "Sent. The agent is working on it.",
            Self::Queued => "Sent. The agent reads it when its current work is done.",
            Self::Answered => "Your answer was recorded.",
        }
    }
}

/// Writes the page of a link.
pub(super) async fn write(app: &Arc<App>, link: &Link, caller: &Caller, token: &str, said: Said<'_>) -> Response {
    let drawn = match drawn(app, link, caller).await {
        Ok(drawn) => drawn,
        Err(refusal) => return refused(refusal.envelope()),
    };
    let (detail, document, questions) = drawn;
    let address = paths::CANVAS_PAGE_ACTIONS.replace("{token}", token);
    let page = paths::CANVAS_PAGE.replace("{token}", token);
    let events = format!("{}?from={}", paths::CANVAS_PAGE_EVENTS.replace("{token}", token), document.version());
    let once = RequestId::generate().to_string();
    let view = View {
        title: &detail.canvas.title,
        acting: match link.access {
            CanvasAccess::Read => Acting::Look,
            CanvasAccess::Act => Acting::Act { address: &address, once: &once },
        },
        notice: said.notice,
        origin: match detail.canvas.label.integrity {
            Integrity::Untrusted => Origin::Untrusted,
            Integrity::System | Integrity::Operator | Integrity::User | Integrity::ToolTrusted => Origin::Trusted,
        },
        questions: &questions,
        entered: said.entered,
    };
    respond(said.status, |nonce| html::page(&document, &view, Frame { nonce, page: &page, events: &events }))
}

/// What a canvas shows now: itself, its document, and the questions on its cards.
pub(super) async fn drawn(
    app: &Arc<App>,
    link: &Link,
    caller: &Caller,
) -> Result<(CanvasDetail, Document, Vec<Questions>)> {
    let command = Command::CanvasGet(About::only(link.canvas_id));
    let detail = match dispatch::dispatch(app, caller, command.into()).await? {
        Answer::Fresh(Outcome::CanvasGet(detail)) => *detail,
        _ => return Err(Refusal::internal("a canvas came to something else")),
    };
    let document = Document::parse(&detail.document)?;
    let questions = questions(app, caller, &document, detail.canvas.session_id).await?;
    Ok((detail, document, questions))
}

/// What the cards of a document show: questions of its own session, in the words of whoever put them.
async fn questions(app: &Arc<App>, caller: &Caller, document: &Document, session: SessionId) -> Result<Vec<Questions>> {
    let cards = document.approvals();
    if cards.is_empty() || !caller.has(TokenScope::ApprovalsRead) {
        return Ok(Vec::new());
    }
    let mut params = ListApprovalsParams { state: Some(ApprovalState::All), ..ListApprovalsParams::default() };
    let mut all = Vec::new();
    loop {
        let listed = match dispatch::dispatch(app, caller, Command::ApprovalList(params.clone()).into()).await? {
            Answer::Fresh(Outcome::ApprovalList(listed)) => listed,
            _ => return Err(Refusal::internal("a list of questions came to something else")),
        };
        params.after = listed.next_after;
        all.extend(listed.approvals.into_iter().filter(|approval| approval.session_id == Some(session)));
        if params.after.is_none() {
            break;
        }
    }
    let of_card = |wanted: Option<&str>| {
        let shown = |approval: &&ApprovalView| match wanted {
            Some(id) => approval.approval_id.to_string() == id,
            None => approval.answer.is_none() && approval.withdrawn_at.is_none(),
        };
        all.iter().filter(shown).map(question).collect()
    };
    Ok(cards
        .into_iter()
        .map(|card| Questions { card: card.id.clone(), questions: of_card(card.approval_id.as_deref()) })
        .collect())
}

fn question(approval: &ApprovalView) -> Question {
    let answer = match (&approval.answer, approval.withdrawn_at) {
        (Some(answer), _) => Some(format!("{} by {}", answer.decision, answer.by)),
        (None, Some(_)) => Some("The question was withdrawn.".to_owned()),
        (None, None) => None,
    };
    Question {
        approval_id: approval.approval_id.to_string(),
        asked_by: approval.asked_by.clone(),
        summary: approval.summary.clone(),
        reason: approval.reason.clone(),
        risk: approval.risk.to_string(),
        arguments: approval.arguments.as_ref().map(|arguments| {
            let text = serde_json::to_string_pretty(arguments).unwrap_or_default();
            match text.char_indices().nth(MAX_ARGUMENTS) {
                Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
                None => text,
            }
        }),
        evidence: approval
            .evidence
            .iter()
            .map(|shown| {
                let source = shown.source.as_deref().unwrap_or("nowhere");
                format!("{} = {} ({}, from {source})", shown.argument, shown.value, shown.provenance)
            })
            .collect(),
        answer,
    }
}
