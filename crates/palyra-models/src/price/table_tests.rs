//! Prices looked up and computed.

use proptest::prelude::*;

use super::*;

fn openai() -> Seller {
    Seller::new("openai", "openai", None)
}

fn anthropic() -> Seller {
    Seller::new("claude", "anthropic", None)
}

fn micros(cost: Cost) -> u64 {
    cost.micro_usd.micros()
}

#[test]
fn the_shipped_table_is_whole_and_dated() {
    assert!(SHIPPED.entries.len() > 50, "{}", SHIPPED.entries.len());
    let mut names = std::collections::BTreeSet::new();
    for entry in &SHIPPED.entries {
        let name = &entry.models[0];
        assert!(entry.as_of.is_some() && entry.source.is_some(), "{name} says when and where it was read");
        assert!(entry.rates.input > 0, "{name}");
        assert!(
            entry.rates.cached_input <= entry.rates.input && entry.rates.cache_write >= entry.rates.input,
            "{name}"
        );
        assert!(entry.long.is_none_or(|(over, long)| over >= 100_000 && long.input > entry.rates.input), "{name}");
        for model in &entry.models {
            assert!(!model.contains('*'), "{model}: a pattern would give later models the price of earlier ones");
            assert!(names.insert((entry.provider.clone(), model.clone())), "{model} stands there twice");
        }
    }
}

#[test]
fn known_models_cost_what_the_table_says() {
    let table = PriceTable::shipped();
    let usage = Usage::plain(1_000_000, 1_000_000);
    let gpt = table.cost(&openai(), "gpt-5-2025-08-07", &usage);
    assert_eq!((micros(gpt), gpt.priced), (11_250_000, Priced::Exact));
    // 700 plain, 200 cached, 100 written, 50 of answer: 700·3 + 200·0.30 + 100·3.75 + 50·15 micro-dollars.
    let usage = Usage {
        input_tokens: 1_000,
        output_tokens: 50,
        cached_tokens: 200,
        cache_write_tokens: 100,
        reasoning_tokens: 20,
    };
    assert_eq!(micros(table.cost(&anthropic(), "claude-sonnet-4-5-20250929", &usage)), 3_285);
    let quote = table.quote(&anthropic(), "claude-sonnet-4-5");
    assert_eq!(quote.source.as_deref(), Some("Claude Docs: Pricing"));
}

#[test]
fn long_requests_cost_more_as_a_whole() {
    let table = PriceTable::shipped();
    let gemini = Seller::new("g", "gemini", None);
    let cost = |input| micros(table.cost(&gemini, "gemini-2.5-pro", &Usage::plain(input, 0)));
    assert_eq!(cost(200_000), 250_000);
    assert_eq!(cost(200_001), 500_003);
}

#[test]
fn fractions_are_rounded_up_once() {
    let table = PriceTable::shipped();
    // 0.05 micro-dollars a token.
    let cost = |input, output| micros(table.cost(&openai(), "gpt-5-nano", &Usage::plain(input, output)));
    assert_eq!(cost(0, 0), 0);
    assert_eq!(cost(1, 0), 1);
    assert_eq!(cost(20, 0), 1);
    assert_eq!(cost(21, 0), 2);
    assert_eq!(cost(1, 1), 1);
}

#[test]
fn unknown_models_are_taken_for_dear_ones() {
    let table = PriceTable::shipped();
    let unknown = table.quote(&openai(), "gpt-9-ultra");
    assert_eq!(unknown.priced, Priced::Assumed);
    for entry in SHIPPED.entries.iter().filter(|entry| entry.provider == "openai") {
        assert_eq!(unknown.rates.max(entry.rates), unknown.rates, "{:?}", entry.models);
    }
    // A server nobody knows, with a model whose name is known, and with one whose name is not.
    let proxy = Seller::new("proxy", "openai_compatible", Some("https://models.example.com"));
    let same_name = table.quote(&proxy, "claude-haiku-4-5");
    assert_eq!((same_name.priced, same_name.rates.output), (Priced::Assumed, 5_000_000));
    assert_eq!(table.quote(&proxy, "secret").rates.output, 600_000_000);
}

