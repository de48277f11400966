//! The policies that ship: their cases hold, the linter has nothing to say, and they decide what the first decider decided.

use palyra_common::ToolVerdict;
use palyra_policy::{
    ActionKind, Asking, EffectScope, KnownEntities, PolicySet, Resource, SHIPPED_POLICIES, lint, run_tests,
};

use crate::support::{call, facts, path};

#[test]
fn every_shipped_case_holds() {
    let report = run_tests(&PolicySet::shipped().unwrap()).unwrap();
    assert!(report.cases >= 80, "only {} cases ran", report.cases);
    assert!(report.passed(), "{:#?}", report.failures);
}

#[test]
fn the_linter_has_nothing_to_say() {
    let findings = lint(&PolicySet::shipped().unwrap(), &KnownEntities::new()).unwrap();
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Pure calls, reads and writes inside the workspace are permitted, listed tools are asked about, everything else is denied.
#[test]
fn scopes_are_decided_as_before_there_were_policies() {
    let set = PolicySet::shipped().unwrap();
    let table = [
        (ActionKind::Compute, Resource::Tool, EffectScope::Pure, ToolVerdict::Permit, ToolVerdict::NeedsApproval),
        (ActionKind::Read, path("a"), EffectScope::WorkspaceRead, ToolVerdict::Permit, ToolVerdict::NeedsApproval),
        (ActionKind::Read, Resource::Tool, EffectScope::WorkspaceRead, ToolVerdict::Permit, ToolVerdict::NeedsApproval),
        (ActionKind::Write, path("a"), EffectScope::WorkspaceWrite, ToolVerdict::Permit, ToolVerdict::NeedsApproval),
        (ActionKind::Execute, Resource::Tool, EffectScope::External, ToolVerdict::Deny, ToolVerdict::Deny),
    ];
    for (action, resource, scope, unlisted, listed) in table {
        let mut request = call(action, resource, scope);
        assert_eq!(set.decide(&request).verdict, unlisted, "{action}");
        facts(&mut request).asking = Asking::AskBefore;
        assert_eq!(set.decide(&request).verdict, listed, "{action}, listed");
    }
}

/// Signals are heuristics, so what ships stands without them: with all of them, with none, and whatever they say.
#[test]
fn no_shipped_policy_relies_on_signals() {
    for file in SHIPPED_POLICIES {
        assert!(!file.text.contains("signals"), "{} looks at signals", file.name);
    }
}

#[test]
fn no_question_needs_a_glossary() {
    let jargon = ["mandate", "sink", "provenance", "envelope", "label", "integrity", "clearance", "cleared", "declare"];
    let mut looked_at = 0;
    for file in SHIPPED_POLICIES {
        for line in file.text.lines().filter(|line| line.starts_with("@reason_person(")) {
            // Names of what is filled in are never shown.
            let shown: String =
                line.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
            let found: Vec<_> = jargon.iter().filter(|word| shown.to_lowercase().contains(**word)).collect();
            assert!(found.is_empty(), "{}: {line} has {found:?}", file.name);
            looked_at += 1;
        }
    }
    assert!(looked_at > 20, "{looked_at}");
}
