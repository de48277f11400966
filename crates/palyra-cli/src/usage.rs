//! Arguments that the parser refuses, told in the same form as every other error: one line with a code, a hint, the envelope
//! for programs. Help and version are the parser's own business.

use clap::error::ErrorKind;

use crate::console::OutputFormat;
use crate::error::CliError;

/// The refusal as an error of this program, or the parser's own output where that is what was asked for.
pub(crate) fn refusal(error: &clap::Error) -> Option<CliError> {
    let asked_for_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    (!asked_for_help).then(|| understood(&error.render().to_string()))
}

/// The format that was asked for, found without the parser, which has just failed.
pub(crate) fn wanted_format(arguments: impl Iterator<Item = String>) -> OutputFormat {
    let arguments: Vec<String> = arguments.collect();
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
    use clap::Parser as _;

    use super::*;
    use crate::arguments::Arguments;

    fn told(arguments: &[&str]) -> (String, Option<String>) {
        match refusal(&Arguments::try_parse_from(arguments).unwrap_err()) {
            Some(CliError::Usage { reason, usage }) => (reason, usage),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn refusals_are_one_line_with_the_usage_apart() {
        let (reason, usage) = told(&["palyra", "rnus"]);
        assert_eq!(reason, "unrecognized subcommand `rnus`; some similar subcommands exist: `run`, `runs`");
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
    fn help_is_not_an_error() {
        for arguments in [&["palyra", "--help"][..], &["palyra", "--version"], &["palyra"], &["palyra", "runs"]] {
            assert!(refusal(&Arguments::try_parse_from(arguments).unwrap_err()).is_none(), "{arguments:?}");
        }
    }

    #[test]
    fn the_format_is_found_even_in_wrong_arguments() {
        let wanted = |words: &[&str]| wanted_format(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(wanted(&["rnus", "--output", "json"]), OutputFormat::Json);
        assert_eq!(wanted(&["--output=ndjson", "rnus"]), OutputFormat::Ndjson);
        assert_eq!(wanted(&["--output", "xml"]), OutputFormat::Text);
        assert_eq!(wanted(&["rnus", "--output"]), OutputFormat::Text);
    }
}
