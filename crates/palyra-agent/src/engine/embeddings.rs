//! Embeddings: model calls that belong to no run, held to the budgets and entered into the books like all others.
//!
//! They are booked on a session of their own for each principal, so that usage reports show them to whom they belong. What a call may cost at
//! worst is on the journal before it is sent; the record of its end closes that, however it ended. A call that a crash interrupted is closed at the
//! next start, in full.

use std::sync::Arc;

use palyra_budget::{MicroUsd, Reservation};
use palyra_common::{RunId, SessionId, StableErrorEnvelope, ToStableError as _};
use palyra_journal::NewRecord;
use palyra_models::{Answering, AttemptCost, EmbeddingInput, EmbeddingRequest, Embeddings, ModelProvider, Usage};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::spending::{Assessment, Doubt, NotMade, Own, Payer, Reserved, StatedPrice, assess, hold};
use super::{Engine, EngineOptions};
use crate::error::AgentError;
use crate::spec::MAIN_AGENT;

/// Kind of the record of a call.
pub(crate) const USED: &str = "embeddings.used";
/// Names the call in its reservation.
pub(crate) const CALL: &str = "embeddings";
/// Names the session that a principal's calls are booked on.
const SESSION_KEY: &str = "openai embeddings";
const SESSION_TITLE: &str = "Embeddings";
/// Tokens that models put around each input.
const MARKS: u64 = 2;

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
    /// The reservation that it closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closes: Option<String>,
}

/// One call with what is held for it.
struct Call<'a> {
    options: &'a EngineOptions,
    stopping: &'a CancellationToken,
    provider: Arc<dyn ModelProvider>,
    owner: &'a str,
    payer: Payer,
    input: EmbeddingInput,
    /// Who is asked first.
    asked: Answering,
    reservation: Option<(String, Reservation)>,
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
        if !provider.describe().is_language_model {
            return Ok(None);
        }
        let candidates = provider.may_embed(&request);
        let Some(asked) = candidates.first().cloned() else { return Ok(None) };
        options.journal.admission().map_err(|error| error.to_stable())?;
        let title = Some(SESSION_TITLE.to_owned());
        let (session, _) = self.resolve_session(owner, SESSION_KEY, title).await.map_err(|error| error.to_stable())?;
        let payer = Payer {
            run_id: RunId::generate(),
            session_id: session.session_id,
            agent: MAIN_AGENT.to_owned(),
            call: CALL.to_owned(),
        };
        let prices = options.spending.prices();
        let worst = candidates.iter().map(|one| {
            let seller = provider.seller(&one.provider);
            prices.worst(&seller, &one.model, most_tokens(&request.input), 0).micro_usd
        });
        let worst = worst.max().unwrap_or_default();
        let reservation = hold(options, &payer, worst, Some(asked.clone())).await.map_err(|refused| match refused {
            NotMade::Exceeded(exceeded) => exceeded.to_stable(),
            NotMade::NotRecorded(error) => error.to_stable(),
        })?;
        let input = request.input.clone();
        let stopping = &self.shared.stopping;
        let call = Call { options, stopping, provider: Arc::clone(&provider), owner, payer, input, asked, reservation };
        match provider.embed(request).await {
            Ok(Some(embeddings)) => {
                call.settle(embeddings.asked.clone(), embeddings.input_tokens.ok_or(Doubt::Unreported)).await?;
                Ok(Some(embeddings))
            }
            Ok(None) => {
                call.release().await?;
                Ok(None)
            }
            Err(error) => {
                match AttemptCost::of(&error) {
                    AttemptCost::Nothing => call.release().await?,
                    AttemptCost::Unknown => call.settle(None, Err(Doubt::BrokeOff)).await?,
                }
                Err(error.to_stable())
            }
        }
    }
}

impl EmbeddingsUsed {
    /// A call that the last process did not live to see the end of, in full.
    pub(super) fn interrupted(reserved: Reserved) -> Option<Self> {
        let Reserved { reservation, charge, asked } = reserved;
        let Answering { provider, model, .. } = asked?;
        Some(Self {
            run_id: charge.run_id,
            session_id: charge.session_id,
            by: String::new(),
            provider,
            model,
            input_tokens: 0,
            micro_usd: charge.worst,
            assumed: true,
            closes: Some(reservation),
        })
    }
}

