//! Scripts: reading them, choosing turns, and what is streamed.

use futures::StreamExt;
use palyra_common::RunId;
use serde_json::json;

use super::*;
use crate::assembler::{AssembledTurn, TurnAssembler};
use crate::message::Message;

const SCRIPT: &str = r#"
    [[script]]
    when = "rename"
    [[script.turn]]
    text = ["Let me ", "look."]
    usage = { input_tokens = 10, output_tokens = 4 }
    [[script.turn.call]]
    tool = "palyra.fs.read"
    arguments = { path = "notes.md" }
    [[script.turn.call]]
    tool = "palyra.fs.list"
    arguments = "{broken"
    id = "mine"
    [[script.turn]]
    text = "It says: "
    echo = "last_result"

    [[script]]
    when = "break"
    [[script.turn]]
    text = "so far"
    error = { class = "network", message = "gone" }

    [[script]]
    auxiliary = "classification"
    turn = [{ text = '{"label":"x"}' }]

    [[turn]]
    echo = "user"
"#;

fn request(messages: Vec<Message>, purpose: Purpose) -> ModelRequest {
    ModelRequest::new(RunId::from_u128(1), 1, purpose, messages)
}

async fn ask(
    provider: &ScriptedProvider,
    messages: Vec<Message>,
    purpose: Purpose,
) -> Result<AssembledTurn, ModelError> {
    let mut stream = provider.stream(request(messages, purpose)).await?;
    let mut assembler = TurnAssembler::new();
    while let Some(event) = stream.next().await {
        assembler.push(&event?)?;
    }
    assert!(assembler.is_finished());
    Ok(assembler.finish())
}

#[tokio::test]
async fn turns_are_chosen_from_the_messages_alone() {
    let provider = ScriptedProvider::from_str(SCRIPT).unwrap();
    let mut messages = vec![Message::user("echo me")];
    let echoed = ask(&provider, messages.clone(), Purpose::Turn).await.unwrap();
    assert_eq!((echoed.text.as_str(), echoed.stop_reason), ("echo me", StopReason::EndTurn));

    messages.extend([Message::assistant("echo me", Vec::new()), Message::user("please rename it")]);
    let first = ask(&provider, messages.clone(), Purpose::Turn).await.unwrap();
    assert_eq!(first.text, "Let me look.");
    assert_eq!(first.usage, Usage::plain(10, 4));
    let calls: Vec<_> =
        first.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(
        calls,
        [("call_1_1", "palyra.fs.read", r#"{"path":"notes.md"}"#), ("mine", "palyra.fs.list", "{broken")]
    );

    messages.push(Message::assistant(first.text, first.tool_calls));
    messages.push(Message::tool_result("call_1_1", "palyra.fs.read", "hello"));
    assert_eq!(ask(&provider, messages.clone(), Purpose::Turn).await.unwrap().text, "It says: hello");

    messages.push(Message::assistant("It says: hello", Vec::new()));
    let end = ask(&provider, messages, Purpose::Turn).await.unwrap_err();
    assert_eq!(end.message, "the model script has no turn 3 for `please rename it`");
}

#[tokio::test]
async fn errors_come_after_what_was_said() {
    let provider = ScriptedProvider::from_str(SCRIPT).unwrap();
    let mut stream = provider.stream(request(vec![Message::user("break")], Purpose::Turn)).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::TextDelta("so far".into()));
    assert_eq!(stream.next().await.unwrap().unwrap_err().class, ModelErrorClass::Network);
    assert!(stream.next().await.is_none());
    let at_once = ScriptedProvider::new(Script::new(vec![Turn::error(ModelErrorClass::Quota, "empty purse")]));
    let refused = ask(&at_once, vec![Message::user("x")], Purpose::Turn).await.unwrap_err();
    assert_eq!(refused.message, "empty purse");
}

#[tokio::test]
async fn auxiliary_tasks_have_their_own_scripts() {
    let provider = ScriptedProvider::from_str(SCRIPT).unwrap();
    let messages = vec![Message::user("rename the long story. And so on.")];
    let label = ask(&provider, messages.clone(), Purpose::Auxiliary(AuxiliaryTaskKind::Classification)).await.unwrap();
    assert_eq!(label.text, r#"{"label":"x"}"#);
    let summary = ask(&provider, messages.clone(), Purpose::Auxiliary(AuxiliaryTaskKind::Summary)).await.unwrap();
    assert!(summary.text.contains("long story"), "{}", summary.text);
    assert!(ask(&provider, messages, Purpose::Auxiliary(AuxiliaryTaskKind::Vision)).await.is_err());
}

#[test]
fn toml_json_and_code_say_the_same() {
    let json = json!({"script": [{"when": "a", "turn": [{"call": [{"tool": "t", "arguments": {"k": 1}}]}]}], "turn": [{"text": "b"}]});
    let toml = "turn = [{ text = 'b' }]\n[[script]]\nwhen = 'a'\n[[script.turn]]\ncall = [{ tool = 't', arguments = { k = 1 } }]";
    let code = Script::new(vec![Turn::text("b")]).when("a", vec![Turn::calls(vec![Call::new("t", json!({"k": 1}))])]);
    assert_eq!(Script::parse(&json.to_string()).unwrap(), code);
    assert_eq!(Script::parse(toml).unwrap(), code);
}

#[test]
fn broken_scripts_are_refused_with_the_place() {
    for text in ["turn = 3", "{\"turn\": [{\"txt\": \"a\"}]}", "[[script]]\nwhenn = 'a'", "{", "stop = 'x'"] {
        let error = ScriptedProvider::from_str(text).unwrap_err();
        assert!(error.message.starts_with("the model script cannot be read"), "{text}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.toml");
    assert!(ScriptedProvider::from_file(&missing).unwrap_err().message.contains("none.toml"));
    std::fs::write(&missing, SCRIPT).unwrap();
    assert_eq!(ScriptedProvider::from_file(&missing).unwrap().describe().name, "scripted");
}
