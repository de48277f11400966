//! The change set: what a run changed that takes effect later, outside of any sandbox. A person accepts it once, when the run has its answer; what nobody accepts is taken back.
//!
//! Which changes are such ones, their results say ([`LaterChange`], an input); which of them a person has to be asked about, is decided here: it depends on what the run had seen when it
//! made them. A refusal takes back exactly these files, and then the answer is delivered. A run that ends without an answer has nobody accept them, so they are taken back as well.
//!
//! INVARIANT: a run enters a terminal phase only with an empty change set, except where what was to be taken back could not be; the ending says so.

use std::collections::BTreeMap;

use palyra_common::{
    ApprovalDecision, Digest, Integrity, Risk, RunLifecyclePhase, StableErrorEnvelope, StatusDetail, Timestamp,
};
use palyra_tools::{FileChange, LaterChange, RemainingFile, WrittenBy, belongs};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::action::{Action, Question};
use super::displayed::Displayed;
use super::hook_questions::HookQuestion;
use super::hooks::HookStep;
use super::input::CallResult;
use super::state::{Activity, AnswerVerdict, Call, Ending, Phase};
use super::turns::{TASK_NOT_DONE, detail};
use super::{Machine, Rejected};
use crate::canonical::canonical_json;
use crate::spec::SAYS_WHAT_BECAME;

/// What the question is about, where a call's id would stand.
const CALL: &str = "changes";
/// What the question is about, where a tool's name would stand.
pub(crate) const TOOL: &str = "palyra.changes";
/// Detail code of a run whose changes were not accepted.
const TAKEN_BACK: &str = "changes_taken_back";
/// Detail code of a run whose changes were not accepted and could not all be taken back.
const NOT_TAKEN_BACK: &str = "changes_not_taken_back";
/// Most files that are named in one line.
const NAMED: usize = 5;
/// Longest name in such a line: one that fills the line would hide those behind it.
const NAME: usize = 48;

/// A file of the change set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldFile {
    /// What it means for later; the differences of all its changes, one after the other.
    pub change: LaterChange,
    /// What it was before the first of them, and what it is after the last.
    pub net: Box<FileChange>,
}

/// The change set of a run, by path.
pub(super) type ChangeSet = BTreeMap<String, HeldFile>;

/// An ending that waits until the change set is taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakingBack {
    /// Which time in this run: what makes its effects differ.
    pub number: u32,
    /// How the run ends then.
    pub ending: Ending,
    /// The terminal phase that it ends in.
    pub phase: RunLifecyclePhase,
}

/// What came of taking the change set back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TookBack {
    /// Which time.
    pub number: u32,
    /// Files that are not as they were before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaining: Vec<RemainingFile>,
    /// Why nothing could be taken back, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
}

impl Machine {
    /// Files of the change set, in order.
    pub fn change_set(&self) -> impl Iterator<Item = &str> {
        self.changes.keys().map(String::as_str)
    }

    /// Takes in what a finished call changed. Called before what the call gave is taken in: what it gave did not make it.
    pub(super) fn hold_changes(&mut self, call: &Call, result: &CallResult) {
        if self.changes.is_empty() && result.later.is_empty() {
            return;
        }
        let tainted = self.label_of_work(&call.call_id).integrity == Integrity::Untrusted;
        let words: Vec<String> = self.words().map(str::to_owned).collect();
        for change in &result.changes {
            let later = result.later.iter().find(|later| later.path == change.path);
            if let Some(held) = self.changes.get_mut(&change.path) {
                held.net.after = change.after;
                held.net.entry.after = change.entry.after;
                if let Some(later) = later {
                    append(&mut held.change, later);
                }
                if is_as_before(&held.net) {
                    self.changes.remove(&change.path);
                }
                continue;
            }
            let Some(later) = later else { continue };
            let by = if change.attribution.is_written() { WrittenBy::FileTool } else { WrittenBy::Program };
            if belongs(later, tainted, by, words.iter().map(String::as_str)) {
                let held = HeldFile { change: later.clone(), net: Box::new(change.clone()) };
                self.changes.insert(change.path.clone(), held);
            }
        }
    }

    /// What the user and the operator said.
    fn words(&self) -> impl Iterator<Item = &str> {
        let prompt = self.spec.from.is_none().then_some(self.spec.prompt.as_str());
        let earlier = self.spec.history.iter().filter(|exchange| exchange.prompt_label.is_none());
        prompt
            .into_iter()
            .chain(self.spec.instructions())
            .chain(earlier.map(|exchange| exchange.prompt.as_str()))
            .chain(self.trusted.iter().map(String::as_str))
    }

