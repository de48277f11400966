//! The command that shows the next page of a list, with everything that was asked for the first time.

use std::fmt::Display;

/// Builds such a command.
#[derive(Debug)]
pub(crate) struct NextPage(String);

impl NextPage {
    /// Of this list, such as `palyra runs list`.
    pub(crate) fn of(command: &str) -> Self {
        Self(command.to_owned())
    }

    /// With an option, if it was given.
    pub(crate) fn option(mut self, flag: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            self.0.push_str(&format!(" {flag} {}", word(&value.to_string())));
        }
        self
    }

    /// The line that names it.
    pub(crate) fn line(&self) -> String {
        format!("next: {}", self.0)
    }
}

/// A value as one word of a shell.
fn word(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+,=%".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_were_given_are_kept_and_quoted_where_a_shell_needs_it() {
        let next = NextPage::of("palyra runs list").option("--phase", Some("failed")).option("--session", None::<&str>);
        assert_eq!(
            next.option("--before", Some("it's")).line(),
            "next: palyra runs list --phase failed --before 'it'\\''s'"
        );
    }
}
