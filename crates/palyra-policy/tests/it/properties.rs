//! What holds for any request.

use std::collections::BTreeSet;

use cedar_policy::Effect;
use palyra_common::{Confidentiality, DataOrigin, Integrity, Label, ToolVerdict};
use palyra_policy::{
    ActionKind, Argument, Asking, Consequence, Destination, EffectScope, Envelope, Location, PolicySet, Provenance,
    Request, Resource, SinkKind,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{call, facts, with};

prop_compose! {
    fn an_argument()(
        name in "[a-c]",
        sink in proptest::option::of(select(SinkKind::ALL)),
        provenance in select(Provenance::ALL),
        integrity in select(Integrity::ALL),
        confidentiality in select(Confidentiality::ALL),
        value in proptest::option::of(".{0,20}"),
        outside in any::<bool>(),
    ) -> Argument {
        let location = Some(if outside { Location::OutsideWorkspace } else { Location::InsideWorkspace });
        let label = Label::new(integrity, confidentiality);
        Argument { name, sink, provenance, label, value, location, source: None, sentence: None }
    }
}

fn a_resource() -> impl Strategy<Value = Resource> {
    let to =
        || ("\\PC{0,12}", select(Confidentiality::ALL)).prop_map(|(name, clearance)| Destination { name, clearance });
    prop_oneof![
        Just(Resource::Tool),
        "\\PC{0,12}".prop_map(|name| Resource::Path { name, location: Location::InsideWorkspace }),
        "\\PC{0,12}".prop_map(|name| Resource::Path { name, location: Location::OutsideWorkspace }),
        "[a-z.]{1,12}".prop_map(|name| Resource::Host(Destination { name, clearance: Confidentiality::Public })),
        to().prop_map(Resource::Host),
        to().prop_map(Resource::Channel),
        to().prop_map(Resource::Memory),
        to().prop_map(Resource::Worker),
        ".{0,8}".prop_map(Resource::Agent),
    ]
}

prop_compose! {
    fn a_request()(
        action in select(ActionKind::ALL),
        resource in a_resource(),
        scope in select(EffectScope::ALL),
        arguments in proptest::collection::vec(an_argument(), 0..4),
        listed in any::<bool>(),
        consequential in any::<bool>(),
        inside in any::<bool>(),
        cleared in any::<bool>(),
        read in select(Integrity::ALL),
    ) -> Request {
        let mut request = call(action, resource, scope);
        let facts = facts(&mut request);
        facts.arguments = arguments;
        facts.asking = if listed { Asking::AskBefore } else { Asking::NotListed };
        facts.consequence = if consequential { Consequence::Consequential } else { Consequence::Contained };
        facts.envelope = if inside { Envelope::Inside } else { Envelope::Outside };
        facts.uncleared = if cleared { BTreeSet::new() } else { [DataOrigin::Workspace].into() };
        facts.labels = Label::new(read, Confidentiality::Private);
        request
    }
}

fn sets() -> [PolicySet; 3] {
    let permit = "@id(\"all\") permit (principal, action, resource);";
    let forbid =
        "@id(\"some\") forbid (principal, action in Action::\"effect\", resource) when { context.consequential };";
    [with("").unwrap(), with(permit).unwrap(), with(&format!("{permit} {forbid}")).unwrap()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever comes in: the same answer twice, no permission that leans on an error, no permission without a permit.
    #[test]
    fn every_request_has_one_answer_and_a_reason(request in a_request()) {
        for set in sets_once() {
            let decision = set.decide(&request);
            prop_assert_eq!(&decision, &set.decide(&request));
            prop_assert!(!decision.person.is_empty() && !decision.model.is_empty());
            if decision.verdict != ToolVerdict::Deny {
                prop_assert!(decision.errors.is_empty());
                let permits = |id: &String| set.entries().any(|entry| &entry.id == id && !matches!(entry.annotations.role, palyra_policy::Role::Forbid | palyra_policy::Role::Guard));
                prop_assert!(decision.policies.iter().any(permits), "{:?}", decision);
            }
        }
    }

    /// A forbid only narrows, a permit only widens.
    #[test]
    fn rules_are_monotone(request in a_request()) {
        let [shipped, wider, narrower] = sets_once();
        prop_assert!(wider.decide(&request).verdict <= shipped.decide(&request).verdict);
        prop_assert!(narrower.decide(&request).verdict >= wider.decide(&request).verdict);
    }

    /// A destination, command or credential that the attacker or the model chose is never used unasked.
    #[test]
    fn nobody_else_chooses_where_an_effect_goes(request in a_request()) {
        let [_, wider, _] = sets_once();
        let mut request = request;
        let consequential = facts(&mut request).consequence == Consequence::Consequential;
        let steered = facts(&mut request).arguments.iter().any(|argument| {
            matches!(argument.sink, Some(SinkKind::Destination | SinkKind::Command | SinkKind::Credential))
                && (matches!(argument.provenance, Provenance::Untrusted | Provenance::Invented)
                    || argument.provenance != Provenance::Pointed && argument.label.integrity == Integrity::Untrusted)
                || argument.provenance == Provenance::Pointed
                    && (matches!(argument.sink, Some(SinkKind::Command | SinkKind::Credential))
                        || argument.sink == Some(SinkKind::Destination) && consequential)
        });
        if steered {
            prop_assert!(wider.decide(&request).verdict > ToolVerdict::Permit);
        }
    }
}

fn sets_once() -> &'static [PolicySet; 3] {
    static SETS: std::sync::OnceLock<[PolicySet; 3]> = std::sync::OnceLock::new();
    SETS.get_or_init(sets)
}

#[test]
fn a_guard_is_a_forbid_to_plain_cedar() {
    let set = PolicySet::shipped().unwrap();
    let guards: Vec<_> = set.entries().filter(|entry| entry.annotations.role == palyra_policy::Role::Guard).collect();
    assert!(guards.len() >= 5);
    for guard in guards {
        let policy: cedar_policy::Policy = guard.text.parse().unwrap();
        assert_eq!(policy.effect(), Effect::Forbid, "{}", guard.id);
    }
}
