//! Loop detection: the same call with the same result, time and again, and turns in which nothing works.
//!
//! A model that is stuck repeats itself, not always to the byte: `./notes.md` and the absolute path of that file are `notes.md`, 1.0 is 1, and an argument
//! that is null is one that was left out.
//! So arguments are compared by what they mean. Repetition is only futile while nothing changes, so a call that may change something and was
//! never made before forgives all earlier repetitions; two writes that alternate for ever are still caught, because both were made before.
//!
//! Turns whose calls all failed are counted as well: a model that invents tools, or runs into one error with ever new arguments, never makes the same
//! call twice.

use palyra_common::Digest;
use palyra_tools::Concurrency;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::{CallState, SeenCalls, ToolRound};
use crate::canonical::canonical_json;

/// The machine version since which arguments are compared by meaning and useless turns count. Tapes of older machines replay as they ran.
const BY_MEANING: u32 = 4;
/// Code of a call whose tool does not exist.
const UNKNOWN_TOOL: &str = "unknown_tool";
/// Codes of calls that were given up by people or by the run's own end, which say nothing about the model.
const NOT_THE_MODELS: [&str; 2] = ["interrupted", "run_ending"];
/// An error that keeps coming back ends the run after this many times the repetitions of one call: other arguments may still help.
const SAME_ERROR: u32 = 2;
/// Different errors do so after this many times.
const ANY_ERROR: u32 = 3;

/// One finished call, as loop detection sees it.
pub(super) struct FinishedCall<'a> {
    pub tool: &'a str,
    pub arguments: &'a Value,
    pub content: &'a str,
    pub concurrency: Concurrency,
    /// Where the run works, as an absolute path.
    pub workspace: &'a str,
}

/// Notes a finished call and returns how often exactly this has now been seen.
pub(super) fn note(seen: &mut SeenCalls, call: &FinishedCall<'_>, machine_version: u32) -> u32 {
    let arguments = if machine_version >= BY_MEANING {
        canonical_json(&normalised(call.arguments, call.workspace))
    } else {
        canonical_json(call.arguments)
    };
    let key = Digest::of_parts(&[call.tool.as_bytes(), arguments.as_bytes(), call.content.as_bytes()]);
    if call.concurrency == Concurrency::Exclusive && !seen.contains_key(&key) {
        for count in seen.values_mut() {
            *count = 0;
        }
    }
    let count = seen.entry(key).or_insert(0);
    *count += 1;
    *count
}

/// Turns in a row in which no call worked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UselessTurns {
    /// How many.
    turns: u32,
    /// How many of the newest failed with the same error.
    same: u32,
    /// That error.
    error: String,
}

impl UselessTurns {
    pub(super) fn is_empty(&self) -> bool {
        self.turns == 0
    }

    /// Notes a round whose calls are all over; what ends the run, if there were too many in a row.
    pub(super) fn note(&mut self, round: &ToolRound, loop_repeats: u32, machine_version: u32) -> Option<String> {
        if machine_version < BY_MEANING {
            return None;
        }
        let Some(error) = common_error(round) else {
            *self = Self::default();
            return None;
        };
        self.turns = self.turns.saturating_add(1);
        self.same = if self.error == error { self.same.saturating_add(1) } else { 1 };
        self.error = error;
        let most_same = if self.error == UNKNOWN_TOOL { loop_repeats } else { loop_repeats.saturating_mul(SAME_ERROR) };
        if self.same >= most_same {
            return Some(format!("no call worked in {} turns in a row: `{}` each time", self.same, self.error));
        }
        (self.turns >= loop_repeats.saturating_mul(ANY_ERROR))
            .then(|| format!("no call worked in {} turns in a row", self.turns))
    }
}

/// The error of a round in which no call worked; empty where they failed in different ways.
fn common_error(round: &ToolRound) -> Option<String> {
    let mut errors = round.calls.iter().map(|call| match &call.state {
        CallState::Done(outcome) => outcome.failure().filter(|code| !NOT_THE_MODELS.contains(&code.as_str())),
        _ => None,
    });
    let first = errors.next()??;
    let rest = errors.collect::<Option<Vec<String>>>()?;
    Some(if rest.iter().all(|error| *error == first) { first } else { String::new() })
}

