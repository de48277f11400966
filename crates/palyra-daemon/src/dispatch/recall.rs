//! Finding what was said before, in the caller's own sessions.

use palyra_agent::{RecallQuery, Recalled, RecalledPiece};
use palyra_client::api::{RecallParams, RecallResponse, RecalledView};
use palyra_common::{ErrorCategory, StableErrorEnvelope, TokenScope};

use super::caller::Caller;
use super::refusal::{Refusal, Result};
use crate::app::App;

/// Pieces if nobody says how many.
const DEFAULT_PIECES: u32 = 8;
/// Most pieces.
const MAX_PIECES: u32 = 24;
/// Most bytes of a query: what a recall task takes.
const MAX_QUERY: usize = 8 << 10;

pub(super) async fn recall(app: &App, caller: &Caller, params: RecallParams) -> Result<RecallResponse> {
    // The command needs the scope that lets a model be used; what is looked through needs its own.
    if !caller.has(TokenScope::SessionsRead) {
        let message = format!("searching sessions needs the scope `{}`", TokenScope::SessionsRead.as_str());
        return Err(StableErrorEnvelope::new("scope_missing", ErrorCategory::Policy, message)
            .hint("ask the owner for a token with that scope")
            .into());
    }
    if params.query.len() > MAX_QUERY || !params.query.chars().any(char::is_alphanumeric) {
        return Err(Refusal::field("query", format!("it must contain a word and have at most {MAX_QUERY} bytes")));
    }
    let limit = params.limit.unwrap_or(DEFAULT_PIECES);
    if !(1..=MAX_PIECES).contains(&limit) {
        return Err(Refusal::field("limit", format!("it must be from 1 to {MAX_PIECES}")));
    }
    let query = RecallQuery {
        owner: caller.id().to_owned(),
        session_id: params.session_id,
        query: params.query,
        limit: limit as usize,
    };
    let Recalled { pieces, ranked_by, note, label } = app.engine.recall(query).await?;
    let pieces = pieces.into_iter().map(view).collect();
    Ok(RecallResponse { pieces, ranked_by: ranked_by.to_string(), note, label })
}

fn view(piece: RecalledPiece) -> RecalledView {
    RecalledView {
        session_id: piece.session_id,
        run_id: piece.run_id,
        seq: piece.seq,
        said: piece.said.to_string(),
        text: piece.text,
        label: piece.label,
        score: piece.score,
        why: piece.why,
    }
}
