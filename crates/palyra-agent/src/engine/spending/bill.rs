//! Amounts: the worst case before a call, the bill after it.

use palyra_budget::MicroUsd;
use palyra_models::{Answering, ModelRequest, Priced, Usage, estimate_tokens};

use super::{EngineOptions, Meter};
use crate::machine::Cost;

/// What is known about an answer, as far as it got.
#[derive(Debug, Clone, Default)]
pub(super) struct Answered {
    /// Who answered.
    pub(super) answering: Option<Answering>,
    /// Tokens as the provider counts them.
    pub(super) usage: Option<Usage>,
    /// Tokens written so far, as we count them.
    pub(super) written: u64,
    /// Whether the provider has begun to answer, or may have.
    pub(super) may_have_cost: bool,
}

impl Answered {
    /// Takes in some of the answer.
    pub(super) fn wrote(&mut self, text: &str) {
        self.may_have_cost = true;
        self.written = self.written.saturating_add(u64::from(estimate_tokens(text)));
    }

    /// What was used: the provider's own numbers, or what we counted.
    fn usage(&self, input_tokens: impl FnOnce() -> u64) -> (Usage, bool) {
        match self.usage {
            Some(usage) => (usage, false),
            None if self.may_have_cost => (Usage::plain(input_tokens(), self.written), true),
            None => (Usage::default(), false),
        }
    }
}

/// Tokens of the request, counted as the model that is most likely to answer counts them.
pub(super) fn input_tokens(options: &EngineOptions, request: &ModelRequest) -> u64 {
    let asked = options.provider.may_answer(request);
    let counts = asked.iter().map(|one| options.spending.counter(&one.model).request(request).tokens);
    counts.max().unwrap_or_default()
}

/// What the call may cost at worst, whoever answers.
pub(super) fn worst(options: &EngineOptions, request: &ModelRequest, input_tokens: u64) -> MicroUsd {
    let window = u64::from(options.provider.describe().context_tokens);
    let output = request.max_output_tokens.map_or_else(|| window.saturating_sub(input_tokens), u64::from);
    let asked = options.provider.may_answer(request);
    let costs = asked.iter().map(|one| {
        let seller = options.provider.seller(&one.provider);
        options.spending.prices().worst(&seller, &one.model, input_tokens, output).micro_usd
    });
    costs.max().unwrap_or_default()
}

impl Meter {
    /// Makes the bill and closes the reservation.
    pub(super) fn settle(self, options: &EngineOptions, request: &ModelRequest, answered: &Answered) -> (Usage, Cost) {
        let counted = || self.input_tokens.unwrap_or_else(|| input_tokens(options, request));
        let (usage, counted_by_us) = answered.usage(counted);
        let (micro_usd, assumed) = match (&answered.answering, usage.cost_micro_usd) {
            // Whoever sends the bill knows best.
            (_, Some(told)) => (MicroUsd(told), false),
            (Some(by), None) => {
                let seller = options.provider.seller(&by.provider);
                let cost = options.spending.prices().cost(&seller, &by.model, &usage);
                (cost.micro_usd, counted_by_us || cost.priced == Priced::Assumed)
            }
            (None, None) => (MicroUsd::ZERO, false),
        };
        let assumed = assumed && !micro_usd.is_zero();
        let Some((name, reservation)) = self.reservation else {
            return (usage, Cost { micro_usd, assumed, ..Cost::default() });
        };
        let notices = reservation.settle(micro_usd).notices();
        for notice in &notices {
            tracing::warn!(notice, "a budget needs attention");
        }
        (usage, Cost { micro_usd, assumed, closes: vec![name], notices })
    }
}
