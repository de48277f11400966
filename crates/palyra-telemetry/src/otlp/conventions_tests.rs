//! What becomes of spans, and above all what does not leave.

use std::time::SystemTime;

use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{Event, SpanContext, SpanId};
use opentelemetry_sdk::trace::SpanLinks;

use super::*;

fn span(name: &'static str, attributes: &[(&'static str, &str)], events: &[(&'static str, &str)]) -> SpanData {
    let mut happened = SpanEvents::default();
    for (key, value) in events {
        let given = vec![KeyValue::new(*key, (*value).to_owned())];
        happened.events.push(Event::new("event", SystemTime::UNIX_EPOCH, given, 0));
    }
    SpanData {
        span_context: SpanContext::empty_context(),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: name.into(),
        start_time: SystemTime::UNIX_EPOCH,
        end_time: SystemTime::UNIX_EPOCH,
        attributes: attributes.iter().map(|(key, value)| KeyValue::new(*key, (*value).to_owned())).collect(),
        dropped_attributes_count: 0,
        events: happened,
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::default(),
    }
}

fn text(span: &SpanData, name: &str) -> Option<String> {
    value_of(&span.attributes, name)
}

#[test]
fn work_gets_the_names_of_the_conventions() {
    let model =
        [("provider", "openai_compatible"), ("model", "tiny"), ("outcome", "error"), ("error", "model_timeout")];
    let model = translate(span("model_call", &model, &[]), ContentCapture::Off).unwrap();
    assert_eq!((model.name.as_ref(), &model.span_kind), ("chat tiny", &SpanKind::Client));
    assert_eq!(text(&model, "gen_ai.operation.name").unwrap(), "chat");
    assert_eq!(text(&model, "gen_ai.provider.name").unwrap(), "openai_compatible");
    assert_eq!(text(&model, "gen_ai.system").unwrap(), "openai_compatible");
    assert_eq!(model.status, Status::error("model_timeout"));

    let tool = translate(span("tool_call", &[("tool", "palyra.fs.read"), ("call_id", "c1")], &[]), ContentCapture::Off);
    let tool = tool.unwrap();
    assert_eq!(tool.name, "execute_tool palyra.fs.read");
    assert_eq!(text(&tool, "gen_ai.tool.call.id").unwrap(), "c1");

    let run = translate(span("run", &[("run_id", "R"), ("session_id", "S")], &[]), ContentCapture::Off).unwrap();
    assert_eq!(run.name, "invoke_agent palyra");
    assert_eq!(text(&run, "gen_ai.conversation.id").unwrap(), "S");

    let command = translate(span("command", &[("command", "run.create")], &[]), ContentCapture::Off).unwrap();
    assert_eq!((command.name.as_ref(), &command.span_kind), ("run.create", &SpanKind::Server));
    assert_eq!(text(&command, "gen_ai.operation.name"), None);
}

#[test]
fn nothing_leaves_that_is_not_on_the_list() {
    let given = [
        ("tool", "palyra.fs.read"),
        ("arguments", "secret-a"),
        ("prompt", "secret-b"),
        ("model", "secret-c"),
        ("error", "cannot open /home/secret-d"),
        ("message", "secret-e"),
    ];
    let said = [("arguments", "secret-f"), ("result", "secret-g"), ("authorization", "secret-h")];
    let off = translate(span("tool_call", &given, &said), ContentCapture::Off).unwrap();
    assert!(!format!("{off:?}").contains("secret"), "{off:?}");
    assert_eq!(off.status, Status::Unset);
    assert!(off.events.events.is_empty());

    let on = translate(span("tool_call", &given, &said), ContentCapture::On).unwrap();
    assert_eq!(text(&on, "gen_ai.tool.call.arguments").unwrap(), "secret-f");
    assert_eq!(text(&on, "gen_ai.tool.call.result").unwrap(), "secret-g");
    let shown = format!("{on:?}");
    for other in ["secret-a", "secret-b", "secret-c", "secret-d", "secret-e", "secret-h"] {
        assert!(!shown.contains(other), "{other}");
    }
    assert!(translate(span("h2_frame", &given, &said), ContentCapture::On).is_none());
}

#[test]
fn numbers_are_numbers() {
    let given = [("input_tokens", "120"), ("output_tokens", "many"), ("turn", "3")];
    let exported = translate(span("model_call", &given, &[]), ContentCapture::Off).unwrap();
    let number = |name: &'static str| KeyValue::new(name, if name == "palyra.turn" { 3 } else { 120 });
    assert!(exported.attributes.contains(&number("gen_ai.usage.input_tokens")));
    assert!(exported.attributes.contains(&number("palyra.turn")));
    assert_eq!(text(&exported, "gen_ai.usage.output_tokens"), None);
}

#[test]
fn long_values_are_cut_between_characters() {
    let long = "ä".repeat(LONGEST_CONTENT);
    let exported = translate(span("tool_call", &[("tool", &long)], &[("result", &long)]), ContentCapture::On).unwrap();
    assert_eq!(text(&exported, "gen_ai.tool.name").unwrap().len(), LONGEST_NAME);
    assert_eq!(text(&exported, "gen_ai.tool.call.result").unwrap().len(), LONGEST_CONTENT);
    assert_eq!(cut("aä", 2), "a");
}
