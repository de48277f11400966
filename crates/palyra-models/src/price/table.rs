//! Looks prices up and computes with them.
//!
//! Order of search: the operator's entries, by the provider's name in the configuration and then by vendor; the program's entries by
//! vendor; nothing to pay on own servers; a price that is assumed. What is assumed errs upwards: the price of a model of that name from
//! any vendor, else the operator's `assumed`, else the dearest of the vendor, else the dearest there is.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use palyra_budget::{Day, MicroUsd, TokenSums};
use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

use super::error::PriceFileError;
use super::file::{self, Entry, PriceFile};
use super::names::{fit, folded};
use super::rates::Rates;
use super::seller::{Billing, OPENROUTER, Seller};
use crate::event::Usage;

/// The table that comes with the program. A test holds it to be readable, so the empty one never stands in for it.
static SHIPPED: LazyLock<PriceFile> =
    LazyLock::new(|| file::read(include_str!("prices.toml"), "prices.toml").unwrap_or_default());

runtime_contract_enum! {
    /// How sure a price is.
    pub enum Priced("model_priced") {
        /// It stands in a table.
        Exact = "exact",
        /// It is not known, and a high one is taken.
        Assumed = "assumed",
        /// There is nothing to pay.
        Free = "free",
    }
}

/// What a call costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How much.
    pub micro_usd: MicroUsd,
    /// How sure that is.
    pub priced: Priced,
}

/// The price of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Its rates.
    pub rates: Rates,
    /// Above how many input tokens other rates hold, and which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<(u64, Rates)>,
    /// How sure they are.
    pub priced: Priced,
    /// When they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Day>,
    /// Where they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Quote {
    fn of(entry: &Entry, priced: Priced) -> Self {
        let free = entry.rates.is_free() && entry.long.is_none_or(|(_, rates)| rates.is_free());
        Self {
            rates: entry.rates,
            long: entry.long,
            priced: if free { Priced::Free } else { priced },
            as_of: entry.as_of,
            source: entry.source.clone(),
        }
    }

    fn assumed(rates: Rates) -> Self {
        Self { rates, long: None, priced: Priced::Assumed, as_of: None, source: None }
    }

    const FREE: Self = Self {
        rates: Rates { input: 0, cached_input: 0, cache_write: 0, output: 0 },
        long: None,
        priced: Priced::Free,
        as_of: None,
        source: None,
    };

    /// The rates for a request of so many tokens.
    fn rates_for(&self, input_tokens: u64) -> Rates {
        match self.long {
            Some((over, rates)) if input_tokens > over => rates,
            _ => self.rates,
        }
    }

    /// What a call has cost.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Cost {
        let tokens = usage.input_tokens.max(usage.cached_tokens.saturating_add(usage.cache_write_tokens));
        Cost { micro_usd: self.rates_for(tokens).cost(usage), priced: self.priced }
    }

    /// What a call may cost at worst.
    #[must_use]
    pub fn worst(&self, input_tokens: u64, max_output_tokens: u64) -> Cost {
        Cost { micro_usd: self.rates_for(input_tokens).worst(input_tokens, max_output_tokens), priced: self.priced }
    }
}

/// All prices: the program's, and above them the operator's.
#[derive(Debug, Clone, Default)]
pub struct PriceTable {
    own: PriceFile,
}

impl PriceTable {
    /// The table that comes with the program, alone.
    #[must_use]
    pub fn shipped() -> Self {
        Self::default()
    }

    /// The table that comes with the program, below the operator's own if there is one. A file that is `required` has to be there.
    pub fn load(file: Option<&Path>, required: bool) -> Result<Self, PriceFileError> {
        let Some(file) = file.filter(|file| required || file.exists()) else { return Ok(Self::shipped()) };
        let origin = file.display().to_string();
        match fs::read_to_string(file) {
            Ok(text) => Self::with_own(&text, &origin),
            Err(error) => Err(PriceFileError { origin, reason: format!("it cannot be read: {error}") }),
        }
    }

