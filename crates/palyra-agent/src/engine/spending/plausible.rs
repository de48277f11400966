//! Whether a provider's report of what a call used can be true, and what is booked for it.
//!
//! Our own count comes with bounds on both sides. The lower one ([`palyra_models::TokenCounter::least_request`]) holds for every tokenizer
//! there is, so a report below it is wrong and is raised to it; one far below it, or above what the model can take, says nothing at all about the
//! call, which is then booked at its worst case. A price that a server states can make a call dearer than the price table says, within
//! bounds, but not cheaper: only a seller that is known to deduct what it states is believed there.

use std::fmt;

use palyra_budget::MicroUsd;
use palyra_models::{Priced, Quote, Usage};

/// A report below this part of our own count says nothing about the call.
const LEAST_PART: u64 = 4;
/// A report above this multiple of what the model can take is not believed: configured windows may be too small.
const MOST_TIMES: u64 = 4;
/// A bill above this multiple of the worst case is not believed.
const MOST_BILL_TIMES: u64 = 10;

/// Why a report is not taken as it is. Reads on after the name of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Doubt {
    /// There is none that can be read.
    Unreported,
    /// The answer broke off, so that nothing reported before is the last word.
    BrokeOff,
    /// It says less than what was sent or received.
    Understated,
    /// It says so much less that nothing of it is believed.
    TooLittle,
    /// It says more than the model can have read or written.
    TooMuch,
    /// It states a price that cannot be.
    WrongBill,
    /// It states a price for a call that is free by the price table.
    BillForFree,
}

impl Doubt {
    /// What the call is booked at instead. Reads on after the amount.
    const fn instead(self) -> &'static str {
        match self {
            Self::Understated => "by the number of tokens that were sent and received",
            Self::Unreported | Self::BrokeOff | Self::TooLittle | Self::TooMuch | Self::WrongBill => {
                "the most it can have cost"
            }
            Self::BillForFree => "because calls to it are free unless `prices.toml` has a price",
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreported => "did not report usage that can be read",
            Self::BrokeOff => "broke off before it reported what the call used",
            Self::Understated | Self::TooLittle => "reported fewer tokens than were sent and received",
            Self::TooMuch => "reported more tokens than the call can have used",
            Self::WrongBill => "reported a price that the call cannot have had",
            Self::BillForFree => "stated a price for the call",
        })
    }
}

/// What we know of a call ourselves.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Own {
    /// Tokens of the request, counted upwards.
    pub(in crate::engine) input: u64,
    /// Tokens of the request at least. Pictures and documents are counted too roughly to be among them.
    pub(in crate::engine) least_input: u64,
    /// Tokens of text, arguments and reasoning that arrived, by the rule of thumb.
    pub(in crate::engine) output: u64,
    /// Tokens of text and arguments that arrived at least.
    pub(in crate::engine) least_output: u64,
    /// Most tokens that the answer may have.
    pub(in crate::engine) most_output: u64,
    /// The model's window.
    pub(in crate::engine) window: u64,
    /// What the call may cost at worst.
    pub(in crate::engine) worst: MicroUsd,
    /// Whether the price that the seller states is what it takes.
    pub(in crate::engine) stated_price: StatedPrice,
}

/// What a price is worth that comes with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum StatedPrice {
    /// The seller takes what it states.
    Charged,
    /// Anybody may have written it.
    Claimed,
}

/// What is booked for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Assessment {
    /// How much.
    pub(in crate::engine) micro_usd: MicroUsd,
    /// Whether that is more or less a guess.
    pub(in crate::engine) assumed: bool,
    /// Why it is not what was reported.
    pub(in crate::engine) doubt: Option<Doubt>,
}

impl Assessment {
    /// What is said about it, after who answered.
    pub(in crate::engine) fn notice(&self, whom: &str) -> Option<String> {
        let doubt = self.doubt?;
        Some(format!("{whom} {doubt}; the call is booked at {}, {}", self.micro_usd, doubt.instead()))
    }
}

