//! Answers in the formats that vendors document, case by case, and how they go back in the next request.
//!
//! A case is a file: what it is about, what the server sends (`events` of a stream, after `raw` text if there is any, or a `body` with
//! a `status`), what has to come of it (`expect`), and what the next request has to hold (`next`). `COVERAGE.md` beside the cases
//! lists what is covered and what is passed over knowingly; a test keeps the list true.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{
    AssembledTurn, HttpProviderOptions, Message, ModelError, ModelEvent, ModelProvider, ModelRequest, OpenAi,
    OpenAiApi, OpenAiCompatible, OpenRouter, TurnAssembler,
};
use serde_json::{Value, json};

use crate::support::request;

/// A provider for a server.
type Make = fn(HttpProviderOptions) -> Result<Box<dyn ModelProvider>, ModelError>;

fn compatible(options: HttpProviderOptions) -> Result<Box<dyn ModelProvider>, ModelError> {
    Ok(Box::new(OpenAiCompatible::new(options)?))
}

fn openai_chat(options: HttpProviderOptions) -> Result<Box<dyn ModelProvider>, ModelError> {
    Ok(Box::new(OpenAi::with_api(options, OpenAiApi::ChatCompletions)?))
}

fn openai_responses(options: HttpProviderOptions) -> Result<Box<dyn ModelProvider>, ModelError> {
    Ok(Box::new(OpenAi::new(options)?))
}

fn openrouter(options: HttpProviderOptions) -> Result<Box<dyn ModelProvider>, ModelError> {
    Ok(Box::new(OpenRouter::new(options)?))
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// All cases of a folder with their names.
fn cases(name: &str) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = std::fs::read_dir(folder(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let shown = format!("{name}/{}", path.file_stem().unwrap().to_string_lossy());
            let case = serde_json::from_str(&std::fs::read_to_string(&path).unwrap());
            (shown.clone(), case.unwrap_or_else(|error| panic!("{shown}: {error}")))
        })
        .collect();
    found.sort_by(|left, right| left.0.cmp(&right.0));
    found
}

/// What the server sends.
fn reply(case: &Value) -> Reply {
    let reply = match case.get("events").and_then(Value::as_array) {
        Some(events) => {
            let mut stream = case.get("raw").and_then(Value::as_str).unwrap_or_default().to_owned();
            for event in events {
                if let Some(name) = event.get("type").and_then(Value::as_str) {
                    stream.push_str(&format!("event: {name}\n"));
                }
                let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
                stream.push_str(&format!("data: {data}\n\n"));
            }
            Reply::raw(stream)
        }
        None => {
            let status = case.get("status").and_then(Value::as_u64).unwrap_or(200);
            Reply::status(u16::try_from(status).unwrap(), &case["body"])
        }
    };
    let headers = case.get("headers").and_then(Value::as_object).into_iter().flatten();
    headers.fold(reply, |reply, (name, value)| reply.header(name, value.as_str().unwrap()))
}

/// The whole answer, and what was thought aloud on the way.
async fn answer(provider: &dyn ModelProvider, request: ModelRequest) -> Result<(AssembledTurn, String), ModelError> {
    let mut stream = provider.stream(request).await?;
    let (mut assembler, mut thinks) = (TurnAssembler::new(), String::new());
    while let Some(event) = stream.next().await {
        let event = event?;
        if let ModelEvent::ReasoningDelta(text) = &event {
            thinks.push_str(text);
        }
        assembler.push(&event)?;
    }
    assert!(assembler.is_finished(), "a stream without error must end with Finished");
    Ok((assembler.finish(), thinks))
}

/// What came of a case, in the words of the cases.
fn shown(ended: &Result<(AssembledTurn, String), ModelError>, expect: &Value) -> Value {
    match ended {
        Ok((turn, thinks)) => {
            let calls: Vec<_> =
                turn.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments])).collect();
            json!({
                "text": turn.text, "thinks": thinks, "calls": calls, "stop": turn.stop_reason.as_str(),
                "usage": turn.usage, "repairs": turn.repairs,
            })
        }
        Err(error) => {
            let says = expect.pointer("/error/says").and_then(Value::as_str);
            let kept = says.filter(|says| error.message.contains(says)).unwrap_or(&error.message);
            json!({ "error": { "class": error.class.as_str(), "wait": error.retry_after_ms, "says": kept } })
        }
    }
}

