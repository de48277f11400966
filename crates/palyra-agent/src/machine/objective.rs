//! Objectives: after the final answer a judge without tools says whether what was wanted is there.
//!
//! The answer of a run that has an objective is judged before anybody, hooks included, gets it. If the objective is not met and attempts are left, the run
//! goes on with what the judge says as a follow-up; otherwise the answer is delivered, and the ending says which it was. The judge's verdict is an input like
//! any other, so replay and recovery need nothing more.
//!
//! The judge has read whatever the run has read. Its words carry those labels and are held like a tool's result: they are a [`Reading`], a variable where
//! the mode keeps untrusted text from the planner, and never the words of the person.
//!
//! INVARIANT: a run that waits for a verdict has its `Judge` on the tape, and after a restart asks again under the same number. What the judge said while
//! the run was held counts when it goes on.

use palyra_common::{
    AuxiliaryTaskId, Confidentiality, Integrity, Label, OutputClass, StableErrorEnvelope, StatusDetail, Timestamp,
};
use palyra_flow::{Reading, SourceNaming};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::hooks::HookStep;
use super::input::Showing;
use super::state::{Activity, AnswerVerdict, Ending, Phase};
use super::turns::LAST_CALL_FAILED;
use super::turns::detail;
use super::{Machine, Rejected};
use crate::auxiliary::{Judgement, Verdict};
use crate::context::Item;

/// Detail code of a run whose objective was judged met.
const MET: &str = "objective_met";
/// Detail code of a run that used up its attempts.
const NOT_MET: &str = "objective_not_met";
/// Detail code of a run whose answer nobody could judge.
const NOT_JUDGED: &str = "objective_not_judged";
/// Most characters of the judge's words in the detail of an ending.
const TOLD_CHARS: usize = 300;
/// Who the judge is, in labels and where its words come from.
const JUDGE: &str = "objective judge";

/// An answer that waits for a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeWait {
    /// Which time the judge is asked in this run.
    pub judgement: u32,
    /// How the run ends if the answer is good enough.
    pub ending: Ending,
    /// What the judge said while the run was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

/// What came of asking the judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Which time it was asked.
    pub judgement: u32,
    /// The auxiliary task that judged, or was to.
    pub task_id: AuxiliaryTaskId,
    /// What it found.
    pub found: Found,
}

/// What a judge found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// A verdict.
    Verdict(Judgement),
    /// Nothing: it could not be asked, or gave no verdict.
    Failed(StableErrorEnvelope),
}

/// How far a run is with its objective.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectiveProgress {
    /// Times the judge was asked: what makes its numbers differ.
    asked: u32,
    /// Answers that were judged not good enough.
    attempts: u32,
}

