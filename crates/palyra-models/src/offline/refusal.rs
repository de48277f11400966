//! Why a call failed, in plain words.
//!
//! A tool's message is for models: it has a code and advice on the next call. A person gets the cause, and advice that a person can follow.

use super::steps::Finished;
use crate::REFUSAL_ADVICE;

const OUTSIDE: &str = "it lies outside the workspace; to work there: palyra run --workspace DIR …";

/// Whether a call failed because there is no such file.
pub(super) fn is_not_found(result: &Finished<'_>) -> bool {
    result.failed && result.content.contains("[path_not_found]")
}

/// Whether a call failed because the path is a directory.
pub(super) fn is_directory(result: &Finished<'_>) -> bool {
    result.failed && result.content.contains("[path_is_directory]")
}

/// Whether a path is one that only a shell would look up.
pub(super) fn is_outside(path: &str) -> bool {
    path == "~" || path.starts_with("~/")
}

/// Why a call on a path failed.
pub(super) fn reason(path: &str, result: &Finished<'_>) -> String {
    let content = result.content.trim();
    let content = content.strip_prefix("error:").unwrap_or(content).trim();
    let line = content.lines().next().unwrap_or_default();
    let line = line.split_once(REFUSAL_ADVICE).map_or(line, |(cause, _)| cause.trim_end_matches([';', ' ']));
    if line.contains("[path_outside_workspace]") || is_outside(path) {
        return OUTSIDE.to_owned();
    }
    let (cause, advice) = match line.split_once(" [").and_then(|(cause, rest)| Some((cause, rest.split_once(']')?.1))) {
        Some((cause, advice)) => (cause, advice.trim_start_matches([';', ' '])),
        None => (line, ""),
    };
    let cause = cause.strip_prefix(&format!("`{path}` ")).map_or_else(|| cause.to_owned(), |rest| format!("it {rest}"));
    match line {
        line if line.contains("[path_exists]") && cause.starts_with("it ") => {
            format!("{cause}; `write` replaces a file, `append` adds to it")
        }
        _ if advice.starts_with("did you mean") => format!("{cause}; {advice}"),
        line if line.contains("[path_not_found]") && !path.contains(['.', '/']) => {
            format!(
                "{cause}; if that is not the name of a file, the task takes a language model: palyra models discover"
            )
        }
        _ => cause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_to_a_model_is_not_given_to_people() {
        for (content, told) in [
            ("this call was denied (wrong folder); do not propose it again", "this call was denied (wrong folder)"),
            ("hook `h` refused this call; do not propose it again unchanged\nit is late", "hook `h` refused this call"),
        ] {
            assert_eq!(reason("a.txt", &Finished { content, failed: true }), told);
        }
    }
}