/// Arguments without differences that mean nothing.
fn normalised(value: &Value, workspace: &str) -> Value {
    match value {
        Value::Object(members) => {
            let said = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(said.map(|(name, value)| (name.clone(), normalised(value, workspace))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| normalised(item, workspace)).collect()),
        Value::String(text) => Value::String(normalised_text(text, workspace)),
        Value::Number(number) => number.as_f64().and_then(whole).map_or_else(|| value.clone(), Value::from),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// A whole number that was written with a fraction of nothing.
fn whole(number: f64) -> Option<i64> {
    /// Numbers up to here are exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and within bounds")]
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

/// A text without blanks around it; a path without detours.
fn normalised_text(text: &str, workspace: &str) -> String {
    let text = text.trim();
    let is_path = !text.contains(char::is_whitespace) && !text.contains("://") && (text.contains('/') || text == ".");
    if !is_path {
        return text.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if !text.starts_with('/') {
        return joined;
    }
    match joined.strip_prefix(workspace.trim_matches('/')).filter(|_| workspace.len() > 1) {
        Some("") => String::new(),
        Some(inside) if inside.starts_with('/') => inside.trim_start_matches('/').to_owned(),
        _ => format!("/{joined}"),
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::Label;
    use serde_json::json;

    use super::super::input::Input;
    use super::super::state::{Call, CallOutcome};
    use super::super::tests::finished;
    use super::*;

    fn times(calls: &[Value], version: u32) -> u32 {
        let mut seen = SeenCalls::new();
        let mut most = 0;
        for arguments in calls {
            let call = FinishedCall {
                tool: "t",
                arguments,
                content: "same",
                concurrency: Concurrency::Shared,
                workspace: "/home/me/work",
            };
            most = most.max(note(&mut seen, &call, version));
        }
        most
    }

    #[test]
    fn calls_are_compared_by_what_they_mean() {
        let paths =
            ["a/b.txt", "./a/b.txt", "a//b.txt", "a/./b.txt", "a/c/../b.txt", " a/b.txt ", "/home/me/work/a/b.txt"];
        let calls: Vec<Value> = paths.iter().map(|path| json!({ "path": path })).collect();
        assert_eq!(times(&calls, BY_MEANING), 7);
        assert_eq!(times(&[json!({ "path": "." }), json!({ "path": "/home/me/work/" })], BY_MEANING), 2);
        assert_eq!(times(&calls, BY_MEANING - 1), 1, "older tapes replay as they ran");
        assert_eq!(times(&[json!({ "path": "a", "limit": null }), json!({ "path": "a" })], BY_MEANING), 2);
        assert_eq!(times(&[json!({ "line": 1 }), json!({ "line": 1.0 })], BY_MEANING), 2);
        let different =
            [json!("/home/me/works/a"), json!("/home/me/a"), json!("works/a"), json!(1), json!(1.5), json!("1")];
        assert_eq!(times(&different, BY_MEANING), 1);
        let different =
            [json!("a/b"), json!("/a/b"), json!("../a/b"), json!("a/c"), json!("http://a//b"), json!("http://a/b")];
        assert_eq!(times(&different, BY_MEANING), 1);
    }

    /// A round of one call with this error, or one that worked.
    fn round(error: Option<&str>) -> ToolRound {
        let outcome = match error {
            Some(code) => CallOutcome::NotRun { code: code.into(), message: String::new(), label: Label::system() },
            None => match finished("c", "fine") {
                Input::ToolFinished { result, .. } => CallOutcome::Finished(result),
                other => panic!("{other:?}"),
            },
        };
        let call = Call {
            call_id: "c".into(),
            tool: "t".into(),
            arguments: json!({}),
            references: Vec::new(),
            state: CallState::Done(outcome),
        };
        ToolRound { calls: vec![call] }
    }

    /// After how many of these rounds the run ends.
    fn ends_after<'a>(errors: impl IntoIterator<Item = Option<&'a str>>) -> Option<usize> {
        let mut useless = UselessTurns::default();
        errors.into_iter().position(|error| useless.note(&round(error), 3, BY_MEANING).is_some()).map(|at| at + 1)
    }

    #[test]
    fn turns_in_which_nothing_works_end_the_run() {
        assert_eq!(ends_after([Some(UNKNOWN_TOOL); 20]), Some(3), "tools are invented");
        assert_eq!(ends_after([Some("not_found"); 20]), Some(6), "one error again and again");
        let various: Vec<_> = ["a", "b"].into_iter().cycle().take(20).map(Some).collect();
        assert_eq!(ends_after(various), Some(9), "errors of all kinds");
        let with_success: Vec<_> = [Some("a"), Some("a"), None].into_iter().cycle().take(40).collect();
        assert_eq!(ends_after(with_success), None, "a call that works begins anew");
        assert_eq!(ends_after([Some("interrupted"); 20]), None, "what people stop is not held against the model");
        assert_eq!(UselessTurns::default().note(&round(Some(UNKNOWN_TOOL)), 1, BY_MEANING - 1), None);
    }
}
