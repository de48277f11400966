//! What labels and provenance cost: the time of the information-flow rule in a run with a 200 KB context, beside the run's own time without
//! the model.
//!
//! The run is real: an engine on a real journal, a model that answers at once, outside tools in the same process. The rule is then timed alone on
//! exactly what that run read and proposed.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a measuring program stops at the first surprise")]

#[path = "../tests/it/brain.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod brain;
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod support;

use std::collections::BTreeSet;
use std::time::Instant;

use palyra_common::{Label, RunLifecyclePhase, RunMode};
use palyra_figures::{Aim, Report, Samples};
use palyra_flow::{
    Mandate, Mandates, Material, Planner, PreviewDetail, Proposed, Reading, SourceNaming, assess, preview,
};
use palyra_tools::Tool;
use serde_json::{Value, json};

use crate::brain::{Brain, Outbox, Outside};
use crate::support::Setup;

const READS: usize = 4;
const SENDS: usize = 8;
const ROUNDS: usize = 21;
const TASK: &str = "Tell Ada what is new, in 8 messages";

/// About 50 KB of records as a chat or mail server gives them.
fn page() -> Value {
    let text =
        "The quarterly report is on the shared drive; see www.example.org/reports and write to ada@example.org. "
            .repeat(2);
    let items: Vec<Value> = (0..230).map(|id| json!({"id": id, "from": "bob", "body": text})).collect();
    json!({"items": items})
}

/// What the run is meant to do.
fn mandate(tool: &str) -> Mandate {
    let times = u32::try_from(SENDS).ok();
    Mandate { destinations: BTreeSet::from(["Ada".to_owned()]), times, ..Mandate::of(tool) }
}

fn call(number: usize) -> Value {
    json!({"to": "Ada", "body": format!("summary number {number}: nothing new this week")})
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let whole = runtime.block_on(whole_runs());
    let rule = rule();
    let bytes = page().to_string().len() * READS;
    let mut report = Report::new("flow");
    let share = rule.median() / (whole.median() - rule.median()).max(f64::EPSILON);
    report.figure(
        "flow.share",
        share,
        "of the run's other non-model time",
        Some("the same run without the rule"),
        Aim::AtMost(0.10),
        ROUNDS as u64,
        Some(rule.spread()),
    );
    report.figure("flow.rule", rule.median() * 1e6, "µs per run", None, Aim::None, ROUNDS as u64, Some(rule.spread()));
    report.figure("flow.run", whole.median() * 1e6, "µs per run", None, Aim::None, ROUNDS as u64, Some(whole.spread()));
    report.note(&format!(
        "{READS} reads of together {bytes} bytes, {SENDS} consequential calls, guarded, an instant model"
    ));
    report.finish()?;
    Ok(())
}

async fn whole_runs() -> Samples {
    let mut samples: Vec<f64> = Vec::new();
    let outbox = Outbox::default();
    let mut calls: Vec<(&'static str, Value)> =
        vec![("palyra.intent.declare", json!({"effects": [mandate("mcp.mail.send")]}))];
    calls.extend((0..READS).map(|page| ("mcp.mail.read", json!({"page": page}))));
    calls.extend((0..SENDS).map(|number| ("mcp.mail.send", call(number))));
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Brain::playing(calls));
    setup.mode = RunMode::Guarded;
    setup.tools = vec![Outside::reading("mail", "read", page(), &outbox), Outside::sending("mail", "send", &outbox)];
    let bench = setup.start().await;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let run = bench.engine.create_run(bench.task(TASK)).await.expect("it is accepted");
        let mut follower = bench.engine.follow(run.run_id, 1).await.expect("it can be followed");
        while let Some(events) = follower.next().await.expect("it goes on") {
            if events.iter().any(|event| event.is_terminal()) {
                break;
            }
        }
        samples.push(began.elapsed().as_secs_f64());
        let row = bench.engine.run(run.run_id).await.expect("it is there");
        assert_eq!(row.phase, RunLifecyclePhase::Completed, "nothing is asked");
    }
    Samples::from_values(samples).expect("there are samples")
}

/// The rule alone: what `engine/flow.rs` and `machine/readings.rs` do for such a run.
fn rule() -> Samples {
    let outbox = Outbox::default();
    let tools: [std::sync::Arc<dyn Tool>; 2] =
        [Outside::reading("mail", "read", page(), &outbox), Outside::sending("mail", "send", &outbox)];
    let [reader, sender] = tools.each_ref().map(|tool| tool.declaration());
    let data = page();
    let text = data.to_string();
    let mut samples: Vec<f64> = Vec::new();
    for _ in 0..ROUNDS {
        let mut readings: Vec<Reading> = Vec::new();
        let made: Vec<Reading> = (1..=READS as u32)
            .map(|number| Reading {
                call_id: format!("t{number}c1"),
                tool: reader.name.to_string(),
                server: reader.server.clone(),
                label: reader.output.clone(),
                class: reader.classification().output,
                source: SourceNaming::ChosenOtherwise,
                text: text.clone(),
                data: Some(data.clone()),
                suspicions: Vec::new(),
                variable: Some(number),
                given: false,
            })
            .collect();
        let began = Instant::now();
        let mut material = Material::default();
        material.trust(TASK);
        let mut mandates = Mandates::default();
        mandates.state(vec![mandate(sender.name.as_str())], Planner::Fresh);
        let seen = Label::user();
        for (number, reading) in (1..).zip(made) {
            std::hint::black_box(preview(&reading, number, PreviewDetail::Values));
            material.read(&reading);
            readings.push(reading);
        }
        let classification = sender.classification();
        let destination = sender.origin();
        for number in 0..SENDS {
            let arguments = call(number);
            let proposed = Proposed {
                tool: sender.name.as_str(),
                server: sender.server.as_deref(),
                destination: destination.as_ref(),
                classification: &classification,
                schema: &sender.input_schema,
                arguments: &arguments,
                references: &[],
            };
            std::hint::black_box(assess(proposed, &material, &readings, &seen, &mandates));
        }
        samples.push(began.elapsed().as_secs_f64());
    }
    Samples::from_values(samples).expect("there are samples")
}