/// What is booked for a call with this report, or with none for this reason.
pub(in crate::engine) fn assess(report: Result<&Usage, Doubt>, quote: &Quote, own: &Own) -> Assessment {
    if quote.priced == Priced::Free {
        return free(report.ok());
    }
    match report.and_then(|usage| believe(usage, quote, own)) {
        Ok(believed) => believed,
        Err(doubt) => {
            let counted = quote.cost(&Usage::plain(own.input, own.output)).micro_usd;
            Assessment { micro_usd: counted.max(own.worst), assumed: true, doubt: Some(doubt) }
        }
    }
}

/// What is booked for a call that is free by the price table: nothing, whatever price its server states. Nothing was reserved for it, so that a stated
/// price would use up budgets that other providers' calls are held to.
pub(in crate::engine) fn free(report: Option<&Usage>) -> Assessment {
    let stated = report.and_then(|usage| usage.cost_micro_usd).is_some_and(|stated| stated > 0);
    Assessment { micro_usd: MicroUsd::ZERO, assumed: false, doubt: stated.then_some(Doubt::BillForFree) }
}

/// What a call cost by this report, if the report says anything about the call.
fn believe(usage: &Usage, quote: &Quote, own: &Own) -> Result<Assessment, Doubt> {
    let (input, output) = (usage.input_tokens, usage.output_tokens);
    let cached = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
    if cached > input
        || input > own.window.max(own.input).saturating_mul(MOST_TIMES)
        || output > own.most_output.max(own.output).saturating_mul(MOST_TIMES)
    {
        return Err(Doubt::TooMuch);
    }
    // What costs nothing need not be reported.
    let least_input = if quote.rates.input > 0 { own.least_input.max(1) } else { 0 };
    let least_output = if quote.rates.output > 0 { own.least_output } else { 0 };
    if input < least_input.div_ceil(LEAST_PART) || output < least_output.div_ceil(LEAST_PART) {
        return Err(Doubt::TooLittle);
    }
    let raised = Usage { input_tokens: input.max(least_input), output_tokens: output.max(least_output), ..*usage };
    let understated = (raised != *usage).then_some(Doubt::Understated);
    let priced = quote.cost(&raised).micro_usd;
    let assumed = quote.priced == Priced::Assumed;
    let by_tokens = Assessment { micro_usd: priced, assumed: assumed || understated.is_some(), doubt: understated };
    let Some(stated) = usage.cost_micro_usd.map(MicroUsd) else { return Ok(by_tokens) };
    if stated.is_zero() || stated.0 > own.worst.max(priced).0.saturating_mul(MOST_BILL_TIMES) {
        return Err(Doubt::WrongBill);
    }
    // Where the price is known, a discount that nobody told us of is none; where it is not, what the seller takes is better than a guess.
    let is_taken = stated > priced || (own.stated_price == StatedPrice::Charged && assumed && understated.is_none());
    Ok(if is_taken { Assessment { micro_usd: stated, assumed: false, doubt: understated } } else { by_tokens })
}

#[cfg(test)]
mod tests {
    use palyra_models::{PriceTable, Seller};

    use super::*;

    const PRICES: &str = "version = 1\n[[price]]\nprovider = \"shop\"\nmodels = [\"*\"]\nas_of = \"2026-01-01\"\nsource = \"test\"\ninput = 1_000_000\noutput = 1_000_000\n";

    fn quote() -> Quote {
        PriceTable::with_own(PRICES, "test").unwrap().quote(&Seller::new("shop", "shop", None), "any")
    }

    fn own() -> Own {
        Own {
            input: 1_000,
            least_input: 800,
            output: 450,
            least_output: 400,
            most_output: 2_000,
            window: 10_000,
            worst: MicroUsd(3_000),
            stated_price: StatedPrice::Claimed,
        }
    }

    fn booked(usage: Usage, quote: &Quote) -> (u64, Option<Doubt>) {
        let Assessment { micro_usd, doubt, .. } = assess(Ok(&usage), quote, &own());
        (micro_usd.0, doubt)
    }

