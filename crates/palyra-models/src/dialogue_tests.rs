use proptest::prelude::*;

use super::*;
use crate::message::ToolCallRequest;

fn call(id: &str) -> ToolCallRequest {
    ToolCallRequest { id: id.into(), name: "t".into(), arguments: "{}".into() }
}

/// One line per turn.
fn drawn(messages: &[Message]) -> Vec<String> {
    let dialogue = Dialogue::of(messages);
    let result = |result: &CallResult<'_>| match result.message {
        Some(message) => format!("{}={}", result.id, message.content),
        None => format!("{}=?", result.id),
    };
    dialogue
        .turns
        .iter()
        .map(|turn| match turn {
            Turn::Person(turn) => {
                let results = turn.results.iter().map(result);
                let said = turn.said.iter().map(|said| said.text.clone());
                format!("P {}", results.chain(said).collect::<Vec<_>>().join(" | "))
            }
            Turn::Model(messages) => {
                let said = messages.iter().map(|said| format!("{}{:?}", said.message.content, said.ids));
                format!("M {}", said.collect::<Vec<_>>().join(" | "))
            }
        })
        .collect()
}

#[test]
fn a_usual_run_stays_as_it_is() {
    let messages = [
        Message::system("be good"),
        Message::user("do it"),
        Message::assistant("first", vec![call("a"), call("b")]),
        Message::tool_result("b", "t", "two"),
        Message::tool_result("a", "t", "one"),
        Message::assistant("done", Vec::new()),
        Message::user("thanks"),
    ];
    assert_eq!(Dialogue::of(&messages).instructions, ["be good"]);
    assert_eq!(drawn(&messages), ["P do it", "M first[\"a\", \"b\"]", "P a=one | b=two", "M done[]", "P thanks"]);
}

#[test]
fn a_summary_is_a_note_in_the_persons_turn() {
    let messages = [Message::user("task"), Message::system("Summary: x"), Message::assistant("", vec![call("a")])];
    assert_eq!(
        drawn(&messages),
        ["P task | [note from Palyra, not from the person]\nSummary: x", "M [\"a\"]", "P a=?"]
    );
    assert!(Dialogue::of(&messages).instructions.is_empty());
}

#[test]
fn broken_conversations_are_mended_without_inventing() {
    // Interrupted between call and result, and between two turns of the model.
    let messages = [
        Message::assistant("hello", Vec::new()),
        Message::assistant("again", vec![call("a")]),
        Message::assistant("more", vec![call("a")]),
        Message::user("stop"),
        Message::tool_result("zzz", "t", "late"),
        Message::assistant("", Vec::new()),
        Message::assistant("end", Vec::new()),
    ];
    assert_eq!(
        drawn(&messages),
        [
            "P (the conversation began earlier)",
            "M hello[] | again[\"a\"]",
            "P a=?",
            "M more[\"a_2\"]",
            "P a_2=? | stop | [result of an earlier call of `t`]\nlate",
            "M end[]",
            "P (go on)",
        ]
    );
}

#[test]
fn ids_of_other_wires_are_made_acceptable() {
    let odd = "fc:1/ä".to_owned() + &"x".repeat(100);
    let messages = [
        Message::assistant("", vec![call(&odd), call(&odd), call("")]),
        Message::tool_result(&odd, "t", "one"),
        Message::tool_result(&odd, "t", "two"),
    ];
    let Some(Turn::Person(turn)) = Dialogue::of(&messages).turns.pop() else { panic!("no results") };
    assert_eq!(turn.results.len(), 3);
    assert!(turn.results.iter().all(|result| result.id.len() <= MAX_ID));
    assert_eq!(turn.results[0].message.unwrap().content, "one");
    assert_eq!(turn.results[1].message.unwrap().content, "two");
    assert!(turn.results[2].message.is_none());
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c/1")];
    prop_oneof![
        "[ x]{0,2}".prop_map(Message::user),
        "[ x]{0,2}".prop_map(Message::system),
        id.clone().prop_map(|id| Message::tool_result(id, "t", "r")),
        ("[ x]{0,2}", prop::collection::vec(id, 0..3))
            .prop_map(|(text, ids)| Message::assistant(text, ids.into_iter().map(call).collect())),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_in_the_rules_hold(messages in prop::collection::vec(any_message(), 0..16)) {
        let dialogue = Dialogue::of(&messages);
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<String> = Vec::new();
        prop_assert!(matches!(dialogue.turns.first(), Some(Turn::Person(_))));
        prop_assert!(matches!(dialogue.turns.last(), Some(Turn::Person(_))));
        for pair in dialogue.turns.windows(2) {
            prop_assert_ne!(matches!(pair[0], Turn::Person(_)), matches!(pair[1], Turn::Person(_)));
        }
        for turn in &dialogue.turns {
            match turn {
                Turn::Person(turn) => {
                    let answered: Vec<_> = turn.results.iter().map(|result| result.id.clone()).collect();
                    prop_assert_eq!(&answered, &waiting);
                    prop_assert!(!turn.results.is_empty() || !turn.said.is_empty());
                }
                Turn::Model(messages) => {
                    waiting = messages.last().map(|said| said.ids.clone()).unwrap_or_default();
                    for said in messages {
                        prop_assert!(said.ids.iter().all(|id| seen.insert(id.clone())));
                        prop_assert!(!said.message.content.trim().is_empty() || !said.ids.is_empty());
                    }
                }
            }
        }
    }
}
