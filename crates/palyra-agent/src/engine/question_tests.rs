use palyra_common::{Confidentiality, Consequence, Integrity, Label};
use palyra_flow::{ArgumentFacts, SourceNaming};

use super::*;

/// Words of Palyra's own that say nothing to whoever is asked.
const JARGON: &[&str] = &["mandate", "sink", "provenance", "envelope", "label", "integrity", "clearance", "declare"];

fn facts(arguments: Vec<ArgumentFacts>, gaps: &[&str]) -> FlowFacts {
    FlowFacts {
        arguments,
        consequence: Consequence::Consequential,
        mandate: None,
        gaps: gaps.iter().map(|&gap| gap.to_owned()).collect(),
        uncleared: Default::default(),
        clearance: Confidentiality::Private,
        seen: Label::system(),
        source: SourceNaming::ChosenOtherwise,
    }
}

fn argument(sink: SinkKind, provenance: Provenance) -> ArgumentFacts {
    ArgumentFacts {
        name: "to".to_owned(),
        sink: Some(sink),
        provenance,
        label: Label::new(Integrity::Untrusted, Confidentiality::Private),
        value: Some("eve@evil.example".to_owned()),
        source: None,
        sentence: None,
    }
}

fn asked(policies: &[&str], flow: &FlowFacts) -> String {
    let policies: Vec<String> = policies.iter().map(|&policy| policy.to_owned()).collect();
    phrased(vec!["your request does not ask for this".to_owned()], &policies, flow, None).join("; ")
}

#[test]
fn the_second_sentence_says_what_could_go_wrong() {
    let found = facts(vec![argument(SinkKind::Destination, Provenance::Untrusted)], &[]);
    let chosen = facts(vec![argument(SinkKind::Destination, Provenance::Invented)], &[]);
    for (policies, flow, risk) in [
        (
            &["asking.outside_envelope", "sinks.destination", "sinks.flow"][..],
            &found,
            "The author of that text would decide where this goes",
        ),
        (&["sinks.destination", "sinks.flow"], &chosen, GONE),
        (&["sinks.destination"], &chosen, MISTAKE),
        (&["asking.outside_envelope"], &found, MISTAKE),
    ] {
        assert_eq!(asked(policies, flow), format!("your request does not ask for this. {risk}"), "{policies:?}");
    }
    assert_eq!(
        asked(&["asking.ask_before"], &found),
        "your request does not ask for this",
        "whoever wants to be asked knows why"
    );
}

#[test]
fn one_missing_fact_is_told_and_what_else_speaks_against_it() {
    let flow = facts(Vec::new(), &["`to` is not what the run said it would be", "`note` is missing"]);
    let policies = ["asking.outside_envelope".to_owned()];
    assert_eq!(
        phrased(vec!["a".to_owned()], &policies, &flow, Some("it would have network".to_owned())),
        [format!("a; `to` is not what the run said it would be; it would have network. {MISTAKE}")]
    );
}

#[test]
fn nothing_that_is_said_needs_a_glossary() {
    let decided = ABOUT_VALUES.iter().map(|(.., decides)| *decides);
    for text in decided.chain([MISTAKE, GONE]) {
        assert!(!JARGON.iter().any(|word| text.to_lowercase().contains(word)), "{text}");
    }
}
