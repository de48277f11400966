//! The decisions that the journal holds, with what the policies were asked.

use palyra_common::{RunId, ToolVerdict};
use palyra_journal::{Reader, StoredRecord};
use palyra_policy::{PastDecision, Request};
use serde::Deserialize;

use crate::context::Context;
use crate::error::CliError;

/// Records that are read at a time.
const PAGE: usize = 1_000;

const DECIDED: &str = "tool.decided";

/// The part of a record of that kind that matters here.
#[derive(Deserialize)]
struct Payload {
    input: Input,
}

#[derive(Deserialize)]
struct Input {
    decided: Decided,
}

#[derive(Deserialize)]
struct Decided {
    call_id: String,
    verdict: ToolVerdict,
    #[serde(default)]
    requests: Vec<Request>,
}

/// A decision in the journal.
pub(super) enum Found {
    /// With what was asked.
    Decision(PastDecision),
    /// Without it, or written in a form that this program does not read.
    Unreadable,
}

/// Every decision of the journal in its order.
pub(super) struct Past {
    reader: Reader,
    page: std::vec::IntoIter<StoredRecord>,
    from: u64,
    is_last: bool,
}

impl Past {
    pub(super) fn open(context: &Context) -> Result<Self, CliError> {
        let reader = palyra_journal::open_read_only(context.state_root()?)?;
        Ok(Self { reader, page: Vec::new().into_iter(), from: 1, is_last: false })
    }

    /// The next decision, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Found>, CliError> {
        loop {
            for record in self.page.by_ref() {
                self.from = record.seq + 1;
                if record.kind == DECIDED {
                    return Ok(Some(decision(&record)));
                }
            }
            if self.is_last {
                return Ok(None);
            }
            let page = self.reader.range(self.from, PAGE)?;
            self.is_last = page.len() < PAGE;
            self.page = page.into_iter();
        }
    }
}

fn decision(record: &StoredRecord) -> Found {
    match serde_json::from_slice::<Payload>(&record.payload) {
        Ok(Payload { input: Input { decided } }) if !decided.requests.is_empty() => Found::Decision(PastDecision {
            reference: reference(record.run_id, &decided.call_id),
            requests: decided.requests,
            verdict: decided.verdict,
        }),
        _ => Found::Unreadable,
    }
}

/// How a decision is named on the command line.
fn reference(run: Option<RunId>, call: &str) -> String {
    run.map_or_else(|| call.to_owned(), |run| format!("{run}/{call}"))
}

/// The decision that a person means by `RUN/CALL`: an id, its beginning or its end, or `last`; the newest if there are several.
pub(super) fn named(wanted: &str, context: &Context) -> Result<PastDecision, CliError> {
    let (run, call) = wanted.split_once('/').unwrap_or((wanted, ""));
    let mut past = Past::open(context)?;
    let mut found = None;
    while let Some(next) = past.next()? {
        let Found::Decision(decision) = next else { continue };
        let (its_run, its_call) = decision.reference.split_once('/').unwrap_or(("", &decision.reference));
        let same_run = run == "last" || its_run.eq_ignore_ascii_case(run) || is_part(its_run, run);
        if same_run && (call.is_empty() || its_call == call) {
            found = Some(decision);
        }
    }
    found.ok_or_else(|| CliError::NoMatch { kind: "decision", wanted: wanted.to_owned() })
}

fn is_part(id: &str, part: &str) -> bool {
    let (id, part) = (id.to_ascii_uppercase(), part.to_ascii_uppercase());
    part.len() >= 4 && (id.starts_with(&part) || id.ends_with(&part))
}