    /// Asks a person to accept the change set before the answer is delivered; `false` if there is nothing to ask.
    pub(super) fn ask_about_changes(&mut self, ending: &Ending, at: Timestamp, out: &mut Vec<Action>) -> bool {
        if self.changes.is_empty() {
            return false;
        }
        let files: Vec<_> = self
            .changes
            .values()
            .map(|held| {
                let change = &held.change;
                json!({
                    "path": change.path,
                    "executed_as": change.executed_as,
                    "effect": change.by.effect(),
                    "difference": change.difference,
                    "not_shown": change.not_shown,
                })
            })
            .collect();
        let arguments = json!({ "files": files });
        // A difference may be shown in part; the digest of what a file holds is not.
        let contents: String =
            self.changes.values().map(|held| format!("{}={:?}\n", held.net.path, held.net.after)).collect();
        let canonical = canonical_json(&arguments);
        let older = Digest::of_parts(&[TOOL.as_bytes(), canonical.as_bytes(), contents.as_bytes()]);
        let summary = format!(
            "{}keep what this run left in {}; refusing {}",
            self.warning(),
            self.named_changes(),
            self.what_refusing_does()
        );
        let displayed = Displayed {
            reasons: vec![format!("it takes effect later, outside the sandbox: {}", self.effects())],
            resource: contents,
            ..Displayed::step(Question::AcceptChanges, Risk::High, TOOL, arguments, summary)
        };
        let (approval_id, expires_at) = self.put_question(CALL, displayed, older, at, out);
        let step = HookStep::BeforeDelivery(ending.clone());
        let question =
            HookQuestion { approval_id, question: Question::AcceptChanges, expires_at, step, proposed: None };
        self.enter(Phase::AskingForHook(Box::new(question)), at, out);
        true
    }

