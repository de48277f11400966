//! Whole numbers on the command line: one parser, one way to say which are meant.

use std::any::TypeId;
use std::fmt::Display;
use std::str::FromStr;

/// Takes whole numbers from `least` on.
pub(crate) fn at_least<T: Number>(least: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        text.parse().ok().filter(|number| *number >= least).ok_or_else(|| format!("expected a whole number ≥ {least}"))
    }
}

/// Takes whole numbers from `least` to `most`.
pub(crate) fn between<T: Number>(
    least: T,
    most: T,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let fits = |number: &T| (least..=most).contains(number);
        text.parse().ok().filter(fits).ok_or_else(|| format!("expected a whole number from {least} to {most}"))
    }
}

/// The types of number that arguments have.
pub(crate) trait Number: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static {}

impl Number for u32 {}
impl Number for u64 {}
impl Number for usize {}

/// The command with every number taken as one whatever its sign, so that `-n -1` is told to be too small and not to be an unknown option.
pub(crate) fn with_signs(command: clap::Command) -> clap::Command {
    let signed =
        |argument: clap::Arg| if is_number(&argument) { argument.allow_negative_numbers(true) } else { argument };
    command.mut_args(signed).mut_subcommands(with_signs)
}

fn is_number(argument: &clap::Arg) -> bool {
    let numbers = [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<usize>()];
    let parser = argument.get_value_parser().type_id();
    argument.get_action().takes_values() && numbers.iter().any(|number| parser == *number)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn numbers_are_refused_in_words() {
        assert_eq!(at_least::<u32>(1)("7"), Ok(7));
        for wrong in ["0", "-1", "x", "", "1.5", "99999999999"] {
            assert_eq!(at_least::<u32>(1)(wrong), Err("expected a whole number ≥ 1".to_owned()), "{wrong}");
        }
        assert_eq!(between::<u64>(1, 1440)("1440"), Ok(1440));
        assert_eq!(between::<u64>(1, 1440)("1441"), Err("expected a whole number from 1 to 1440".to_owned()));
    }

    /// No argument shows the parser's own words for a number, such as "invalid digit found in string".
    #[test]
    fn every_number_on_the_command_line_is_read_here() {
        let root = with_signs(Arguments::command());
        let seen = check(&root, &root, &["palyra".to_owned()]);
        assert!(seen > 10, "{seen}");
    }

    fn check(root: &clap::Command, command: &clap::Command, path: &[String]) -> usize {
        let mut seen = 0;
        for argument in command.get_arguments() {
            if is_number(argument) {
                for wrong in ["x", "-1"] {
                    let given = match argument.get_long() {
                        Some(flag) => vec![format!("--{flag}"), wrong.to_owned()],
                        None => vec![wrong.to_owned()],
                    };
                    let words = path.iter().cloned().chain(given);
                    let error = root.clone().try_get_matches_from(words).unwrap_err().to_string();
                    assert!(error.contains("expected a whole number"), "{path:?} {}: {error}", argument.get_id());
                }
                seen += 1;
            }
        }
        for below in command.get_subcommands() {
            let path: Vec<String> = path.iter().cloned().chain([below.get_name().to_owned()]).collect();
            seen += check(root, below, &path);
        }
        seen
    }
}
