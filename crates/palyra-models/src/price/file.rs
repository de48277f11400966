//! Reads price files. The program's own table and the operator's have the same form.
//!
//! A mistake refuses the whole file: a key that is not known might be a misspelt price, and a call priced wrongly is worse than one
//! that waits for a person.

use palyra_budget::Day;
use serde::Deserialize;
use toml::{Table, Value};

use super::error::PriceFileError;
use super::names::folded;
use super::rates::Rates;

/// Largest file read. A table of every model there is has some hundred entries.
const MOST_BYTES: usize = 1 << 20;
/// Greatest rate: a dollar a token. Whatever is dearer is a mistake in the unit.
const GREATEST_RATE: u64 = 1_000_000_000_000;

const FILE_KEYS: [&str; 3] = ["version", "assumed", "price"];
const ENTRY_KEYS: [&str; 9] =
    ["provider", "models", "as_of", "source", "input", "cached_input", "cache_write", "output", "long"];
const LONG_KEYS: [&str; 5] = ["over", "input", "cached_input", "cache_write", "output"];
const RATE_KEYS: [&str; 4] = ["input", "cached_input", "cache_write", "output"];

/// One entry, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Whose price, in lower case; `*` for anybody's.
    pub(super) provider: String,
    /// Folded names and patterns.
    pub(super) models: Vec<String>,
    pub(super) as_of: Option<Day>,
    pub(super) source: Option<String>,
    pub(super) rates: Rates,
    /// Above how many input tokens other rates hold, and which.
    pub(super) long: Option<(u64, Rates)>,
}

/// A whole file, checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PriceFile {
    pub(super) assumed: Option<Rates>,
    pub(super) entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct RawFile {
    version: i64,
    assumed: Option<RawRates>,
    #[serde(default)]
    price: Vec<RawEntry>,
}

#[derive(Deserialize)]
struct RawRates {
    input: u64,
    cached_input: Option<u64>,
    cache_write: Option<u64>,
    output: u64,
}

#[derive(Deserialize)]
struct RawLong {
    over: u64,
    #[serde(flatten)]
    rates: RawRates,
}

#[derive(Deserialize)]
struct RawEntry {
    provider: String,
    models: Vec<String>,
    as_of: Option<String>,
    source: Option<String>,
    #[serde(flatten)]
    rates: RawRates,
    long: Option<RawLong>,
}

/// Reads a file; `origin` is what it is called in messages.
pub(super) fn read(text: &str, origin: &str) -> Result<PriceFile, PriceFileError> {
    parse(text).map_err(|reason| PriceFileError { origin: origin.to_owned(), reason })
}

fn parse(text: &str) -> Result<PriceFile, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("it is larger than {MOST_BYTES} bytes"));
    }
    let table: Table = toml::from_str(text).map_err(|error| one_line(&error.to_string()))?;
    check_keys(&table)?;
    let raw: RawFile = table.try_into().map_err(|error: toml::de::Error| one_line(&error.to_string()))?;
    if raw.version != 1 {
        return Err(format!("`version` is {}, and only 1 is known", raw.version));
    }
    let assumed = raw.assumed.map(|rates| checked(&rates, "assumed")).transpose()?;
    let entries = raw.price.into_iter().map(entry).collect::<Result<_, _>>()?;
    Ok(PriceFile { assumed, entries })
}

fn entry(raw: RawEntry) -> Result<Entry, String> {
    let place = format!("the price of `{}`", raw.models.first().map_or("", String::as_str));
    if raw.models.is_empty() || raw.models.iter().any(|model| model.trim().is_empty()) {
        return Err(format!("an entry of provider `{}` names no model", raw.provider));
    }
    let as_of = raw.as_of.map(|day| day.parse::<Day>().map_err(|error| format!("{place}: {error}"))).transpose()?;
    let long = raw.long.map(|long| Ok::<_, String>((long.over, checked(&long.rates, &place)?))).transpose()?;
    Ok(Entry {
        provider: raw.provider.trim().to_ascii_lowercase(),
        models: raw.models.iter().map(|model| folded(model)).collect(),
        as_of,
        source: raw.source,
        rates: checked(&raw.rates, &place)?,
        long,
    })
}

