//! Where scans happen, and what each kind of finding asks for there.
//!
//! The whole policy of this crate is [`action_for`], one table. Injection signals never do more than ask a person: a
//! heuristic that blocked would be the only wall, and an attacker would word around it.

use palyra_common::{SafetyAction, runtime_contract_enum};
use serde::Serialize;

use crate::findings::{Confidence, Coverage, FindingClass, Scan};
use crate::injection::InjectionAssessment;

runtime_contract_enum! {
    /// The points of a run at which text is scanned.
    pub enum SafetyPhase("safety_phase") {
        /// Before text enters a model's prompt.
        PrePrompt = "pre_prompt",
        /// Before a tool runs with arguments a model chose.
        PreExecution = "pre_execution",
        /// Before text leaves Palyra: channels, exports, logs, answers to clients.
        Export = "export",
    }
}

/// What a finding of this class and confidence asks for in this phase.
#[must_use]
pub const fn action_for(phase: SafetyPhase, class: FindingClass, confidence: Confidence) -> SafetyAction {
    use {Confidence as C, FindingClass as F, SafetyAction as A, SafetyPhase as P};
    match (phase, class, confidence) {
        // The egress proxy puts secrets in by itself, so a vault value in arguments or in output is never legitimate.
        (P::PreExecution | P::Export, F::Vault, _) => A::Block,
        (P::PrePrompt, F::Vault, _) => A::Redact,
        (_, F::Secret, C::Low) => A::Annotate,
        // Redacting an argument would run something nobody asked for.
        (P::PreExecution, F::Secret, C::Medium | C::High) => A::RequireApproval,
        (P::PrePrompt | P::Export, F::Secret, C::Medium | C::High) => A::Redact,
        (P::PreExecution, F::Injection, C::High) => A::RequireApproval,
        (_, F::Injection, _) => A::Annotate,
    }
}

/// What an incomplete scan asks for: nothing may leave or run unseen without a person.
const fn action_for_coverage(phase: SafetyPhase, coverage: Coverage) -> SafetyAction {
    match (phase, coverage) {
        (_, Coverage::Complete) => SafetyAction::Allow,
        (SafetyPhase::PrePrompt, Coverage::Partial) => SafetyAction::Annotate,
        (SafetyPhase::PreExecution | SafetyPhase::Export, Coverage::Partial) => SafetyAction::RequireApproval,
    }
}

/// The strongest action any finding asks for, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What to do.
    pub action: SafetyAction,
    /// One sentence per reason, without any secret.
    pub reasons: Vec<String>,
}

/// Decides on a text from its scan for secrets.
#[must_use]
pub fn decide(phase: SafetyPhase, scan: &Scan) -> Verdict {
    let mut action = action_for_coverage(phase, scan.coverage);
    let mut reasons = Vec::new();
    if scan.coverage == Coverage::Partial {
        reasons.push("the text has too many layers of encoding to decode".to_owned());
    }
    for finding in &scan.findings {
        action = action.max(action_for(phase, finding.kind.class(), finding.confidence));
        reasons.push(finding.to_string());
    }
    Verdict { action, reasons }
}

/// Decides on a text from its injection signals.
#[must_use]
pub fn decide_injection(phase: SafetyPhase, assessment: &InjectionAssessment) -> Verdict {
    let action = assessment
        .confidence()
        .map_or(SafetyAction::Allow, |confidence| action_for(phase, FindingClass::Injection, confidence));
    Verdict { action, reasons: assessment.signals.iter().map(ToString::to_string).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_monotone_and_injection_never_blocks() {
        for phase in SafetyPhase::ALL.iter().copied() {
            for class in FindingClass::ALL.iter().copied() {
                let actions: Vec<_> = Confidence::ALL.iter().map(|c| action_for(phase, class, *c)).collect();
                assert!(actions.is_sorted(), "{phase} {class}: {actions:?}");
                assert!(actions.iter().all(|action| *action > SafetyAction::Allow), "{phase} {class} is ignored");
            }
            assert!(action_for(phase, FindingClass::Injection, Confidence::High) < SafetyAction::Block);
            assert!(action_for(phase, FindingClass::Vault, Confidence::High) >= SafetyAction::Redact);
        }
    }

    #[test]
    fn an_incomplete_scan_never_passes_in_silence() {
        let scan = Scan { findings: Vec::new(), coverage: Coverage::Partial };
        for (phase, action) in [
            (SafetyPhase::PrePrompt, SafetyAction::Annotate),
            (SafetyPhase::PreExecution, SafetyAction::RequireApproval),
            (SafetyPhase::Export, SafetyAction::RequireApproval),
        ] {
            assert_eq!(decide(phase, &scan).action, action);
        }
    }
}