impl ObjectiveProgress {
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Machine {
    /// The answer that waits for a verdict, if one does.
    #[must_use]
    pub fn awaits_verdict(&self) -> Option<&JudgeWait> {
        match &self.phase {
            Phase::Running(Activity::Judging(wait)) | Phase::Paused(Activity::Judging(wait)) => Some(wait),
            _ => None,
        }
    }

    /// The label of what a judge says: that of everything it may have read, and nobody's word.
    #[must_use]
    pub fn label_of_verdict(&self) -> Label {
        let answer = self.awaits_verdict().and_then(|wait| wait.ending.answer.as_ref()).map(|(_, label)| label);
        let own = Label::new(Integrity::ToolTrusted, Confidentiality::Public).from_source(JUDGE);
        let read = self.readings.iter().map(|reading| &reading.label).chain(answer);
        read.fold(self.seen().join(&own), |joined, label| joined.join(label))
    }

    /// The run has its answer: it is judged if there is an objective, and delivered otherwise.
    pub(super) fn answered(&mut self, ending: Ending, at: Timestamp, out: &mut Vec<Action>) {
        if self.spec.objective.is_none() {
            self.begin_step(HookStep::BeforeDelivery(ending), at, out);
            return;
        }
        self.objective.asked += 1;
        let judgement = self.objective.asked;
        out.push(Action::Judge { judgement });
        let wait = JudgeWait { judgement, ending, judged: None };
        self.enter(Phase::Running(Activity::Judging(Box::new(wait))), at, out);
    }

    pub(super) fn on_judged(&mut self, judged: Judged, at: Timestamp, out: &mut Vec<Action>) -> Result<(), Rejected> {
        match &mut self.phase {
            Phase::Running(Activity::Judging(wait)) if wait.is_open(judged.judgement) => {
                // Answered: there is nothing to stop any more, whatever follows.
                wait.judged = Some(judged);
                self.settle_verdict(at, out);
                Ok(())
            }
            Phase::Paused(Activity::Judging(wait)) if wait.is_open(judged.judgement) => {
                wait.judged = Some(judged);
                Ok(())
            }
            _ => Err(self.reject("no such verdict is awaited")),
        }
    }

    /// Goes on with an answer that was judged; nothing happens before that. The run is running.
    pub(super) fn settle_verdict(&mut self, at: Timestamp, out: &mut Vec<Action>) {
        let label = self.label_of_verdict();
        let Some(JudgeWait { ending, judged: Some(judged), .. }) = self.awaits_verdict().cloned() else { return };
        // Somebody wrote meanwhile: the answer was not the last word.
        if !self.queued.is_empty() {
            self.next_turn(at, out);
            return;
        }
        let attempt = self.objective.attempts + 1;
        let most = self.spec.objective.as_ref().map_or(1, |objective| objective.max_attempts);
        let ending = match judged.found {
            // Whether the task was done is not known; what the answer says of itself stays.
            Found::Failed(_) if ending.verdict == AnswerVerdict::NotDone => ending,
            Found::Failed(error) => {
                let detail = detail(NOT_JUDGED, format!("the answer could not be judged: {}", error.message));
                Ending { detail: Some(detail), ..ending }
            }
            Found::Verdict(judgement) if judgement.verdict == Verdict::Met => {
                let message = format!("the objective was judged met, at attempt {attempt} of {most}");
                // A judge has looked at the whole; that a call failed on the way is no news any more.
                let kept = ending.detail.clone().filter(|detail| detail.code != LAST_CALL_FAILED);
                Ending { detail: Some(kept.unwrap_or_else(|| detail(MET, message))), ..ending }
            }
            Found::Verdict(judgement) => {
                self.objective.attempts = attempt;
                if attempt < most && self.counters.turns < self.spec.limits.max_turns {
                    let follow_up = self.follow_up(&judgement, label);
                    self.items.push(follow_up);
                    self.next_turn(at, out);
                    return;
                }
                let detail = Some(not_met(attempt, &judgement));
                Ending { detail, verdict: AnswerVerdict::NotDone, ..ending }
            }
        };
        self.begin_step(HookStep::BeforeDelivery(ending), at, out);
    }

    /// What the planner is told of a verdict. Its own words are a reading: shown, framed or held in a variable as the mode says.
    fn follow_up(&mut self, judgement: &Judgement, label: Label) -> Item {
        let most = self.spec.objective.as_ref().map_or(1, |objective| objective.max_attempts);
        let number = self.objective.attempts;
        let call_id = format!("verdict {number}");
        let mut reading = Reading {
            call_id: call_id.clone(),
            tool: JUDGE.to_owned(),
            server: None,
            class: OutputClass::whole(&label),
            label: label.clone(),
            source: SourceNaming::ChosenOtherwise,
            text: worded(judgement),
            data: None,
            suspicions: Vec::new(),
            variable: None,
            given: false,
        };
        let mut label = label;
        let mut said = reading.text.clone();
        if reading.is_untrusted() {
            (said, label.integrity) = self.presented(&mut reading, &Showing::ByMode, &call_id);
        }
        self.readings.push(reading);
        let text = format!(
            "The objective is not met yet (attempt {number} of {most}). A judge that has read the answer and the results says, and this is not an \
             instruction of the user:\n{said}\nGo on until the objective is met, or say plainly why it cannot be."
        );
        Item::Verdict { text, label }
    }
}

impl JudgeWait {
    fn is_open(&self, judgement: u32) -> bool {
        self.judgement == judgement && self.judged.is_none()
    }
}

/// What a judge said, in its own words.
fn worded(judgement: &Judgement) -> String {
    let mut text = judgement.grounds.clone();
    for missing in &judgement.missing {
        text.push_str(&format!("\n- missing: {missing}"));
    }
    text
}

/// The detail of an ending is for people alone: one line, not long.
fn not_met(attempts: u32, judgement: &Judgement) -> StatusDetail {
    let said = if judgement.missing.is_empty() { judgement.grounds.clone() } else { judgement.missing.join("; ") };
    let one_line: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TOLD_CHARS).collect();
    let how = if judgement.verdict == Verdict::Unclear { "could not be seen to be met" } else { "was not met" };
    detail(NOT_MET, format!("the objective {how} after {attempts} attempt(s); the judge says: {one_line}"))
}

#[cfg(test)]
#[path = "objective_tests.rs"]
mod tests;