impl Call<'_> {
    /// Books what the call cost by the number of tokens that was reported, or without one for this reason.
    async fn settle(self, by: Option<Answering>, reported: Result<u64, Doubt>) -> Result<(), StableErrorEnvelope> {
        let by = by.unwrap_or_else(|| self.asked.clone());
        let seller = self.provider.seller(&by.provider);
        // The price is that of the model that was asked for, whatever the server calls the one that answered.
        let quote = self.options.spending.prices().quote(&seller, &by.model);
        let counter = self.options.spending.counter(&by.model);
        let most = most_tokens(&self.input);
        let own = Own {
            input: counted(&self.input, |text| counter.text(text).tokens),
            least_input: counted(&self.input, |text| counter.least_text(text)),
            output: 0,
            least_output: 0,
            most_output: 0,
            window: most,
            worst: self.reservation.as_ref().map(|(_, held)| held.held()).unwrap_or_default(),
            stated_price: StatedPrice::Claimed,
        };
        let usage = reported.map(|input_tokens| Usage::plain(input_tokens, 0));
        let assessment = assess(usage.as_ref().map_err(|doubt| *doubt), &quote, &own);
        let tokens = match assessment.doubt {
            None | Some(Doubt::Understated | Doubt::TooLittle | Doubt::WrongBill | Doubt::BillForFree) => reported,
            Some(doubt @ (Doubt::Unreported | Doubt::BrokeOff | Doubt::TooMuch)) => Err(doubt),
        };
        self.close(&by, tokens.unwrap_or(own.input), assessment).await
    }

    /// Gives back what was held: the call cost nothing.
    async fn release(self) -> Result<(), StableErrorEnvelope> {
        let by = self.asked.clone();
        self.close(&by, 0, Assessment { micro_usd: MicroUsd::ZERO, assumed: false, doubt: None }).await
    }

    async fn close(self, by: &Answering, input_tokens: u64, assessment: Assessment) -> Result<(), StableErrorEnvelope> {
        let Assessment { micro_usd, assumed, .. } = assessment;
        let mut notices: Vec<String> = assessment.notice(&format!("`{by}`")).into_iter().collect();
        let mut closes = None;
        if let Some((name, reservation)) = self.reservation {
            notices.extend(reservation.settle(micro_usd).notices());
            closes = Some(name);
        }
        for notice in notices {
            tracing::warn!(notice, "a budget needs attention");
        }
        if closes.is_none() && input_tokens == 0 {
            return Ok(());
        }
        let used = EmbeddingsUsed {
            run_id: self.payer.run_id,
            session_id: self.payer.session_id,
            by: self.owner.to_owned(),
            provider: by.provider.clone(),
            model: by.model.clone(),
            input_tokens,
            micro_usd,
            assumed: assumed && !micro_usd.is_zero(),
            closes,
        };
        let record = self.options.embeddings_record(&used).map_err(|error| error.to_stable())?;
        // The call is made and paid for, so its bill waits for the journal.
        let booked = self.options.journal.append_patiently(vec![record], self.stopping.cancelled()).await;
        booked.map(drop).map_err(|error| error.to_stable())
    }
}

impl EngineOptions {
    pub(super) fn embeddings_record(&self, used: &EmbeddingsUsed) -> Result<NewRecord, AgentError> {
        let payload = serde_json::to_vec(used).map_err(|error| AgentError::Internal(error.to_string()))?;
        Ok(NewRecord::new(USED, self.clock.now(), payload).in_session(used.session_id))
    }
}

/// Tokens of the input, where texts are counted in this way. Lists of tokens need no counting.
fn counted(input: &EmbeddingInput, count: impl Fn(&str) -> u64) -> u64 {
    match input {
        EmbeddingInput::Texts(texts) => texts.iter().map(|text| count(text)).fold(0, u64::saturating_add),
        EmbeddingInput::Tokens(lists) => lists.iter().map(|list| list.len() as u64).fold(0, u64::saturating_add),
    }
}

/// No tokenizer makes more tokens of a text than it has bytes, but for the marks around each input.
fn most_tokens(input: &EmbeddingInput) -> u64 {
    counted(input, |text| text.len() as u64).saturating_add(MARKS.saturating_mul(input.len() as u64))
}
