//! Asking the judge of an objective.
//!
//! The judge gets the answer, what was said and done, and the text of what the planner was not shown: whoever has no tools may read it. What it says is labelled
//! by the machine, not here.

use std::pin::Pin;
use std::sync::Arc;

use palyra_common::{AuxiliaryTaskId, ErrorCategory, StableErrorEnvelope, ToStableError as _};

use super::Shared;
use super::auxiliary::{AuxiliaryDone, Task, carry_out};
use crate::auxiliary::{AuxiliaryInput, AuxiliaryOutput, ObjectiveJudgeInput};
use crate::context;
use crate::machine::{Found, Input, Judged, Machine};

/// What has to hold; the objective itself says the rest.
const CRITERION: &str = "everything that the objective asks for is there, and the evidence shows it";
/// Most bytes of all evidence together.
const MAX_EVIDENCE: usize = 160 << 10;
/// Bytes of the window that the instruction, the objective and the frames take.
const INSTRUCTION_BYTES: usize = 4_000;
/// Bytes of evidence that every model can read.
const LEAST_EVIDENCE: usize = 2_000;
/// Most texts that the planner was not shown.
const MAX_READINGS: usize = 32;

/// A verdict under way.
pub(super) struct Judging(Pin<Box<dyn Future<Output = Input> + Send>>);

impl Judging {
    pub(super) fn begin(shared: &Arc<Shared>, machine: &Machine, judgement: u32) -> Self {
        let spec = machine.spec();
        let objective = spec.objective.as_ref().map(|objective| objective.text.clone()).unwrap_or_default();
        let input = AuxiliaryInput::ObjectiveJudge(ObjectiveJudgeInput {
            objective,
            criteria: vec![CRITERION.to_owned()],
            evidence: evidence(machine),
        });
        let task = Task::of_run(spec, machine.counters().turns, input, machine.label_of_verdict());
        let task_id = task.id;
        let done = carry_out(shared, task);
        Self(Box::pin(async move {
            let found = match done.await {
                Ok(AuxiliaryDone { output: AuxiliaryOutput::ObjectiveJudge(judgement), .. }) => {
                    Found::Verdict(judgement)
                }
                Ok(_) => Found::Failed(no_verdict()),
                Err(error) => Found::Failed(error.to_stable()),
            };
            judged(judgement, task_id, found)
        }))
    }

    /// The verdict, once it is there.
    pub(super) async fn next(judging: &mut Option<Self>) -> Input {
        let verdict = match judging {
            Some(under_way) => under_way.0.as_mut().await,
            None => std::future::pending().await,
        };
        *judging = None;
        verdict
    }
}

fn judged(judgement: u32, task_id: AuxiliaryTaskId, found: Found) -> Input {
    Input::Judged(Box::new(Judged { judgement, task_id, found }))
}

fn no_verdict() -> StableErrorEnvelope {
    StableErrorEnvelope::new("internal", ErrorCategory::Internal, "the task gave no verdict")
}

/// What the judge goes by: the answer, the steps, and what was read, each shortened to its share.
fn evidence(machine: &Machine) -> Vec<String> {
    let spec = machine.spec();
    let window = (spec.model.context_tokens as usize * 3).saturating_sub(INSTRUCTION_BYTES);
    let room = window.clamp(LEAST_EVIDENCE, MAX_EVIDENCE);
    let why = "here to fit what a judge can read";
    let mut pieces = Vec::new();
    if let Some((answer, _)) = machine.awaits_verdict().and_then(|wait| wait.ending.answer.as_ref()) {
        pieces.push(format!("The final answer:\n{}", context::shortened(answer, room / 4, why)));
    }
    let steps = context::transcript_text(spec, machine.items().get(1..).unwrap_or_default());
    pieces.push(format!("What was said and done:\n{}", context::shortened(&steps, room / 2, why)));
    // The newest tell most about how things are now.
    let held = machine.readings().iter().rev().filter(|reading| reading.variable.is_some()).take(MAX_READINGS);
    let mut left = room / 4;
    for reading in held {
        let text = context::shortened(&reading.text, left / 2, why);
        let Some(rest) = left.checked_sub(text.len()) else { break };
        left = rest;
        if !text.trim().is_empty() {
            pieces.push(format!("From {}:\n{text}", reading.described()));
        }
    }
    pieces
}
