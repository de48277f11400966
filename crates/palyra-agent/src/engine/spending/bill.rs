//! Amounts: the worst case before a call, the bill after it.
//!
//! A provider's report is believed only where it can be true, see [`super::plausible`]. Otherwise a server could talk a budget away by
//! reporting nothing.

use palyra_budget::MicroUsd;
use palyra_models::{Answering, ModelRequest, Priced, Quote, TokenEstimate, Usage, estimate_tokens};

use super::plausible::{Assessment, Doubt, Own, StatedPrice, assess, free};
use super::{EngineOptions, Meter};
use crate::machine::Cost;

/// What is known about an answer, as far as it got.
#[derive(Debug, Clone, Default)]
pub(super) struct Answered {
    /// Who answered.
    pub(super) answering: Option<Answering>,
    /// Tokens as the provider counts them.
    pub(super) usage: Option<Usage>,
    /// Text and arguments that arrived, to be counted when the bill is made.
    pub(super) output: String,
    /// Reasoning that arrived.
    pub(super) reasoning: TokenEstimate,
    /// Whether the provider has begun to answer, or may have.
    pub(super) may_have_cost: bool,
    /// Whether the answer arrived to its end. Numbers before that are not the last word.
    pub(super) complete: bool,
}

impl Answered {
    /// Takes in some of the answer.
    pub(super) fn wrote(&mut self, text: &str) {
        self.may_have_cost = true;
        self.output.push_str(text);
    }

    /// Takes in some of the reasoning.
    pub(super) fn thought(&mut self, text: &str) {
        self.may_have_cost = true;
        self.reasoning.push(text);
    }

    /// Tokens written so far, as we count them.
    fn written(&self) -> u64 {
        u64::from(estimate_tokens(&self.output)).saturating_add(u64::from(self.reasoning.tokens()))
    }
}

/// Tokens of the request, counted as the model that is most likely to answer counts them.
pub(super) fn input_tokens(options: &EngineOptions, request: &ModelRequest) -> u64 {
    let asked = options.provider.may_answer(request);
    let counts = asked.iter().map(|one| options.spending.counter(&one.model).request(request).tokens);
    counts.max().unwrap_or_default()
}

/// Whether nobody who may answer this request charges anything.
pub(in crate::engine) fn is_free(options: &EngineOptions, request: &ModelRequest) -> bool {
    let prices = options.spending.prices();
    let asked = options.provider.may_answer(request);
    asked.iter().all(|one| prices.quote(&options.provider.seller(&one.provider), &one.model).priced == Priced::Free)
}

/// What the call may cost at worst, whoever answers.
pub(super) fn worst(options: &EngineOptions, request: &ModelRequest, input_tokens: u64) -> MicroUsd {
    let output = most_output(options, request, input_tokens);
    let asked = options.provider.may_answer(request);
    let costs = asked.iter().map(|one| {
        let seller = options.provider.seller(&one.provider);
        options.spending.prices().worst(&seller, &one.model, input_tokens, output).micro_usd
    });
    costs.max().unwrap_or_default()
}

/// Most tokens that the answer may have.
fn most_output(options: &EngineOptions, request: &ModelRequest, input_tokens: u64) -> u64 {
    let window = u64::from(options.provider.describe().context_tokens);
    request.max_output_tokens.map_or_else(|| window.saturating_sub(input_tokens), u64::from)
}

/// Who answered, or was asked first.
fn asked(options: &EngineOptions, request: &ModelRequest, answered: &Answered) -> Option<Answering> {
    answered.answering.clone().or_else(|| options.provider.may_answer(request).into_iter().next())
}

/// What one try came to.
pub(super) struct Billed {
    /// Who was asked.
    pub(super) asked: Option<Answering>,
    /// Tokens used.
    pub(super) usage: Usage,
    /// What it cost.
    pub(super) cost: Cost,
}

impl Meter {
    /// Makes the bill and closes the reservation.
    pub(super) fn settle(self, options: &EngineOptions, request: &ModelRequest, answered: &Answered) -> Billed {
        let (usage, assessment) = self.booked(options, request, answered);
        let asked = asked(options, request, answered);
        let Assessment { micro_usd, assumed, .. } = assessment;
        let mut cost = Cost { micro_usd, assumed: assumed && !micro_usd.is_zero(), ..Cost::default() };
        let whom = asked.as_ref().map_or_else(|| "the model".to_owned(), |by| format!("`{by}`"));
        cost.notices.extend(assessment.notice(&whom));
        if let Some((name, reservation)) = self.reservation {
            cost.notices.extend(reservation.settle(micro_usd).notices());
            cost.closes.push(name);
        }
        for notice in &cost.notices {
            tracing::warn!(notice, "a budget needs attention");
        }
        Billed { asked, usage, cost }
    }

    /// Tokens and money to be booked.
    fn booked(&self, options: &EngineOptions, request: &ModelRequest, answered: &Answered) -> (Usage, Assessment) {
        let nothing = Assessment { micro_usd: MicroUsd::ZERO, assumed: false, doubt: None };
        if !answered.may_have_cost && answered.usage.is_none() {
            return (Usage::default(), nothing);
        }
        let Some(by) = asked(options, request, answered) else { return (Usage::default(), nothing) };
        let seller = options.provider.seller(&by.provider);
        let quote: Quote = options.spending.prices().quote(&seller, &by.model);
        let input = || self.input_tokens.unwrap_or_else(|| input_tokens(options, request));
        let report =
            if answered.complete { answered.usage.as_ref().ok_or(Doubt::Unreported) } else { Err(Doubt::BrokeOff) };
        if quote.priced == Priced::Free {
            let usage = answered.usage.unwrap_or_else(|| Usage::plain(input(), answered.written()));
            return (usage, free(report.ok()));
        }
        let input = input();
        let counted = Usage::plain(input, answered.written());
        let counter = options.spending.counter(&by.model);
        let reserved = self.reservation.as_ref().map(|(_, reservation)| reservation.held());
        let own = Own {
            input,
            least_input: counter.least_request(request),
            output: answered.written(),
            least_output: counter.least_text(&answered.output),
            most_output: most_output(options, request, input),
            window: u64::from(options.provider.describe().context_tokens),
            worst: reserved.unwrap_or_else(|| worst(options, request, input)),
            stated_price: if seller.states_charges() { StatedPrice::Charged } else { StatedPrice::Claimed },
        };
        let assessment = assess(report, &quote, &own);
        let usage = match assessment.doubt {
            // What the provider counts is kept as what it says; the money is not.
            None | Some(Doubt::Understated | Doubt::TooLittle | Doubt::WrongBill | Doubt::BillForFree) => {
                answered.usage.unwrap_or(counted)
            }
            Some(Doubt::Unreported | Doubt::BrokeOff | Doubt::TooMuch) => counted,
        };
        (usage, assessment)
    }
}
