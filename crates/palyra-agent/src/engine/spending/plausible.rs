//! Whether a provider's report of what a call used can be true.
//!
//! Tokenizers differ, so our count and the provider's never agree to the token. The bounds leave room for that and catch what no tokenizer
//! explains: nothing reported for a request that was sent, one token for a page of text, more than the model's window.

use std::fmt;

use palyra_budget::MicroUsd;
use palyra_models::{Priced, Quote, Usage};

/// A report below this part of our own count is not believed. Vocabularies differ by less than a factor of three.
const LEAST_PART: u64 = 4;
/// A report above this multiple of what the model can take is not believed: configured windows may be too small.
const MOST_TIMES: u64 = 4;
/// A bill above this multiple of the worst case, or below this part of a price that is known, is not believed.
const MOST_BILL_TIMES: u64 = 10;

/// Why a report is not believed. Reads on after the name of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// There is none that can be read.
    Unreported,
    /// The answer broke off, so that nothing reported before is the last word.
    BrokeOff,
    /// It says less than what was sent or received.
    TooLittle,
    /// It says more than the model can have read or written.
    TooMuch,
    /// It states a price that cannot be.
    WrongBill,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreported => "did not report usage that can be read",
            Self::BrokeOff => "broke off before it reported what the call used",
            Self::TooLittle => "reported fewer tokens than were sent and received",
            Self::TooMuch => "reported more tokens than the call can have used",
            Self::WrongBill => "reported a price that the call cannot have had",
        })
    }
}

/// What we know of a call ourselves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    /// Tokens of the request, counted upwards.
    pub(super) input: u64,
    /// Of these, tokens of text; pictures and documents are counted too roughly to hold them against anybody.
    pub(super) text_input: u64,
    /// Tokens of text and arguments that arrived.
    pub(super) output: u64,
    /// Most tokens that the answer may have.
    pub(super) most_output: u64,
    /// The model's window.
    pub(super) window: u64,
    /// What the call may cost at worst.
    pub(super) worst: MicroUsd,
}

/// What the call cost by this report, if the report can be true.
pub(super) fn believe(usage: &Usage, quote: &Quote, own: &Own) -> Result<MicroUsd, Doubt> {
    let (input, output) = (usage.input_tokens, usage.output_tokens);
    let cached = usage.cached_tokens.saturating_add(usage.cache_write_tokens);
    if cached > input
        || input > own.window.max(own.input).saturating_mul(MOST_TIMES)
        || output > own.most_output.max(own.output).saturating_mul(MOST_TIMES)
    {
        return Err(Doubt::TooMuch);
    }
    // What costs nothing need not be reported.
    let charges_input = quote.rates.input > 0;
    let charges_output = quote.rates.output > 0;
    if (charges_input && input < own.text_input.div_ceil(LEAST_PART).max(1))
        || (charges_output && output < own.output.div_ceil(LEAST_PART))
    {
        return Err(Doubt::TooLittle);
    }
    let priced = quote.cost(usage).micro_usd;
    let Some(billed) = usage.cost_micro_usd.map(MicroUsd) else { return Ok(priced) };
    let too_much = billed.0 > own.worst.max(priced).0.saturating_mul(MOST_BILL_TIMES);
    let too_little = quote.priced == Priced::Exact && billed.0.saturating_mul(MOST_BILL_TIMES) < priced.0;
    if billed.is_zero() || too_much || too_little { Err(Doubt::WrongBill) } else { Ok(billed) }
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
        Own { input: 1_000, text_input: 800, output: 400, most_output: 2_000, window: 10_000, worst: MicroUsd(3_000) }
    }

    #[test]
    fn reports_are_believed_within_bounds() {
        for (input, output, expected) in [
            (900, 380, Ok(MicroUsd(1_280))),
            (200, 100, Ok(MicroUsd(300))),
            (199, 380, Err(Doubt::TooLittle)),
            (900, 99, Err(Doubt::TooLittle)),
            (0, 380, Err(Doubt::TooLittle)),
            (900, 0, Err(Doubt::TooLittle)),
            (40_000, 8_000, Ok(MicroUsd(48_000))),
            (40_001, 380, Err(Doubt::TooMuch)),
            (900, 8_001, Err(Doubt::TooMuch)),
            (u64::MAX, u64::MAX, Err(Doubt::TooMuch)),
        ] {
            assert_eq!(believe(&Usage::plain(input, output), &quote(), &own()), expected, "{input} and {output}");
        }
        let cached = |cached_tokens| Usage { cached_tokens, ..Usage::plain(900, 380) };
        assert!(believe(&cached(900), &quote(), &own()).is_ok());
        assert_eq!(believe(&cached(901), &quote(), &own()), Err(Doubt::TooMuch));
    }

    #[test]
    fn bills_are_believed_within_bounds() {
        let billed = |micro| {
            let usage = Usage { cost_micro_usd: Some(micro), ..Usage::plain(900, 100) };
            believe(&usage, &quote(), &own())
        };
        assert_eq!(billed(100), Ok(MicroUsd(100)));
        assert_eq!(billed(30_000), Ok(MicroUsd(30_000)));
        for wrong in [0, 99, 30_001, u64::MAX] {
            assert_eq!(billed(wrong), Err(Doubt::WrongBill), "{wrong}");
        }
    }

    #[test]
    fn what_costs_nothing_need_not_be_reported() {
        let free_input = PRICES.replace("input = 1_000_000", "input = 0");
        let quote = PriceTable::with_own(&free_input, "test").unwrap().quote(&Seller::new("shop", "shop", None), "any");
        assert_eq!(believe(&Usage::plain(0, 380), &quote, &own()), Ok(MicroUsd(380)));
    }
}
