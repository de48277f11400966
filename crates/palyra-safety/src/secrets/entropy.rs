//! How random a value looks.

/// Shannon entropy in bits per byte.
pub(crate) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let total = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}

/// Whether a token's body is no placeholder: varied for its length and not counted upwards.
///
/// A random value of `n` characters reaches nearly `log2(min(n, alphabet))` bits; two thirds of that leaves room for chance.
pub(crate) fn looks_random(value: &[u8]) -> bool {
    // Separators between parts do not make the parts any less digits.
    let all = |class: fn(&u8) -> bool| value.iter().all(|byte| class(byte) || matches!(byte, b'-' | b'_'));
    let alphabet = if all(u8::is_ascii_digit) {
        10.0
    } else if all(u8::is_ascii_hexdigit) {
        16.0
    } else {
        36.0
    };
    let ideal = (value.len() as f64).min(alphabet).log2();
    let steps = value.windows(2).filter(|pair| matches!(pair, [a, b] if *b == a.wrapping_add(1))).count();
    value.len() >= 6 && entropy(value) >= ideal * 0.66 && steps * 3 < value.len()
}

/// Whether a value is visibly a stand-in for a real one.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    const PARTS: &[&str] = &[
        "...",
        "***",
        "${",
        "$(",
        "{{",
        "<",
        "%s",
        "xxxx",
        "0000000",
        "1234567",
        "abcdef",
        "changeme",
        "change_me",
        "dummy",
        "example",
        "fake",
        "insert",
        "my-",
        "my_",
        "placeholder",
        "redacted",
        "replace",
        "sample",
        "todo",
        "your",
    ];
    let lower = value.to_ascii_lowercase();
    PARTS.iter().any(|part| memchr::memmem::find(&lower, part.as_bytes()).is_some())
        || value.first().is_some_and(|first| value.iter().all(|byte| byte == first))
}
