//! Which answers an event allows, and what several answers come to.
//!
//! | event | allowed beside `continue` and `annotate` |
//! | --- | --- |
//! | `run:before_run`, `run:before_tool` | `request_approval`, `block`, `fail_run` |
//! | `run:after_tool` | `fail_run` |
//! | `run:before_delivery` | `transform_preview`, `request_approval`, `block`, `fail_run` |
//! | `run:after_run`, events of the gateway and of skills | nothing |
//!
//! An answer that is not allowed counts as the hook's failure. A failure before an effect refuses the step unless the binding says otherwise; after the
//! fact it is recorded and nothing else. INVARIANT: hooks only ever tighten. No answer, and no failure, permits anything.

use palyra_common::{HookDecision, HookEvent, RunLifecycleHookPhase};

use super::binding::HookFailureMode;
use super::runner::{HookAnswer, HookFailure, HookResult, HookSaid};

/// Longest reason or note that is kept, in characters. A hook that floods the journal with words would otherwise be a way to fill the disk.
const MAX_REASON: usize = 2_000;
/// Longest text that may be proposed, in bytes: as long as an inline payload of the journal.
const MAX_TEXT: usize = 256 << 10;

/// Whether a hook of this event may answer so.
#[must_use]
pub const fn allows(event: HookEvent, decision: HookDecision) -> bool {
    use HookDecision::{Annotate, Continue, FailRun, TransformPreview};
    match event {
        HookEvent::RunBeforeRun | HookEvent::RunBeforeTool => !matches!(decision, TransformPreview),
        HookEvent::RunBeforeDelivery => true,
        HookEvent::RunAfterTool => matches!(decision, Continue | Annotate | FailRun),
        HookEvent::RunAfterRun
        | HookEvent::GatewayStartup
        | HookEvent::SkillEnabled
        | HookEvent::SkillDisabled
        | HookEvent::SkillQuarantined => matches!(decision, Continue | Annotate),
    }
}

/// An answer as it counts: shortened, and a failure if the event does not allow it.
pub(crate) fn checked(event: HookEvent, mut answer: HookAnswer) -> HookSaid {
    if !allows(event, answer.decision) {
        return HookSaid::Failed(HookFailure::OutOfPhase(answer.decision));
    }
    answer.reason = plain(&answer.reason);
    if answer.decision != HookDecision::TransformPreview {
        answer.text = None;
        return HookSaid::Answered(answer);
    }
    match &answer.text {
        None => HookSaid::Failed(HookFailure::Failed("it proposed no text".to_owned())),
        Some(text) if text.trim().is_empty() => {
            HookSaid::Failed(HookFailure::Failed("it proposed an empty text".to_owned()))
        }
        Some(text) if text.len() > MAX_TEXT => {
            HookSaid::Failed(HookFailure::Failed("it proposed a text of more than 256 KiB".to_owned()))
        }
        Some(_) => HookSaid::Answered(answer),
    }
}

/// Words of a hook on one line that a terminal can show.
pub(crate) fn plain(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().take(MAX_REASON).collect()
}

/// What several answers come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    /// The strongest answer.
    pub(crate) decision: HookDecision,
    /// Who gave it.
    pub(crate) hooks: Vec<String>,
    /// Their reasons, each with the hook that gave it.
    pub(crate) reasons: Vec<String>,
    /// The last text that was proposed.
    pub(crate) text: Option<String>,
    /// Who proposed one; each saw what those before it proposed.
    pub(crate) proposers: Vec<String>,
}

impl Ruling {
    /// The hooks that decided, in words.
    pub(crate) fn deciders(&self) -> String {
        let names: Vec<String> = self.hooks.iter().map(|hook| format!("`{hook}`")).collect();
        match names.as_slice() {
            [one] => format!("the hook {one}"),
            several => format!("the hooks {}", several.join(", ")),
        }
    }
}

/// Weighs what hooks said. `asked` are all that should have been: one that is missing counts as failed, unless the run ends anyway.
pub(crate) fn judge(phase: RunLifecycleHookPhase, asked: &[String], results: &[HookResult]) -> Ruling {
    let event = event_of(phase);
    let mut votes: Vec<(HookDecision, String, String)> = Vec::new();
    let (mut text, mut proposers) = (None, Vec::new());
    for hook in asked {
        let Some(result) = results.iter().find(|result| result.hook == *hook) else {
            votes.push((failed(event, HookFailureMode::FailClosed), hook.clone(), HookFailure::Unanswered.to_string()));
            continue;
        };
        let said = match &result.said {
            HookSaid::Answered(answer) => checked(event, answer.clone()),
            failed @ HookSaid::Failed(_) => failed.clone(),
        };
        match said {
            HookSaid::Answered(answer) => {
                if let Some(proposed) = answer.text {
                    text = Some(proposed);
                    proposers.push(hook.clone());
                }
                votes.push((answer.decision, hook.clone(), answer.reason));
            }
            HookSaid::Failed(failure) => {
                votes.push((failed(event, result.on_failure), hook.clone(), plain(&failure.to_string())));
            }
        }
    }
    // Nobody is asked after a hook that ends the run; whoever is missing then is outvoted anyway.
    let decision = HookDecision::strongest(votes.iter().map(|(decision, ..)| *decision));
    votes.retain(|(vote, ..)| *vote == decision);
    let in_words = |hook: &String, reason: &String| match reason.as_str() {
        "" => format!("hook `{hook}`"),
        reason => format!("hook `{hook}`: {reason}"),
    };
    Ruling {
        decision,
        reasons: votes.iter().map(|(_, hook, reason)| in_words(hook, reason)).collect(),
        hooks: votes.into_iter().map(|(_, hook, _)| hook).collect(),
        text,
        proposers,
    }
}

const fn failed(event: HookEvent, mode: HookFailureMode) -> HookDecision {
    match mode {
        HookFailureMode::FailClosed if allows(event, HookDecision::Block) => HookDecision::Block,
        HookFailureMode::FailClosed | HookFailureMode::FailOpen => HookDecision::Continue,
    }
}

/// The event of a phase of a run.
pub(crate) const fn event_of(phase: RunLifecycleHookPhase) -> HookEvent {
    match phase {
        RunLifecycleHookPhase::BeforeRun => HookEvent::RunBeforeRun,
        RunLifecycleHookPhase::BeforeTool => HookEvent::RunBeforeTool,
        RunLifecycleHookPhase::AfterTool => HookEvent::RunAfterTool,
        RunLifecycleHookPhase::BeforeDelivery => HookEvent::RunBeforeDelivery,
        RunLifecycleHookPhase::AfterRun => HookEvent::RunAfterRun,
    }
}