    /// What of the change set the question does not show, for the beginning of it: nobody can agree to what they did not see without knowing that.
    fn warning(&self) -> String {
        let hidden = self.changes.values().map(|held| &held.change);
        let hidden: Vec<(&LaterChange, &String)> =
            hidden.filter_map(|change| Some((change, change.not_shown.as_ref()?))).collect();
        let Some((first, why)) = hidden.first() else { return String::new() };
        let others = match hidden.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "not all of this is shown, so read {} ({}){others} before you agree: ",
            named(&first.path),
            shortened(why)
        )
    }

    /// `a`, `b` and 3 more.
    fn named_changes(&self) -> String {
        let named: Vec<String> = self.changes.keys().take(NAMED).map(|path| named(path)).collect();
        let more = self.changes.len().saturating_sub(NAMED);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{rest}", named.join(", "))
    }

    /// What refusing means for these files: one that was not there before is removed, any other is restored.
    fn what_refusing_does(&self) -> &'static str {
        if self.spec.machine_version < SAYS_WHAT_BECAME {
            return "restores them";
        }
        let new = self.changes.values().filter(|held| held.net.before.is_none()).count();
        match (new, self.changes.len() - new) {
            (1, 0) => "removes it",
            (_, 0) => "removes them",
            (0, 1) => "restores it",
            (0, _) => "restores them",
            (_, _) => "removes the new ones and restores the others",
        }
    }

    /// The same, once it was done.
    fn what_was_done(&self) -> &'static str {
        if self.spec.machine_version < SAYS_WHAT_BECAME {
            return "these files were restored";
        }
        let new = self.changes.values().filter(|held| held.net.before.is_none()).count();
        match (new, self.changes.len() - new) {
            (1, 0) => "it was removed",
            (_, 0) => "they were removed",
            (0, 1) => "it was restored",
            (0, _) => "they were restored",
            (_, _) => "the new ones were removed and the others restored",
        }
    }

    fn effects(&self) -> String {
        let mut effects: Vec<&str> = self.changes.values().map(|held| held.change.by.effect()).collect();
        effects.sort_unstable();
        effects.dedup();
        effects.join("; ")
    }

    /// What a person said about the change set, and how the run ends then.
    pub(super) fn on_changes_decided(
        &mut self,
        decision: ApprovalDecision,
        reason: Option<&str>,
        mut ending: Ending,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if decision == ApprovalDecision::Allow {
            self.changes.clear();
        } else {
            let (files, done) = (self.named_changes(), self.what_was_done());
            let message = match (decision, reason) {
                (ApprovalDecision::Deny | ApprovalDecision::Allow, None) => {
                    format!("a person refused what the run left in {files}; {done}")
                }
                (ApprovalDecision::Deny | ApprovalDecision::Allow, Some(reason)) => {
                    format!("what the run left in {files} was refused ({reason}); {done}")
                }
                (ApprovalDecision::Timeout | ApprovalDecision::Error, _) => {
                    format!("nobody accepted in time what the run left in {files}; {done}")
                }
            };
            let knows = self.spec.model.provider == palyra_models::OFFLINE;
            ending.detail = Some(if knows && self.spec.machine_version >= SAYS_WHAT_BECAME {
                // Its answer states what its steps did, and one of them no longer holds. What the answer of a language model is still good for is for
                // the person to judge.
                ending.verdict = AnswerVerdict::NotDone;
                detail(TASK_NOT_DONE, message)
            } else {
                detail(TAKEN_BACK, message)
            });
        }
        let phase = ending.delivered_in();
        self.enter_terminal(phase, ending, at, out);
    }

    /// Begins to take the change set back before the run ends; `false` if there is nothing to take back.
    pub(super) fn takes_back_first(
        &mut self,
        phase: RunLifecyclePhase,
        ending: &Ending,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> bool {
        if self.changes.is_empty() {
            return false;
        }
        self.take_backs += 1;
        let taking_back = TakingBack { number: self.take_backs, ending: ending.clone(), phase };
        self.enter(Phase::Running(Activity::TakingBack(Box::new(taking_back))), at, out);
        out.push(self.take_back());
        true
    }

    /// The action that takes the change set back; the same whenever it is begun again.
    pub(super) fn take_back(&self) -> Action {
        Action::TakeBack { number: self.take_backs, paths: self.changes.keys().cloned().collect() }
    }

    pub(super) fn on_took_back(
        &mut self,
        took_back: &TookBack,
        at: Timestamp,
        out: &mut Vec<Action>,
    ) -> Result<(), Rejected> {
        let Phase::Running(Activity::TakingBack(taking_back)) = &self.phase else {
            return Err(self.reject("nothing is being undone"));
        };
        if taking_back.number != took_back.number {
            return Err(self.reject("nothing is being undone"));
        }
        let TakingBack { mut ending, phase, .. } = (**taking_back).clone();
        let left: Vec<String> = match &took_back.error {
            Some(_) => self.changes.keys().cloned().collect(),
            None => {
                let remaining = took_back.remaining.iter().map(|file| file.path.clone());
                remaining.filter(|path| self.changes.contains_key(path)).collect()
            }
        };
        if !left.is_empty() {
            ending.detail = Some(not_taken_back(&left, took_back.error.as_ref(), ending.detail));
        }
        self.changes.clear();
        self.enter_terminal(phase, ending, at, out);
        Ok(())
    }
}

/// Puts what a call changed behind what calls before it changed in the same file.
fn append(change: &mut LaterChange, later: &LaterChange) {
    change.difference.push_str(&later.difference);
    if let Some(why) = &later.not_shown {
        let earlier = change.not_shown.take().map(|earlier| format!("{earlier}; ")).unwrap_or_default();
        change.not_shown = Some(format!("{earlier}{why}"));
    }
}

/// A path in a line.
fn named(path: &str) -> String {
    format!("`{}`", shortened(path))
}

/// Both ends of a text that is too long for a line.
fn shortened(text: &str) -> String {
    let letters = text.chars().count();
    if letters <= NAME {
        return text.to_owned();
    }
    let head: String = text.chars().take(NAME / 2).collect();
    let tail: String = text.chars().skip(letters - NAME / 2).collect();
    format!("{head}…{tail}")
}

fn is_as_before(net: &FileChange) -> bool {
    (net.before, net.before.map(|_| net.entry.before)) == (net.after, net.after.map(|_| net.entry.after))
}

/// What has to be said about files that take effect later, that nobody accepted, and that are still there.
fn not_taken_back(left: &[String], error: Option<&StableErrorEnvelope>, earlier: Option<StatusDetail>) -> StatusDetail {
    let files: Vec<String> = left.iter().map(|path| format!("`{path}`")).collect();
    let why = error.map(|error| format!(" ({})", error.message)).unwrap_or_default();
    let before = earlier.map(|earlier| format!("; {}", earlier.message)).unwrap_or_default();
    let message = format!("nobody accepted {}, and it could not be restored{why}{before}", files.join(", "));
    detail(NOT_TAKEN_BACK, message)
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