    /// The same with the operator's file above it; `origin` is what the file is called in messages.
    pub fn with_own(text: &str, origin: &str) -> Result<Self, PriceFileError> {
        Ok(Self { own: file::read(text, origin)? })
    }

    /// What a call has cost.
    #[must_use]
    pub fn cost(&self, seller: &Seller, model: &str, usage: &Usage) -> Cost {
        self.quote(seller, model).cost(usage)
    }

    /// What a call may cost at worst, with so many tokens of request and at most so many of answer.
    #[must_use]
    pub fn worst(&self, seller: &Seller, model: &str, input_tokens: u64, max_output_tokens: u64) -> Cost {
        self.quote(seller, model).worst(input_tokens, max_output_tokens)
    }

    /// The price of a model.
    #[must_use]
    pub fn quote(&self, seller: &Seller, model: &str) -> Quote {
        let name = folded(model);
        let own = best(&self.own.entries, &seller.name.to_ascii_lowercase(), &name)
            .or_else(|| best(&self.own.entries, &seller.vendor, &name));
        if let Some(entry) = own {
            return Quote::of(entry, Priced::Exact);
        }
        if seller.billing == Billing::Local {
            return Quote::FREE;
        }
        if let Some(entry) = best(&SHIPPED.entries, &seller.vendor, &name) {
            return Quote::of(entry, Priced::Exact);
        }
        if seller.vendor == OPENROUTER {
            return self.resold(&name);
        }
        self.assumed(&seller.vendor, &name)
    }

    /// The price at a shop that sells models of others at their price: `vendor/model`, with a variant behind a colon.
    fn resold(&self, name: &str) -> Quote {
        let (name, variant) = name.split_once(':').unwrap_or((name, ""));
        if variant == "free" {
            return Quote::FREE;
        }
        let (vendor, model) = name.split_once('/').unwrap_or(("", name));
        let vendor = if vendor == "google" { "gemini" } else { vendor };
        let entry = best(&self.own.entries, vendor, model).or_else(|| best(&SHIPPED.entries, vendor, model));
        match entry {
            Some(entry) => Quote::of(entry, Priced::Assumed),
            None => self.assumed(vendor, model),
        }
    }

    fn assumed(&self, vendor: &str, name: &str) -> Quote {
        let same_name =
            SHIPPED.entries.iter().filter(|entry| entry.models.iter().any(|model| fit(model, name).is_some()));
        let of_vendor = SHIPPED.entries.iter().filter(|entry| entry.provider == vendor);
        let rates = dearest(same_name)
            .or(self.own.assumed)
            .or_else(|| dearest(of_vendor))
            .or_else(|| dearest(SHIPPED.entries.iter()))
            // INVARIANT: the shipped table is not empty (tested). Were it, nothing paid could be afforded.
            .unwrap_or(Rates { input: u64::MAX, cached_input: u64::MAX, cache_write: u64::MAX, output: u64::MAX });
        Quote::assumed(rates)
    }
}

/// The entry of this provider that fits best; of equals the last, so that a correction can be added at the end.
fn best<'a>(entries: &'a [Entry], provider: &str, name: &str) -> Option<&'a Entry> {
    let ours = entries.iter().filter(|entry| entry.provider == provider || entry.provider == "*");
    let fitting =
        ours.filter_map(|entry| Some((entry.models.iter().filter_map(|model| fit(model, name)).max()?, entry)));
    fitting.max_by_key(|(fit, _)| *fit).map(|(_, entry)| entry)
}

/// The highest rate of each kind among these entries.
fn dearest<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<Rates> {
    entries.map(|entry| entry.long.map_or(entry.rates, |(_, long)| entry.rates.max(long))).reduce(Rates::max)
}

impl From<&Usage> for TokenSums {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cached: usage.cached_tokens,
            cache_write: usage.cache_write_tokens,
            reasoning: usage.reasoning_tokens,
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
