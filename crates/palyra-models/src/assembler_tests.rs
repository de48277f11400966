//! The assembler against the ways in which servers cut their answers.

use proptest::prelude::*;

use super::*;

fn part(index: Option<u32>, id: Option<&str>, name: Option<&str>, arguments: &str) -> ModelEvent {
    ModelEvent::ToolCallDelta {
        index,
        id: id.map(str::to_owned),
        name: name.map(str::to_owned),
        arguments: arguments.to_owned(),
    }
}

fn assemble(events: &[ModelEvent]) -> AssembledTurn {
    let mut assembler = TurnAssembler::new();
    for event in events {
        assembler.push(event).unwrap();
    }
    assembler.finish()
}

/// The calls as `id name arguments`.
fn calls(events: &[ModelEvent]) -> Vec<String> {
    assemble(events)
        .tool_calls
        .into_iter()
        .map(|call| format!("{} {} {}", call.id, call.name, call.arguments))
        .collect()
}

#[test]
fn text_usage_and_stop_reason_are_kept() {
    let turn = assemble(&[
        ModelEvent::TextDelta("Hel".into()),
        ModelEvent::TextDelta("lo".into()),
        ModelEvent::Usage(Usage::plain(3, 1)),
        ModelEvent::Finished(StopReason::EndTurn),
        ModelEvent::Usage(Usage::plain(3, 2)),
    ]);
    assert_eq!(turn.text, "Hello");
    assert_eq!(turn.usage, Usage::plain(3, 2));
    assert_eq!(turn.stop_reason, StopReason::EndTurn);
}

#[test]
fn servers_cut_calls_in_many_ways() {
    let table: &[(&str, Vec<ModelEvent>, &[&str])] = &[
        (
            "id and name in the first part only",
            vec![
                part(Some(0), Some("a"), Some("read"), ""),
                part(Some(0), None, None, "{\"p\""),
                part(Some(0), None, None, ":1}"),
            ],
            &["a read {\"p\":1}"],
        ),
        (
            "two calls interleaved by index",
            vec![
                part(Some(0), Some("a"), Some("read"), "{"),
                part(Some(1), Some("b"), Some("list"), "{"),
                part(Some(0), None, None, "}"),
                part(Some(1), None, None, "}"),
            ],
            &["a read {}", "b list {}"],
        ),
        (
            "whole calls, every index zero, ids differ",
            vec![part(Some(0), Some("a"), Some("read"), "{}"), part(Some(0), Some("b"), Some("list"), "{}")],
            &["a read {}", "b list {}"],
        ),
        (
            "whole calls, every index zero, no ids",
            vec![part(Some(0), None, Some("read"), "{\"a\":1}"), part(Some(0), None, Some("list"), "{}")],
            &["call_1 read {\"a\":1}", "call_2 list {}"],
        ),
        (
            "no index, id with every part",
            vec![
                part(None, Some("a"), Some("read"), "{"),
                part(None, Some("b"), Some("list"), "{}"),
                part(None, Some("a"), None, "}"),
            ],
            &["a read {}", "b list {}"],
        ),
        (
            "neither index nor id",
            vec![part(None, None, Some("read"), "{"), part(None, None, None, "}"), part(None, None, Some("list"), "")],
            &["call_1 read {}", "call_2 list {}"],
        ),
        (
            "name repeated with every part",
            vec![part(Some(0), Some("a"), Some("read"), "{"), part(Some(0), Some("a"), Some("read"), "}")],
            &["a read {}"],
        ),
        (
            "name in pieces",
            vec![part(Some(0), Some("a"), Some("re"), ""), part(Some(0), None, Some("ad"), "")],
            &["a read {}"],
        ),
        ("empty id means none", vec![part(Some(0), Some(""), Some("read"), " ")], &["call_1 read {}"]),
        (
            "a repeated id becomes unique",
            vec![
                part(Some(0), Some("x"), Some("read"), "{}"),
                part(Some(1), Some("x"), Some("read"), "{}"),
                part(Some(2), Some("x_2"), Some("read"), "{}"),
            ],
            &["x read {}", "x_2 read {}", "x_2_2 read {}"],
        ),
        ("a part with nothing in it is dropped", vec![part(Some(0), Some("a"), None, "")], &[]),
        (
            "broken arguments are kept as written",
            vec![part(Some(0), Some("a"), Some("read"), "{oops")],
            &["a read {oops"],
        ),
        ("a sparse index is no trouble", vec![part(Some(u32::MAX), Some("a"), Some("read"), "{}")], &["a read {}"]),
    ];
    for (name, events, expected) in table {
        assert_eq!(&calls(events), expected, "{name}");
    }
}

#[test]
fn the_calls_decide_between_end_and_tool_use() {
    let call = part(Some(0), Some("a"), Some("read"), "{}");
    let stop = |events: &[ModelEvent]| assemble(events).stop_reason;
    assert_eq!(stop(&[call.clone(), ModelEvent::Finished(StopReason::EndTurn)]), StopReason::ToolUse);
    assert_eq!(stop(&[ModelEvent::Finished(StopReason::ToolUse)]), StopReason::EndTurn);
    assert_eq!(stop(&[call, ModelEvent::Finished(StopReason::MaxTokens)]), StopReason::MaxTokens);
    assert_eq!(stop(&[]), StopReason::Other);
}