#[test]
fn own_servers_are_free_and_resold_models_cost_as_at_their_vendor() {
    let table = PriceTable::shipped();
    for seller in [
        Seller::new("ollama", "ollama", None),
        Seller::new("here", "openai_compatible", Some("http://127.0.0.1:8080/v1")),
        Seller::new("offline", "offline", None),
    ] {
        let cost = table.worst(&seller, "gpt-5", 1_000_000, 1_000_000);
        assert_eq!((micros(cost), cost.priced), (0, Priced::Free), "{seller:?}");
    }
    let shop = Seller::new("openrouter", "openrouter", None);
    let sonnet = table.quote(&shop, "anthropic/claude-sonnet-4.5");
    assert_eq!((sonnet.rates.input, sonnet.priced), (3_000_000, Priced::Assumed));
    assert_eq!(table.quote(&shop, "google/gemini-2.5-pro:online").rates.output, 10_000_000);
    assert_eq!(table.quote(&shop, "meta-llama/llama-3.3-70b-instruct:free").priced, Priced::Free);
    assert_eq!(table.quote(&shop, "who/knows").priced, Priced::Assumed);
}

#[test]
fn the_operator_s_file_stands_above_everything() {
    let text = r#"
        version = 1
        [assumed]
        input = 1_000_000
        output = 2_000_000
        [[price]]
        provider = "lab"
        models = ["*"]
        input = 0
        output = 0
        [[price]]
        provider = "openai"
        models = ["gpt-5"]
        input = 1
        output = 2
        [[price]]
        provider = "here"
        models = ["big*"]
        input = 100_000
        output = 100_000
    "#;
    let table = PriceTable::with_own(text, "prices.toml").unwrap();
    let lab = Seller::new("lab", "openai_compatible", Some("http://10.0.0.5:8000"));
    assert_eq!(table.quote(&lab, "anything").priced, Priced::Free);
    assert_eq!(table.quote(&openai(), "gpt-5").rates.output, 2);
    assert_eq!(table.quote(&openai(), "gpt-5-mini").rates.output, 2_000_000, "the shipped entry still holds");
    assert_eq!(table.quote(&openai(), "gpt-9").rates, table.own.assumed.unwrap());
    let here = Seller::new("Here", "openai_compatible", Some("http://localhost:1234"));
    assert_eq!(table.quote(&here, "big-model").rates.input, 100_000, "electricity can have a price");
    assert_eq!(table.quote(&here, "small-model").priced, Priced::Free);
    let error = PriceTable::with_own("version = 1\npirce = []", "mine.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the price file `mine.toml` cannot be used: unknown key `pirce`; did you mean `price`?"
    );
}

proptest! {
    /// What spending limits rest on: whatever is read from or written to caches, a call within its bounds costs no more than its worst.
    #[test]
    fn no_call_within_its_bounds_costs_more_than_its_worst(
        at in 0_usize..60, input in 0_u64..400_000, cached in 0_u64..400_000, written in 0_u64..400_000, output in 0_u64..100_000, spare in 0_u64..1_000
    ) {
        let entry = &SHIPPED.entries[at % SHIPPED.entries.len()];
        let seller = Seller { name: "x".into(), vendor: entry.provider.clone(), billing: Billing::Paid };
        let cached = cached.min(input);
        let usage = Usage {
            input_tokens: input, output_tokens: output, cached_tokens: cached,
            cache_write_tokens: written.min(input - cached), reasoning_tokens: 0,
        };
        let table = PriceTable::shipped();
        let worst = table.worst(&seller, &entry.models[0], input + spare, output + spare);
        prop_assert!(table.cost(&seller, &entry.models[0], &usage).micro_usd <= worst.micro_usd);
    }

    #[test]
    fn absurd_usage_does_no_harm(input: u64, output: u64, cached: u64, written: u64) {
        let usage = Usage { input_tokens: input, output_tokens: output, cached_tokens: cached, cache_write_tokens: written, reasoning_tokens: 0 };
        let _ = PriceTable::shipped().cost(&openai(), "gpt-9", &usage);
    }
}
