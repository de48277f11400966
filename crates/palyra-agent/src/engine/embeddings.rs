//! Embeddings: model calls that belong to no run, held to the budgets and entered into the books like all others.
//!
//! They are booked on a session of their own for each principal, so that usage reports show them to whom they belong.

use std::sync::Arc;

use palyra_budget::{Charge, MicroUsd};
use palyra_common::{ErrorCategory, RunId, SessionId, StableErrorEnvelope, ToStableError as _};
use palyra_journal::NewRecord;
use palyra_models::{EmbeddingInput, EmbeddingRequest, Embeddings, Priced, Usage};
use serde::{Deserialize, Serialize};

use super::Engine;
use crate::spec::MAIN_AGENT;

/// Kind of the record of a call.
pub(crate) const USED: &str = "embeddings.used";
/// Names the session that a principal's calls are booked on.
const SESSION_KEY: &str = "openai embeddings";
const SESSION_TITLE: &str = "Embeddings";

/// Payload of an `embeddings.used` record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EmbeddingsUsed {
    /// Stands for the call in the books.
    pub(crate) run_id: RunId,
    pub(crate) session_id: SessionId,
    pub(crate) by: String,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) input_tokens: u64,
    pub(crate) micro_usd: MicroUsd,
    /// Whether the price was not known and the worst was assumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) assumed: bool,
}

impl Engine {
    /// Asks the embedding model of the provider for a principal; `None` if it has none.
    ///
    /// # Errors
    /// When a budget leaves too little, the provider fails, or the call cannot be recorded.
    pub async fn embed(
        &self,
        owner: &str,
        request: EmbeddingRequest,
    ) -> Result<Option<Embeddings>, StableErrorEnvelope> {
        let options = &self.shared.options;
        let provider = options.provider.present().unwrap_or_else(|| Arc::clone(&options.provider));
        let info = provider.describe();
        if !info.is_language_model {
            return Ok(None);
        }
        options.journal.admission().map_err(|error| error.to_stable())?;
        let title = Some(SESSION_TITLE.to_owned());
        let (session, _) = self.resolve_session(owner, SESSION_KEY, title).await.map_err(|error| error.to_stable())?;
        let (run_id, session_id) = (RunId::generate(), session.session_id);
        let seller = provider.seller(&info.name);
        let worst = options.spending.prices().worst(&seller, &request.model, most_tokens(&request.input), 0).micro_usd;
        let charge = Charge { run_id, session_id, agent: MAIN_AGENT.to_owned(), at: options.clock.now(), worst };
        let limits = options.spending.limits();
        let reservation =
            options.spending.ledger().reserve(&charge, &limits, None).map_err(|exceeded| exceeded.to_stable())?;
        let embeddings = match provider.embed(request).await {
            Ok(Some(embeddings)) => embeddings,
            Ok(None) => {
                reservation.release();
                return Ok(None);
            }
            // Whether it cost anything is not known, so what was held counts as spent.
            Err(error) => return Err(error.to_stable()),
        };
        let usage = Usage::plain(embeddings.input_tokens, 0);
        let cost = options.spending.prices().cost(&seller, &embeddings.model, &usage);
        let used = EmbeddingsUsed {
            run_id,
            session_id,
            by: owner.to_owned(),
            provider: info.name,
            model: embeddings.model.clone(),
            input_tokens: embeddings.input_tokens,
            micro_usd: cost.micro_usd,
            assumed: cost.priced == Priced::Assumed && !cost.micro_usd.is_zero(),
        };
        for notice in reservation.settle(cost.micro_usd).notices() {
            tracing::warn!(notice, "a budget needs attention");
        }
        let unwritten = |message: String| StableErrorEnvelope::new("internal", ErrorCategory::Internal, message);
        let payload = serde_json::to_vec(&used).map_err(|error| unwritten(error.to_string()))?;
        let record = NewRecord::new(USED, options.clock.now(), payload).in_session(session_id);
        options.journal.append(vec![record]).await.map_err(|error| error.to_stable())?;
        Ok(Some(embeddings))
    }
}

/// No tokenizer makes more tokens of a text than it has bytes.
fn most_tokens(input: &EmbeddingInput) -> u64 {
    let sum: usize = match input {
        EmbeddingInput::Texts(texts) => texts.iter().map(String::len).sum(),
        EmbeddingInput::Tokens(lists) => lists.iter().map(Vec::len).sum(),
    };
    sum as u64
}