#[test]
fn an_endless_answer_is_refused() {
    let mut assembler = TurnAssembler::new();
    let megabyte = ModelEvent::TextDelta("x".repeat(1024 * 1024));
    let refused = (0..64).find_map(|_| assembler.push(&megabyte).err()).unwrap();
    assert_eq!(refused.class, crate::ModelErrorClass::Malformed);
    let mut assembler = TurnAssembler::new();
    assert!((0..5000_u32).any(|n| assembler.push(&part(Some(n), None, Some("read"), "{}")).is_err()));
}

fn any_event() -> impl Strategy<Value = ModelEvent> {
    let small = prop::option::of(prop_oneof![Just(String::new()), "[ab]", "call_[12]", "[ab]_2"]);
    prop_oneof![
        "\\PC{0,4}".prop_map(ModelEvent::TextDelta),
        (prop::option::of(0_u32..3), small.clone(), small, prop_oneof![Just("{}".to_owned()), "[{}\"a ]{0,3}"])
            .prop_map(|(index, id, name, arguments)| ModelEvent::ToolCallDelta { index, id, name, arguments }),
        (0_u64..9, 0_u64..9).prop_map(|(i, o)| ModelEvent::Usage(Usage::plain(i, o))),
        prop::sample::select(StopReason::ALL).prop_map(ModelEvent::Finished),
    ]
}

proptest! {
    #[test]
    fn any_events_give_unique_ids_and_the_same_turn_again(events in prop::collection::vec(any_event(), 0..24)) {
        let turn = assemble(&events);
        let ids: BTreeSet<_> = turn.tool_calls.iter().map(|call| call.id.clone()).collect();
        prop_assert_eq!(ids.len(), turn.tool_calls.len());
        prop_assert!(ids.iter().all(|id| !id.is_empty()));
        prop_assert!(turn.tool_calls.iter().all(|call| !call.arguments.trim().is_empty()));
        prop_assert_eq!(assemble(&events), turn);
    }
}

#[test]
fn a_try_that_failed_takes_back_all_that_it_gave() {
    let attempt = Attempt {
        asked: Answering { provider: "a".into(), model: "m".into(), credential: None },
        error: ModelError::new(crate::ModelErrorClass::Network, "reset"),
        wait_ms: 5,
        usage: None,
        end: crate::AnswerEnd::Missing,
    };
    let call = |id: &str| ModelEvent::ToolCallDelta {
        index: Some(0),
        id: Some(id.to_owned()),
        name: Some("t".to_owned()),
        arguments: "{}".to_owned(),
    };
    let turn = assemble(&[
        ModelEvent::TextDelta("half".into()),
        call("one"),
        ModelEvent::Usage(Usage::plain(1, 1)),
        ModelEvent::Repaired("something".into()),
        ModelEvent::Attempted(attempt.clone()),
        ModelEvent::TextDelta("whole".into()),
        call("two"),
        ModelEvent::Finished(StopReason::EndTurn),
    ]);
    assert_eq!((turn.text.as_str(), turn.usage, turn.repairs.len()), ("whole", Usage::default(), 0));
    assert_eq!(turn.tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["two"]);
    assert_eq!(turn.attempts, [attempt]);
}

#[test]
fn slips_in_arguments_are_put_right_and_told() {
    let ended = ModelEvent::Finished(StopReason::ToolUse);
    let turn = assemble(&[
        part(Some(0), Some("a"), Some("read"), "{\"p\":"),
        part(Some(0), None, None, "1,}"),
        part(Some(1), Some("b"), Some("list"), "{}"),
        ended.clone(),
    ]);
    let arguments: Vec<_> = turn.tool_calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"p\":1}", "{}"]);
    assert_eq!(turn.repairs, ["arguments of `read` (a): a trailing comma was dropped"]);

    let twice = [
        part(Some(0), Some("a"), Some("read"), "{\"p\""),
        part(Some(0), Some("a"), Some("read"), "{\"p\""),
        part(Some(0), None, None, ":1}"),
        part(Some(0), None, None, ":1}"),
        ended.clone(),
    ];
    let turn = assemble(&twice);
    assert_eq!(turn.tool_calls[0].arguments, "{\"p\":1}");
    assert_eq!(turn.repairs, ["arguments of `read` (a): every part came twice and was taken once"]);

    let hopeless = assemble(&[part(Some(0), Some("a"), Some("read"), "the file"), ended]);
    assert_eq!((hopeless.tool_calls[0].arguments.as_str(), hopeless.repairs.len()), ("the file", 0));
    let cut_off =
        [part(Some(0), Some("a"), Some("write"), "{\"t\":\"half"), ModelEvent::Finished(StopReason::MaxTokens)];
    assert_eq!(assemble(&cut_off).tool_calls[0].arguments, "{\"t\":\"half");
}

#[test]
fn half_a_surrogate_pair_in_arguments_does_not_end_the_turn() {
    let events = [
        part(Some(0), Some("c"), Some("t"), r#"{"text":"cut \ud83d"#),
        part(Some(0), None, None, r#" here \ud83e\udd80"}"#),
        ModelEvent::Finished(StopReason::ToolUse),
    ];
    assert_eq!(calls(&events), [r#"c t {"text":"cut \ufffd here \ud83e\udd80"}"#]);
}
