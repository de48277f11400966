//! An answer holds for what was displayed, all of it, and answers of older runs for what they were bound to then.

use palyra_common::{Confidentiality, Integrity, Provenance, SinkKind, ToolVerdict};
use palyra_policy::Pattern;
use palyra_tools::{Concurrency, Repeatability};
use proptest::prelude::{Just, Strategy, any, prop, proptest};
use proptest::{prop_assert_eq, prop_oneof};
use serde_json::json;

use super::super::tests::{AT, decided, spec, turn};
use super::super::{Input, Machine};
use super::*;

/// A text out of so few that two are often equal, some of them with what could blur the borders between fields.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(""), Just("a"), Just("b"), Just("a,b"), Just("\"a\",\"b\"")].prop_map(str::to_owned)
}

fn label() -> impl Strategy<Value = Label> {
    let names = || prop::collection::btree_set(text(), 0..2);
    (any::<bool>(), any::<bool>(), prop::option::of(names()), names(), any::<bool>()).prop_map(
        |(trusted, public, readers, sources, has_origin)| Label {
            integrity: if trusted { Integrity::User } else { Integrity::Untrusted },
            confidentiality: if public { Confidentiality::Public } else { Confidentiality::Private },
            readers,
            sources,
            origins: has_origin.then_some(DataOrigin::Workspace).into_iter().collect(),
        },
    )
}

fn evidence() -> impl Strategy<Value = ApprovalEvidence> {
    (text(), text(), prop::option::of(text()), prop::option::of(text()), any::<bool>()).prop_map(
        |(argument, value, source, sentence, invented)| ApprovalEvidence {
            argument,
            sink: if invented { SinkKind::Destination } else { SinkKind::Command },
            value,
            provenance: if invented { Provenance::Invented } else { Provenance::Untrusted },
            source,
            sentence,
        },
    )
}

fn offer() -> impl Strategy<Value = Offer> {
    let names = || prop::collection::btree_set(text(), 0..2);
    let places = || prop::collection::btree_set(destination(), 0..2);
    let which = (text(), prop::option::of(text()), prop::option::of(text()), prop::option::of(destination()));
    (which, names(), names(), names(), places()).prop_map(
        |((tool, workspace, method, destination), empty, content, answers, cleared)| Offer {
            pattern: Pattern {
                tool,
                arguments: std::collections::BTreeMap::new(),
                empty,
                content,
                content_up_to: Confidentiality::Private,
                workspace,
                method,
                destination,
                cleared,
                answers,
            },
            observed: Vec::new(),
        },
    )
}

fn destination() -> impl Strategy<Value = DataOrigin> {
    prop_oneof![text().prop_map(DataOrigin::Server), Just(DataOrigin::Workspace)]
}

fn displayed() -> impl Strategy<Value = Displayed> {
    let arguments = prop_oneof![
        text().prop_map(|text| json!({ "stdin": text })),
        text().prop_map(|text| json!({ "cwd": text, "env": { "A": text } })),
        Just(Value::Null),
    ];
    let head = (0..ApprovalSubject::ALL.len(), 0..Risk::ALL.len(), 0..Question::ALL.len(), text(), arguments, text());
    let tail = (text(), prop::option::of(destination()), any::<bool>(), label());
    let shown =
        (prop::collection::vec(text(), 0..3), prop::collection::vec(evidence(), 0..2), prop::option::of(offer()));
    (head, shown, tail).prop_map(
        |(
            (subject, risk, question, tool, arguments, summary),
            (reasons, evidence, offer),
            (resource, destination, contained, seen),
        )| Displayed {
            subject: ApprovalSubject::ALL[subject],
            risk: Risk::ALL[risk],
            question: Question::ALL[question],
            tool,
            arguments,
            summary,
            reasons,
            evidence,
            offer,
            resource,
            destination,
            containment: if contained { Containment::Contained } else { Containment::Reaching },
            seen,
        },
    )
}

/// `base` with one field of `other` in the place of its own, for each field.
fn exchanged(base: &Displayed, other: Displayed) -> Vec<Displayed> {
    let Displayed {
        subject,
        risk,
        question,
        tool,
        arguments,
        summary,
        reasons,
        evidence,
        offer,
        resource,
        destination,
        containment,
        seen,
    } = other;
    let base = || base.clone();
    vec![
        Displayed { subject, ..base() },
        Displayed { risk, ..base() },
        Displayed { question, ..base() },
        Displayed { tool, ..base() },
        Displayed { arguments, ..base() },
        Displayed { summary, ..base() },
        Displayed { reasons, ..base() },
        Displayed { evidence, ..base() },
        Displayed { offer, ..base() },
        Displayed { resource, ..base() },
        Displayed { destination, ..base() },
        Displayed { containment, ..base() },
        Displayed { seen, ..base() },
    ]
}

proptest! {
    #[test]
    fn changing_anything_that_is_displayed_changes_the_digest(base in displayed(), other in displayed()) {
        for changed in exchanged(&base, other) {
            prop_assert_eq!(changed.digest() == base.digest(), changed == base, "{:?}", changed);
        }
    }
}

/// What the first question of a run of this version is bound to.
fn bound_in(machine_version: u32, reason: &str) -> Digest {
    let mut machine = Machine::accept(crate::spec::RunSpec { machine_version, ..spec() }, AT);
    machine.step(Input::Started, AT).unwrap();
    machine.step(turn(1, 1, "", &["a"]), AT).unwrap();
    let mut input = decided("t1c1", ToolVerdict::NeedsApproval, Concurrency::Exclusive, Repeatability::NonRepeatable);
    if let Input::Decided(decided) = &mut input {
        decided.reasons = vec![reason.to_owned()];
    }
    match &machine.step(input, AT).unwrap()[0] {
        Action::RequestApproval(request) => request.binding,
        other => panic!("{other:?}"),
    }
}

#[test]
fn questions_of_older_runs_keep_their_digests() {
    let then = Digest::of_parts(&["a", "{}", "r", "system", "public"].map(str::as_bytes));
    for version in [3, 6] {
        assert_eq!((bound_in(version, "x"), bound_in(version, "y")), (then, then), "version {version}");
    }
    assert_ne!(bound_in(7, "x"), bound_in(7, "y"));
}