fn checked(raw: &RawRates, place: &str) -> Result<Rates, String> {
    let rates = Rates {
        input: raw.input,
        cached_input: raw.cached_input.unwrap_or(raw.input),
        cache_write: raw.cache_write.unwrap_or(raw.input),
        output: raw.output,
    };
    let greatest = rates.input.max(rates.cached_input).max(rates.cache_write).max(rates.output);
    if greatest > GREATEST_RATE {
        return Err(format!(
            "{place} is {greatest} micro-dollars per million tokens, which is more than a dollar a token"
        ));
    }
    Ok(rates)
}

fn check_keys(file: &Table) -> Result<(), String> {
    known(file, &FILE_KEYS, "")?;
    if let Some(assumed) = file.get("assumed").and_then(Value::as_table) {
        known(assumed, &RATE_KEYS, "assumed.")?;
    }
    for entry in file.get("price").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table) {
        known(entry, &ENTRY_KEYS, "price.")?;
        if let Some(long) = entry.get("long").and_then(Value::as_table) {
            known(long, &LONG_KEYS, "price.long.")?;
        }
    }
    Ok(())
}

fn known(table: &Table, keys: &[&str], place: &str) -> Result<(), String> {
    /// Below this two names have too little in common for a guess to help.
    const ALIKE: f64 = 0.75;
    let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) else { return Ok(()) };
    let meant = key.to_ascii_lowercase().replace('-', "_");
    let nearest = keys
        .iter()
        .map(|known| (strsim::jaro_winkler(known, &meant), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0));
    let guess = nearest.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    Err(format!("unknown key `{place}{key}`{guess}"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        read(text, "prices.toml").unwrap_err().reason
    }

    #[test]
    fn mistakes_refuse_the_file_and_are_named() {
        let entry = "version = 1\n[[price]]\nprovider = \"p\"\nmodels = [\"m\"]\ninput = 1\noutput = 2\n";
        assert!(read(entry, "x").is_ok());
        assert!(reason(&format!("{entry}outptu = 3")).contains("`price.outptu`; did you mean `output`?"));
        assert!(reason(&format!("{entry}cached-input = 3")).contains("did you mean `cached_input`?"));
        assert!(reason(&format!("{entry}long = {{ ovre = 1 }}")).contains("`price.long.ovre`; did you mean `over`?"));
        assert!(reason("version = 1\nprices = []").contains("did you mean `price`?"));
        assert!(reason("version = 1\n[assumed]\nzzz = 1").contains("unknown key `assumed.zzz`"));
        assert!(reason("version = 2").contains("only 1"));
        assert!(reason("price = []").contains("version"));
        assert!(reason("version = ").contains("line 1"));
        assert!(reason(&entry.replace("input = 1", "input = -1")).contains("-1"));
        assert!(reason(&entry.replace("input = 1", "input = 1.5")).contains("1.5"));
        assert!(reason(&entry.replace("[\"m\"]", "[]")).contains("names no model"));
        assert!(reason(&format!("{entry}as_of = \"yesterday\"")).contains("yesterday"));
        assert!(reason(&entry.replace("output = 2", "output = 2000000000000")).contains("a dollar a token"));
        assert!(reason(&"#".repeat(MOST_BYTES + 1)).contains("larger"));
    }

    #[test]
    fn what_is_left_out_costs_as_input() {
        let file = read(
            "version = 1\n[assumed]\ninput = 5\noutput = 6\n[[price]]\nprovider = \" P \"\nmodels = [\"M.1\"]\ninput = 7\noutput = 8\nlong = { over = 9, input = 10, output = 11, cache_write = 12 }",
            "x",
        )
        .unwrap();
        assert_eq!(file.assumed.unwrap().cached_input, 5);
        let entry = &file.entries[0];
        assert_eq!((entry.provider.as_str(), entry.models[0].as_str()), ("p", "m-1"));
        assert_eq!((entry.rates.cached_input, entry.rates.cache_write), (7, 7));
        assert_eq!(entry.long, Some((9, Rates { input: 10, cached_input: 10, cache_write: 12, output: 11 })));
    }
}
