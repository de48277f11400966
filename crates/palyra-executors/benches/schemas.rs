//! What JSON Schema adds to a call of a skill's tool: input and output are checked around every call, with validators that were compiled when the skill was bound.
//!
//! - `schema.small`, `schema.large`: checking input and output of one call, as a share of the warm call of the same document. A small document has 3 fields, a
//!   large one 200 items of 10 fields each. The call is the one that a run makes: a plugin that gives its input back, under the usual limits.
//! - `schema.*.time`, `schema.*.rate`: checking one document, and documents per second.
//! - `schema.compile.time`: compiling both schemas of the large document, which is what keeping them saves on every call.
//!
//! Left out: reading and writing JSON, which a call does with or without a schema; and documents that do not fit, which are checked twice to say what is wrong.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a measuring program stops at the first surprise")]

use std::hint::black_box;

use palyra_executors::ToolSchemas;
use palyra_figures::{Aim, Report, Samples, measure, measure_against};
use palyra_plugins_runtime::{CallOptions, Plugin, PluginRuntime, RuntimeOptions, ToolCall};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

type Failure = Box<dyn std::error::Error>;

const WARMUP: u32 = 5;
const REPEATS: u32 = 31;
/// The plugin that the text template begins with.
const ECHO: &str = include_str!("../../palyra-plugins/build/templates/wat/src/skill.wat");

/// A kind of document, and how many of them make one measurement: a single one is too short for the clock.
struct Kind {
    name: &'static str,
    schema: Value,
    document: Value,
    batch: usize,
}

fn small() -> Kind {
    Kind {
        name: "small",
        schema: json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "maxLength": 4096},
                "count": {"type": "integer", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 16},
            },
            "required": ["text", "count"],
            "additionalProperties": false,
        }),
        document: json!({"text": "a line of text that goes in and comes out", "count": 3, "tags": ["one", "two"]}),
        batch: 500,
    }
}

fn large() -> Kind {
    let item = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z]+-[0-9]+$"},
            "title": {"type": "string", "minLength": 1, "maxLength": 200},
            "state": {"enum": ["open", "waiting", "closed"]},
            "points": {"type": "integer", "minimum": 0, "maximum": 100},
            "weight": {"type": "number"},
            "urgent": {"type": "boolean"},
            "owner": {"type": ["string", "null"]},
            "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
            "created": {"type": "integer"},
            "place": {"type": "object", "properties": {"row": {"type": "integer"}}, "required": ["row"]},
        },
        "required": ["id", "title", "state", "points", "weight", "urgent", "owner", "labels", "created", "place"],
        "additionalProperties": false,
    });
    let items: Vec<Value> = (0..200_u32)
        .map(|number| {
            json!({
                "id": format!("ticket-{number}"), "title": format!("Ticket number {number}"), "state": "open", "points": number % 100,
                "weight": f64::from(number) / 7.0, "urgent": number % 2 == 0, "owner": null, "labels": ["a", "b"],
                "created": 1_700_000_000_u64 + u64::from(number), "place": {"row": number},
            })
        })
        .collect();
    Kind {
        name: "large",
        schema: json!({
            "type": "object",
            "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "maxItems": 1000}},
            "required": ["items"],
            "additionalProperties": false,
            "$defs": {"item": item},
        }),
        document: json!({ "items": items }),
        batch: 20,
    }
}

fn main() -> Result<(), Failure> {
    let mut report = Report::new("schemas");
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let runtime = PluginRuntime::new(RuntimeOptions::default())?;
    let plugin = runtime.prepare(&wat::parse_str(ECHO)?)?;
    for kind in [small(), large()] {
        around_a_call(&mut report, &tokio, &runtime, &plugin, &kind)?;
    }
    compiling(&mut report, &large());
    report.finish()?;
    Ok(())
}

/// Checks a document as the input of a call and as its output.
fn check(schemas: &ToolSchemas, document: &Value) {
    black_box(schemas.input.check(black_box(document))).expect("the document fits");
    black_box(schemas.output.check(black_box(document))).expect("the document fits");
}

fn around_a_call(
    report: &mut Report,
    tokio: &Runtime,
    runtime: &PluginRuntime,
    plugin: &Plugin,
    kind: &Kind,
) -> Result<(), Failure> {
    let schemas = ToolSchemas::compile(&kind.schema, &kind.schema)?;
    let text = kind.document.to_string();
    let (checked, called) = measure_against::<Failure>(
        WARMUP,
        REPEATS,
        || {
            (0..kind.batch).for_each(|_| check(&schemas, &kind.document));
            Ok(())
        },
        || {
            tokio.block_on(async {
                for _ in 0..kind.batch {
                    let call =
                        ToolCall { tool: "echo".to_owned(), input: text.clone(), options: CallOptions::default() };
                    let done = runtime.call_tool(plugin, call).await.expect("the guest answers");
                    assert_eq!(black_box(done.value).len(), text.len());
                }
            });
            Ok(())
        },
    )?;
    let (n, name) = (u64::from(REPEATS), kind.name);
    let share = checked.median() / called.median();
    let words = "warm call of the same document";
    report.figure(&format!("schema.{name}"), share, "ratio", Some(words), Aim::None, n, Some(checked.spread()));
    // Two documents for each call: what goes in and what comes out.
    let one = |samples: &Samples| samples.median() / (2 * kind.batch) as f64;
    let spread = Some(checked.spread());
    report.figure(&format!("schema.{name}.time"), one(&checked) * 1e6, "µs", None, Aim::None, n, spread);
    report.figure(&format!("schema.{name}.rate"), 1.0 / one(&checked), "docs/s", None, Aim::None, n, spread);
    let call = called.median() / kind.batch as f64 * 1e6;
    report.figure(&format!("schema.{name}.call"), call, "µs", None, Aim::None, n, Some(called.spread()));
    report.note(&format!("the {name} document has {} bytes as JSON", text.len()));
    Ok(())
}

fn compiling(report: &mut Report, kind: &Kind) {
    let compiled = measure(WARMUP, REPEATS, || {
        black_box(ToolSchemas::compile(&kind.schema, &kind.schema).unwrap());
    });
    let (n, spread) = (u64::from(REPEATS), Some(compiled.spread()));
    report.figure("schema.compile.time", compiled.median() * 1e6, "µs", None, Aim::None, n, spread);
}
