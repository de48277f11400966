//! What the planner says.

use palyra_common::suggest;

use super::phrases::VERBS;
use super::plan::PlannedCall;
use super::steps::{Outcome, Verdict};

/// What it understands.
pub(super) const ABILITIES: &str = "\
- list files [in DIR] [recursively], find FILE, how many files are in DIR
- read FILE, summarise FILE [in one sentence], count the lines in FILE
- search for \"TEXT\" [in DIR]
- create FILE [with \"TEXT\"], write \"TEXT\" to FILE, append \"TEXT\" to FILE
- replace \"OLD\" with \"NEW\" in FILE
- copy FILE to FILE, rename FILE to FILE, delete FILE
- run COMMAND
- what time is it
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
pub(super) fn not_understood(words: &str) -> String {
    let first = words.split_whitespace().next().unwrap_or_default();
    let verb = suggest(first, VERBS.iter().copied()).filter(|verb| is_typo(first, verb));
    let meant = verb.map(|verb| format!("; did you mean `{verb}`?")).unwrap_or_default();
    format!(
        "I did not understand that{meant}\nMost tasks take a language model; to connect one: palyra models discover\n\
         `palyra run help` lists what works without one\n"
    )
}

/// Whether a word is another one with a letter too many, too few or wrong.
fn is_typo(word: &str, meant: &str) -> bool {
    word.len() > 2
        && !word.eq_ignore_ascii_case(meant)
        && strsim::damerau_levenshtein(&word.to_ascii_lowercase(), meant) == 1
}

/// What was done and found. The first line says whether all of it was done, and if not, why.
pub(super) fn report(outcomes: &[Outcome]) -> String {
    if let [only] = outcomes {
        return entry(&capitalised(&only.headline), &only.body, "");
    }
    let all = outcomes.len();
    let done = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Done).count();
    let failed = outcomes.iter().find(|outcome| outcome.verdict == Verdict::Failed);
    let mut text = match (failed, done) {
        (Some(failed), _) => format!("{done} of {all} steps done: {}\n", failed.headline),
        (None, 2) if all == 2 => "Both steps done\n".to_owned(),
        (None, _) if done == all => format!("All {all} steps done\n"),
        (None, _) => format!("{done} of {all} steps done\n"),
    };
    for (position, outcome) in outcomes.iter().enumerate() {
        let headline = format!("{}. {}", position + 1, capitalised(&outcome.headline));
        text.push('\n');
        text.push_str(&entry(&headline, &outcome.body, "   "));
    }
    text
}

fn entry(headline: &str, body: &str, indent: &str) -> String {
    if body.is_empty() {
        return format!("{headline}\n");
    }
    let lines = body.lines().map(|line| format!("{}\n", format!("{indent}{line}").trim_end()));
    format!("{headline}:\n{}", lines.collect::<String>())
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
