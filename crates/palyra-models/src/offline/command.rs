//! A command line as arguments of `palyra.process.run`.
//!
//! Words are cut as a shell cuts them. What needs a shell, because it is a pipe, a redirection, a glob or a variable, is given to one as it was written; the
//! tool has a person look at every shell.

use serde_json::{Value, json};

/// Programs that read what they are given as a script; the tool wants to be told.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh"];

/// The arguments, or nothing if a quote is not closed.
pub(super) fn arguments(command: &str) -> Option<Value> {
    let words = shlex::split(command)?;
    if needs_shell(command) {
        return Some(json!({ "argv": ["sh", "-c", command], "shell": true }));
    }
    let is_shell =
        words.first().and_then(|program| program.rsplit('/').next()).is_some_and(|name| SHELLS.contains(&name));
    Some(if is_shell { json!({ "argv": words, "shell": true }) } else { json!({ "argv": words }) })
}

/// Whether the result is that of a program that ran.
pub(super) fn ran(result: &str) -> bool {
    let first = result.lines().next().unwrap_or_default();
    first.starts_with('`') && (first.contains("`: exit code ") || first.contains("`: ended by signal "))
}

/// What a program did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ran {
    /// How it ended: `exit code 2`.
    pub(super) how: String,
    /// What it printed. Where that went is said only if it printed to both places.
    pub(super) printed: String,
}

impl Ran {
    pub(super) fn of(result: &str) -> Self {
        let (first, rest) = result.split_once('\n').unwrap_or((result, ""));
        let ended = first.rsplit_once("`: ").map_or(first, |(_, ended)| ended);
        let how = match ended.split_once(" after ") {
            // Why it was ended by force stands behind the time it took.
            Some((how, after)) => match after.split_once(": ") {
                Some((_, why)) => format!("{how}: {why}"),
                None => how.to_owned(),
            },
            None => ended.to_owned(),
        };
        let is_stream = |line: &&str| line.starts_with("--- stdout (") || line.starts_with("--- stderr (");
        let is_single = rest.lines().filter(is_stream).count() == 1;
        let lines = rest.lines().filter(|line| !(is_single && is_stream(line)));
        Self { how, printed: lines.collect::<Vec<_>>().join("\n") }
    }
}

/// Whether a shell would do more with a line than cut it into words.
fn needs_shell(command: &str) -> bool {
    let mut letters = command.chars();
    let mut quote = None;
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            // Also inside double quotes.
            (_, '$' | '`') => return true,
            (_, '\\') => {
                letters.next();
            }
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '[') => return true,
            (None, '~' | '#') if before.is_whitespace() => return true,
            (None, _) => {}
        }
        before = letter;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_and_scripts_are_given_to_a_shell() {
        let table = [
            ("cargo test", json!({ "argv": ["cargo", "test"] })),
            ("grep \"Water\" notes.md", json!({ "argv": ["grep", "Water", "notes.md"] })),
            ("grep  'a  b' x", json!({ "argv": ["grep", "a  b", "x"] })),
            ("grep 'a|b' x", json!({ "argv": ["grep", "a|b", "x"] })),
            ("grep a\\|b x", json!({ "argv": ["grep", "a|b", "x"] })),
            ("cat a | wc -l", json!({ "argv": ["sh", "-c", "cat a | wc -l"], "shell": true })),
            ("ls *.md", json!({ "argv": ["sh", "-c", "ls *.md"], "shell": true })),
            ("echo \"$HOME\"", json!({ "argv": ["sh", "-c", "echo \"$HOME\""], "shell": true })),
            ("bash x.sh", json!({ "argv": ["bash", "x.sh"], "shell": true })),
            ("echo a#b c~d", json!({ "argv": ["echo", "a#b", "c~d"] })),
        ];
        for (command, expected) in table {
            assert_eq!(arguments(command), Some(expected), "{command}");
        }
        assert_eq!(arguments("echo 'a b"), None);
    }

    #[test]
    fn what_a_program_printed_is_told_as_a_terminal_would_show_it() {
        let ran = |how: &str, printed: &str| Ran { how: how.to_owned(), printed: printed.to_owned() };
        let failed = "`ls x`: exit code 2 after 0.0 s\n--- stderr (12 bytes)\nls: x: no such file\n";
        assert_eq!(Ran::of(failed), ran("exit code 2", "ls: x: no such file"));
        let both =
            "`a`: ended by signal 9 after 3.0 s: its time was over\n--- stdout (2 bytes)\na\n--- stderr (2 bytes)\nb\n";
        assert_eq!(
            Ran::of(both),
            ran("ended by signal 9: its time was over", "--- stdout (2 bytes)\na\n--- stderr (2 bytes)\nb")
        );
        assert_eq!(Ran::of("`true`: exit code 0 after 0.0 s\n"), ran("exit code 0", ""));
    }

    #[test]
    fn a_program_that_ran_is_told_from_a_refusal() {
        assert!(ran("`false`: exit code 1 after 0.0 s\n"));
        assert!(ran("`a b`: ended by signal 9 after 0.0 s: it was stopped\n"));
        assert!(!ran("error: `false` is not there"));
        assert!(!ran("a person refused this call"));
    }
}
