//! Amounts of money in words: the one way in which Palyra reads them, in settings and in commands.

/// Micro-dollars in a dollar.
const PER_DOLLAR: u64 = 1_000_000;
/// Digits behind the point that an amount can have.
const DECIMALS: usize = 6;

/// Reads `$5`, `5`, `0.50 USD` and the like as millionths of a US dollar, or says what is wrong with it.
pub fn micro_dollars(text: &str) -> Result<u64, &'static str> {
    const TOO_LARGE: &str = "the amount is too large";
    let number = without_currency(text.trim());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || number.ends_with('.') {
        return Err("it contains no number");
    }
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Err("expected digits with at most one decimal point");
    }
    let significant = fraction.trim_end_matches('0');
    if significant.len() > DECIMALS {
        return Err("at most six decimal places are supported");
    }
    let dollars: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| TOO_LARGE)? };
    let micros: u64 = format!("{significant:0<DECIMALS$}").parse().map_err(|_| TOO_LARGE)?;
    dollars.checked_mul(PER_DOLLAR).and_then(|sum| sum.checked_add(micros)).ok_or(TOO_LARGE)
}

/// The number without the signs of the one currency there is.
fn without_currency(text: &str) -> &str {
    let text = text.strip_prefix('$').unwrap_or(text);
    let cut = text.len().saturating_sub(3);
    match text.get(cut..) {
        Some(tail) if tail.eq_ignore_ascii_case("usd") => text.get(..cut).unwrap_or(text).trim(),
        _ => text.trim(),
    }
}