    #[test]
    fn reports_are_believed_within_bounds_and_never_below_our_own_count() {
        for (input, output, expected) in [
            (900, 480, (1_380, None)),
            (800, 400, (1_200, None)),
            (799, 400, (1_200, Some(Doubt::Understated))),
            (900, 399, (1_300, Some(Doubt::Understated))),
            (200, 100, (1_200, Some(Doubt::Understated))),
            (199, 480, (3_000, Some(Doubt::TooLittle))),
            (900, 99, (3_000, Some(Doubt::TooLittle))),
            (0, 480, (3_000, Some(Doubt::TooLittle))),
            (900, 0, (3_000, Some(Doubt::TooLittle))),
            (40_000, 8_000, (48_000, None)),
            (40_001, 480, (3_000, Some(Doubt::TooMuch))),
            (900, 8_001, (3_000, Some(Doubt::TooMuch))),
            (u64::MAX, u64::MAX, (3_000, Some(Doubt::TooMuch))),
        ] {
            assert_eq!(booked(Usage::plain(input, output), &quote()), expected, "{input} and {output}");
        }
        let cached = |cached_tokens| booked(Usage { cached_tokens, ..Usage::plain(900, 480) }, &quote()).1;
        assert_eq!((cached(900), cached(901)), (None, Some(Doubt::TooMuch)));
        assert_eq!(assess(Err(Doubt::Unreported), &quote(), &own()).micro_usd, MicroUsd(3_000));
    }

    #[test]
    fn a_stated_price_can_only_raise_what_is_booked() {
        let stated = |micro| Usage { cost_micro_usd: Some(micro), ..Usage::plain(900, 500) };
        for priced in [Priced::Exact, Priced::Assumed] {
            let quote = Quote { priced, ..quote() };
            for (micro, expected) in [
                (1, (1_400, None)),
                (1_399, (1_400, None)),
                (30_000, (30_000, None)),
                (0, (3_000, Some(Doubt::WrongBill))),
                (30_001, (3_000, Some(Doubt::WrongBill))),
                (u64::MAX, (3_000, Some(Doubt::WrongBill))),
            ] {
                assert_eq!(booked(stated(micro), &quote), expected, "{priced} {micro}");
            }
        }
    }

    #[test]
    fn what_a_seller_takes_is_better_than_an_assumed_price() {
        let own = Own { stated_price: StatedPrice::Charged, ..own() };
        let stated = |micro, input| Usage { cost_micro_usd: Some(micro), ..Usage::plain(input, 500) };
        let assumed = Quote { priced: Priced::Assumed, ..quote() };
        let booked = |usage: Usage, quote: &Quote| assess(Ok(&usage), quote, &own).micro_usd.0;
        assert_eq!(booked(stated(7, 900), &assumed), 7);
        assert_eq!(booked(stated(7, 900), &quote()), 1_400, "the price is known");
        assert_eq!(booked(stated(7, 700), &assumed), 1_300, "a report with wrong tokens has a wrong price as well");
        assert_eq!(booked(stated(0, 900), &assumed), 3_000);
    }

    #[test]
    fn what_is_free_stays_free() {
        let free = PriceTable::shipped().quote(&Seller::new("here", "ollama", None), "any");
        let stated = Usage { cost_micro_usd: Some(9_999_000_000), ..Usage::plain(900, 500) };
        assert_eq!(booked(stated, &free), (0, Some(Doubt::BillForFree)));
        for usage in [Usage::plain(900, 500), Usage::plain(0, 0), Usage { cost_micro_usd: Some(0), ..stated }] {
            assert_eq!(booked(usage, &free), (0, None));
        }
    }

    #[test]
    fn what_costs_nothing_need_not_be_reported() {
        let free_input = PRICES.replace("input = 1_000_000", "input = 0");
        let quote = PriceTable::with_own(&free_input, "test").unwrap().quote(&Seller::new("shop", "shop", None), "any");
        assert_eq!(booked(Usage::plain(0, 480), &quote), (480, None));
    }
}
