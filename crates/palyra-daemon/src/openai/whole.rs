//! An answer at once: everything is waited for, a person only for a while.

use std::time::{Duration, Instant};

use palyra_common::{ErrorCategory, RunId, StableErrorEnvelope};
use palyra_models::Usage;

use super::error::{OpenAiError, OpenAiResult};
use super::following::{Ending, Following, Piece};
use crate::app::App;
use crate::dispatch::Refusal;

/// A whole answer.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) run_id: RunId,
    pub(super) from_seq: u64,
    pub(super) text: String,
    pub(super) ending: Ending,
    pub(super) usage: Usage,
}

/// Waits for all of an answer.
pub(super) async fn collect(app: &App, following: Following) -> OpenAiResult<Whole> {
    let patience = Duration::from_secs(app.config.config().openai.approval_wait_seconds);
    let mut following = following.no_longer_silent_than(patience);
    let mut text = String::new();
    let mut waiting: Option<(Instant, String)> = None;
    loop {
        match following.next().await.map_err(OpenAiError::of_a_run)? {
            Some(Piece::Text(more)) => text.push_str(&more),
            Some(Piece::Waiting(why)) => {
                waiting.get_or_insert((Instant::now(), why));
            }
            Some(Piece::Going) => waiting = None,
            Some(Piece::Silence) => {}
            Some(Piece::Done(ending)) => {
                let (run_id, from_seq, usage) = (following.run_id(), following.begins_at(), following.usage());
                return Ok(Whole { run_id, from_seq, text, ending, usage });
            }
            None => return Err(OpenAiError::of_a_run(Refusal::internal("an answer ended without its final event"))),
        }
        if let Some((since, why)) = &waiting
            && since.elapsed() >= patience
        {
            return Err(OpenAiError::of_a_run(waits(following.run_id(), why)));
        }
    }
}

fn waits(run_id: RunId, why: &str) -> Refusal {
    StableErrorEnvelope::new(
        "run_waits_for_person",
        ErrorCategory::Conflict,
        format!("the run {run_id} is not done: {why}"),
    )
    .hint(
        "answer with `palyra approvals`, then send the same request with the same `Idempotency-Key`; a request with \
             `stream` stays open meanwhile",
    )
    .details(serde_json::json!({ "run_id": run_id }))
    .into()
}