/// Whether everything that is expected is there.
fn holds(is: &Value, expected: &Value) -> bool {
    match expected.as_object() {
        Some(fields) => fields.iter().all(|(name, value)| is.get(name).is_some_and(|is| holds(is, value))),
        None => is == expected,
    }
}

async fn run(name: &str, case: &Value, make: Make) {
    let server = ModelServer::start(vec![reply(case), Reply::text(&["next"])]).unwrap();
    let options = HttpProviderOptions {
        base_url: Some(server.base_url()),
        model: Some("m".to_owned()),
        ..HttpProviderOptions::new("configured")
    };
    let provider = make(options).unwrap();
    let ended = answer(provider.as_ref(), request()).await;
    let is = shown(&ended, &case["expect"]);
    assert!(holds(&is, &case["expect"]), "{name} ({}):\n   is {is}\nnot {}", case["what"], case["expect"]);
    let Some(next) = case.get("next").and_then(Value::as_array) else { return };
    let (turn, _) = ended.unwrap();
    let mut again = request();
    let results = turn.tool_calls.iter().map(|call| Message::tool_result(&call.id, &call.name, "done"));
    let results: Vec<_> = results.collect();
    again.push(Message::assistant(turn.text, turn.tool_calls).with_reasoning(turn.reasoning));
    results.into_iter().for_each(|result| again.push(result));
    answer(provider.as_ref(), again).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let sent = server.requests();
    for wanted in next {
        let at = wanted["at"].as_str().unwrap();
        assert_eq!(sent[1].body.pointer(at), Some(&wanted["is"]), "{name} at {at}: {}", sent[1].body);
    }
}

async fn run_all(name: &str, make: Make) {
    let cases = cases(name);
    assert!(cases.len() >= 10, "{name} has {} cases", cases.len());
    for (name, case) in cases {
        let of_others = case.get("provider").is_some_and(|provider| provider == "openai_compatible");
        run(&name, &case, if of_others { compatible } else { make }).await;
    }
}

#[tokio::test]
async fn chat_completions_as_documented() {
    run_all("openai_chat", openai_chat).await;
}

#[tokio::test]
async fn responses_as_documented() {
    run_all("openai_responses", openai_responses).await;
}

#[tokio::test]
async fn openrouter_as_documented() {
    run_all("openrouter", openrouter).await;
}

/// Words in backticks that look like the name of an event.
fn listed(text: &str) -> BTreeSet<String> {
    let words = text.split('`').skip(1).step_by(2).map(str::to_owned);
    words.filter(|word| word == "error" || word.starts_with("response.")).collect()
}

#[test]
fn every_event_that_is_listed_has_a_case_and_the_other_way_round() {
    let list = std::fs::read_to_string(folder("openai_responses").join("COVERAGE.md")).unwrap();
    let mut seen = BTreeSet::new();
    for (_, case) in cases("openai_responses") {
        let events = case.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
        seen.extend(events.iter().filter_map(|event| event["type"].as_str().map(str::to_owned)));
    }
    // Stands for all that will be invented one day.
    seen.remove("response.something_new.delta");
    assert_eq!(seen, listed(&list));
    assert!(seen.len() > 50, "{}", seen.len());
}

#[test]
fn every_case_is_listed() {
    for name in ["openai_chat", "openai_responses", "openrouter"] {
        let list = std::fs::read_to_string(folder(name).join("COVERAGE.md")).unwrap();
        for (case, _) in cases(name) {
            let stem = case.rsplit('/').next().unwrap();
            assert!(list.contains(&format!("`{stem}`")), "{case} is not in COVERAGE.md");
        }
    }
}
