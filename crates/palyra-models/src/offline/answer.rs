//! What the planner says.

use super::plan::PlannedCall;
use super::steps::{Outcome, Verdict};

/// What it is, and how to get a language model instead.
const DISCLAIMER: &str = "This is the offline planner, not a language model; to connect one: palyra models discover";

/// What it understands.
pub(super) const ABILITIES: &str = "\
- list files [in DIR] [recursively]
- read FILE, show FILE
- search for \"TEXT\" [in DIR]
- summarise FILE
- write FILE with \"TEXT\", create FILE, append \"TEXT\" to FILE
- replace \"OLD\" with \"NEW\" in FILE, delete FILE
- run COMMAND
- what time is it, help
Join several with `, then`, `and`, `;` or a new line.";

/// Said beside calls, so that whoever watches knows what they are for.
pub(super) fn intention(calls: &[PlannedCall]) -> String {
    let aims: Vec<&str> = calls.iter().map(|call| call.aim.as_str()).collect();
    match aims.as_slice() {
        [] => String::new(),
        [one] => format!("I will {one}."),
        [head @ .., last] => format!("I will {} and {last}.", head.join(", ")),
    }
}

/// Nothing was understood.
pub(super) fn not_understood() -> String {
    format!("I did not understand that.\n{DISCLAIMER}\n\nI can:\n{ABILITIES}\n")
}

/// What it is and what it understands.
pub(super) fn help() -> String {
    format!("{DISCLAIMER}\n{ABILITIES}")
}

/// What was done and found.
pub(super) fn report(outcomes: &[Outcome]) -> String {
    let done = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Done).count();
    let mut text = match outcomes.len() {
        1 if done == 1 => "Done.".to_owned(),
        1 => "That did not work.".to_owned(),
        all if done == all => format!("Done, all {all} steps."),
        all => format!("{done} of {all} steps done."),
    };
    text.push('\n');
    for (position, outcome) in outcomes.iter().enumerate() {
        let headline = capitalised(&outcome.headline);
        text.push_str(&format!("\n{}. {headline}", position + 1));
        if outcome.body.is_empty() {
            text.push('\n');
            continue;
        }
        text.push_str(":\n");
        for line in outcome.body.lines() {
            text.push_str(format!("   {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Cuts a text into deltas at the ends of words, as a model would stream it.
pub(super) fn deltas(text: &str) -> Vec<String> {
    const WORDS: usize = 6;
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    words.chunks(WORDS).map(<[&str]>::concat).collect()
}
