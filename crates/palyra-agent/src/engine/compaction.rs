//! Summarising the older part of a context.
//!
//! An auxiliary task writes the summary, under headings that keep what a run cannot do without. If it cannot, the beginnings of the lines are kept instead.
//! Either way the record says how it was made, from what and to how much; the items themselves stay on the tape.

use std::pin::Pin;
use std::sync::Arc;

use palyra_common::{AuxiliaryTaskId, AuxiliaryTaskKind, Label, ToStableError as _};

use super::Shared;
use super::auxiliary::{AuxiliaryDone, Task, carry_out};
use crate::auxiliary::{AuxiliaryInput, AuxiliaryOutput, Summary, SummaryInput};
use crate::context;
use crate::error::AgentError;
use crate::machine::{CompactionAccount, Input, Machine};

/// Characters of each line that an extractive summary keeps.
const EXTRACT_CHARS: usize = 160;
/// Most characters of a summary that no model wrote: as many as the contract allows one that a model wrote.
const SUMMARY_CHARS: usize = AuxiliaryTaskKind::Summary.contract().budget_tokens as usize * 4;
/// Share of the model's window, in quarters, that the text to be summarised may take.
const WINDOW_QUARTERS: usize = 3;
/// Bytes of the window that the instruction and the frame take.
const INSTRUCTION_BYTES: usize = 1_200;

/// What a summary of an agent's work is to keep.
pub(super) const SECTIONS: [&str; 5] = ["Decisions:", "Facts found:", "Files and names:", "Open tasks:", "Errors:"];

/// A summary under way.
pub(super) struct Compaction(Pin<Box<dyn Future<Output = Input> + Send>>);

impl Compaction {
    pub(super) fn begin(shared: &Arc<Shared>, machine: &Machine, replaces: u32) -> Self {
        let spec = machine.spec();
        let end = (1 + replaces as usize).min(machine.items().len());
        let replaced = machine.items().get(1..end).unwrap_or_default();
        let text = context::transcript_text(spec, replaced);
        let label = replaced.iter().fold(Label::system(), |joined, item| joined.join(&item.label()));
        let input = AuxiliaryInput::Summary(SummaryInput {
            text: fitted(&text, spec.model.context_tokens as usize),
            sections: SECTIONS.map(str::to_owned).to_vec(),
        });
        let task = Task::of_run(spec, machine.counters().turns, input, label);
        let task_id = task.id;
        let done = carry_out(shared, task);
        let sizes = Sizes {
            before: context::tokens(spec, machine.items()),
            replaced: replaced.iter().map(|item| context::tokens_of(spec, item)).sum(),
        };
        Self(Box::pin(async move {
            let (summary, method, why) = match done.await {
                Ok(AuxiliaryDone { output: AuxiliaryOutput::Summary(Summary { summary }), .. }) => {
                    (summary, "model", None)
                }
                Ok(_) => (extractive(&text), "extractive", Some("the task gave no summary".to_owned())),
                Err(error) => (extractive(&text), "extractive", Some(told(&error))),
            };
            let account = sizes.account(&summary, task_id, why);
            Input::Compacted { replaces, summary, method: method.to_owned(), account: Some(account) }
        }))
    }

    /// The summary, once it is there.
    pub(super) async fn next(compaction: &mut Option<Self>) -> Input {
        let summary = match compaction {
            Some(under_way) => under_way.0.as_mut().await,
            None => std::future::pending().await,
        };
        *compaction = None;
        summary
    }
}

/// Tokens before a summary.
struct Sizes {
    before: u32,
    replaced: u32,
}

impl Sizes {
    fn account(&self, summary: &str, task_id: AuxiliaryTaskId, why: Option<String>) -> CompactionAccount {
        let kept = self.before.saturating_sub(self.replaced);
        CompactionAccount {
            tokens_before: self.before,
            tokens_after: kept.saturating_add(context::summary_tokens(summary)),
            task_id,
            why,
        }
    }
}

fn told(error: &AgentError) -> String {
    let error = error.to_stable();
    format!("{}: {}", error.code, error.message)
}

/// Head and tail of a text that the model could not read at once.
pub(super) fn fitted(text: &str, window: usize) -> String {
    let limit = (window * WINDOW_QUARTERS).saturating_sub(INSTRUCTION_BYTES).max(INSTRUCTION_BYTES);
    context::shortened(text, limit, "here to fit the model's window")
}

fn extractive(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.chars().take(EXTRACT_CHARS).collect())
        .collect();
    // No summary may be longer than its contract allows, whoever wrote it.
    lines.join("\n").chars().take(SUMMARY_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_model_summarised_is_shortened_line_by_line() {
        let text = format!("first {}\n\n  \nsecond\n{}", "x".repeat(500), "y\n".repeat(10_000));
        let summary = extractive(&text);
        assert!(summary.starts_with("first x") && summary.contains("\nsecond\ny\n"), "{summary}");
        assert_eq!(summary.chars().count(), SUMMARY_CHARS);
        assert_eq!(summary.lines().next().unwrap().chars().count(), EXTRACT_CHARS);
    }

    #[test]
    fn a_text_that_does_not_fit_the_window_keeps_both_ends_and_says_so() {
        let text = format!("begin {} end", "ä".repeat(10_000));
        let short = fitted(&text, 2_000);
        assert!(short.len() < 2_000 * WINDOW_QUARTERS && short.starts_with("begin") && short.ends_with(" end"));
        assert!(short.contains("bytes left out here"), "{short}");
        assert_eq!(fitted("short", 2_000), "short");
    }

    #[test]
    fn sizes_are_those_of_the_whole_context() {
        let sizes = Sizes { before: 1_000, replaced: 900 };
        let account = sizes.account(&"x".repeat(400), AuxiliaryTaskId::from_u128(1), None);
        assert_eq!(account.tokens_before, 1_000);
        assert!((200..300).contains(&account.tokens_after), "{account:?}");
    }
}
