//! Arguments that the parser refuses, told in the same form as every other error: one line with a code, a hint, the envelope
//! for programs. Help and version are the parser's own business.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Arguments;
use crate::console::OutputFormat;
use crate::error::CliError;

/// The refusal as an error of this program, or the parser's own output where that is what was asked for.
pub(crate) fn refusal(error: &clap::Error, words: &[String]) -> Option<CliError> {
    let asked_for_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if asked_for_help {
        return None;
    }
    let CliError::Usage { mut reason, usage } = understood(&error.render().to_string()) else { return None };
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(typed))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    {
        let meant = similar(typed, words);
        if !meant.is_empty() {
            let meant: Vec<String> = meant.iter().map(|name| format!("`{name}`")).collect();
            reason = format!("unrecognized subcommand `{typed}`; did you mean {}?", meant.join(" or "));
        }
    }
    Some(CliError::Usage { reason, usage })
}

/// The commands that a mistyped one can stand for, the likeliest first: the parser's own guess misses two letters that changed places.
fn similar(typed: &str, words: &[String]) -> Vec<String> {
    let root = Arguments::command();
    let mut parent = &root;
    for word in words.iter().skip(1).take_while(|word| *word != typed) {
        parent = parent.find_subcommand(word).unwrap_or(parent);
    }
    let mut near: Vec<(usize, &str)> = parent
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| (strsim::damerau_levenshtein(typed, command.get_name()), command.get_name()))
        .filter(|(distance, name)| {
            *distance <= name.len() / 2 && *distance <= 2 || typed.len() > 1 && name.starts_with(typed)
        })
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// The format that was asked for, found without the parser, which has just failed.
pub(crate) fn wanted_format(arguments: &[String]) -> OutputFormat {
    let after_flag = arguments.windows(2).filter_map(|pair| match pair {
        [flag, value] if flag == "--output" => Some(value.as_str()),
        _ => None,
    });
    let joined = arguments.iter().filter_map(|argument| argument.strip_prefix("--output="));
    match after_flag.chain(joined).last() {
        Some("json") => OutputFormat::Json,
        Some("ndjson") => OutputFormat::Ndjson,
        _ => OutputFormat::Text,
    }
}

/// Takes the parser's paragraphs apart: what is wrong, tips, usage.
fn understood(rendered: &str) -> CliError {
    let mut paragraphs = rendered.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    });
    let first = paragraphs.next().unwrap_or_default();
    let mut reason = first.strip_prefix("error: ").unwrap_or(&first).replace('\'', "`");
    let mut usage = None;
    for paragraph in paragraphs {
        if let Some(tip) = paragraph.strip_prefix("tip: ") {
            reason.push_str(&format!("; {}", tip.replace('\'', "`")));
        } else if let Some(line) = paragraph.strip_prefix("Usage: ") {
            usage = Some(line.to_owned());
        }
    }
    CliError::Usage { reason, usage }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn told(arguments: &[&str]) -> (String, Option<String>) {
        match refusal(&Arguments::read(arguments).unwrap_err(), &owned(arguments)) {
            Some(CliError::Usage { reason, usage }) => (reason, usage),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn refusals_are_one_line_with_the_usage_apart() {
        let (reason, usage) = told(&["palyra", "rnus"]);
        assert_eq!(reason, "unrecognized subcommand `rnus`; did you mean `runs`?");
        assert_eq!(usage.as_deref(), Some("palyra [OPTIONS] <COMMAND>"));
        let (reason, usage) = told(&["palyra", "runs", "show"]);
        assert_eq!(reason, "the following required arguments were not provided: <RUN>");
        assert_eq!(usage.as_deref(), Some("palyra runs show <RUN>"));
        let (reason, usage) = told(&["palyra", "--output", "xml", "version"]);
        assert!(reason.starts_with("invalid value `xml` for `--output <FORMAT>` [possible values: text"), "{reason}");
        assert_eq!(usage, None);
        assert!(told(&["palyra", "run", "--max-turns", "0", "x"]).0.contains("--max-turns"));
    }

    #[test]
    fn commands_that_can_be_meant_are_named_the_likeliest_first() {
        for (arguments, meant) in [
            (&["palyra", "rnu"][..], "`run` or `runs`?"),
            (&["palyra", "runn"], "`run` or `runs`?"),
            (&["palyra", "sesions"], "`sessions`?"),
            (&["palyra", "--output", "json", "runs", "lsit"], "`list`?"),
            (&["palyra", "sess"], "`sessions`?"),
        ] {
            let (reason, _) = told(arguments);
            assert!(reason.ends_with(&format!("; did you mean {meant}")), "{arguments:?}: {reason}");
        }
        assert_eq!(told(&["palyra", "xyzzy"]).0, "unrecognized subcommand `xyzzy`");
    }

    #[test]
    fn help_is_not_an_error() {
        for arguments in [&["palyra", "--help"][..], &["palyra", "--version"], &["palyra"], &["palyra", "runs"]] {
            assert!(refusal(&Arguments::read(arguments).unwrap_err(), &owned(arguments)).is_none(), "{arguments:?}");
        }
    }

    #[test]
    fn the_format_is_found_even_in_wrong_arguments() {
        let wanted = |words: &[&str]| wanted_format(&owned(words));
        assert_eq!(wanted(&["rnus", "--output", "json"]), OutputFormat::Json);
        assert_eq!(wanted(&["--output=ndjson", "rnus"]), OutputFormat::Ndjson);
        assert_eq!(wanted(&["--output", "xml"]), OutputFormat::Text);
        assert_eq!(wanted(&["rnus", "--output"]), OutputFormat::Text);
    }
}
