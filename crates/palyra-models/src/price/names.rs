//! When a model's name is meant by a name in the table.

/// Brings a name into one spelling: lower case, without `models/` in front, and with dashes for dots, since `claude-sonnet-4.5` and
/// `claude-sonnet-4-5` are the same model in different shops.
pub(super) fn folded(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase().replace('.', "-");
    name.strip_prefix("models/").map_or_else(|| name.clone(), str::to_owned)
}

/// How well a folded name fits a folded pattern: the number of characters that are not left open. `None` if it does not.
pub(super) fn fit(pattern: &str, name: &str) -> Option<usize> {
    if pattern.contains('*') {
        return matches(pattern, name).then(|| pattern.chars().filter(|c| *c != '*').count());
    }
    let rest = name.strip_prefix(pattern)?;
    (rest.is_empty() || is_edition(rest)).then(|| pattern.chars().count())
}

/// Whether this is the mark of an edition of a model: `-20250929`, `@20250929`, `-2025-08-07`, `-0613`, `-001`, `-latest`. Anything else is
/// another model, which may cost more.
fn is_edition(rest: &str) -> bool {
    let Some(mark) = rest.strip_prefix(['-', '@']) else { return false };
    let digits =
        |text: &str, lengths: &[usize]| lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut fields = mark.split('-');
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some("latest"), None, ..) => true,
        (Some(number), None, ..) => digits(number, &[3, 4, 8]),
        (Some(year), Some(month), Some(day), None) => digits(year, &[4]) && digits(month, &[2]) && digits(day, &[2]),
        _ => false,
    }
}

/// Whether a name is what a pattern with `*` stands for.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or(""),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editions_are_the_same_model_and_other_names_are_not() {
        for (name, fits) in [
            ("gpt-5", true),
            ("GPT-5-2025-08-07", true),
            ("gpt-5-latest", true),
            ("gpt-5-mini", false),
            ("gpt-5.2", false),
            ("gpt-5-2", false),
            ("gpt-50", false),
            ("gpt-5-2-20270101", false),
            ("gpt-5-2025-08-07-x", false),
        ] {
            assert_eq!(fit("gpt-5", &folded(name)).is_some(), fits, "{name}");
        }
        assert!(fit("claude-sonnet-4-5", &folded("claude-sonnet-4.5@20250929")).is_some());
        assert!(fit("gemini-2-5-pro", &folded("models/gemini-2.5-pro-001")).is_some());
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*", "x", true),
            ("qwen*", "qwen3", true),
            ("*-free", "a-free", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("ab*bc", "abc", false),
            ("*a*", "bab", true),
            ("qwen*", "xqwen", false),
        ] {
            assert_eq!(fit(pattern, name).is_some(), fits, "{pattern} {name}");
        }
        assert!(fit("gpt-5", "gpt-5") > fit("gpt-*", "gpt-5"));
    }
}
