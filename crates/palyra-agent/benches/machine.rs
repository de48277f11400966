//! Steps per second of the bare run machine: no journal, no model, no tools.
//!
//! One run of ten turns with two tool calls each is fed again and again. Left out: serialisation and everything the driver does.

use std::time::Duration;

use palyra_agent::machine::{CallFacts, CallResult, Cost, Decided, Input, Machine, ModelTurn, Showing};
use palyra_agent::{MACHINE_VERSION, ModelChoice, RunLimits, RunSpec};
use palyra_common::{Digest, Label, LimitsUsed, Risk, RunId, SessionId, Timestamp, ToolAttestation, ToolVerdict};
use palyra_figures::{Aim, Report, measure};
use palyra_models::{StopReason, ToolCallRequest, Usage};
use palyra_tools::{Concurrency, Repeatability};

const TURNS: u32 = 10;
const CALLS: u32 = 2;
const RUNS: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let inputs = inputs();
    let steps = inputs.len() * RUNS;
    let samples = measure(2, 15, || {
        for _ in 0..RUNS {
            let mut machine = Machine::accept(spec(), Timestamp(0));
            for input in &inputs {
                let _ = std::hint::black_box(machine.step(input.clone(), Timestamp(1)));
            }
            assert!(machine.is_over());
        }
    });
    let per_second = steps as f64 / samples.median();
    let mut report = Report::new("machine");
    report.figure("machine.steps", per_second, "steps/s", None, Aim::None, steps as u64, Some(samples.spread()));
    report.note("one step is one input: a turn, a decision, a tool outcome; contexts are digested at each model call");
    report.finish()?;
    Ok(())
}

fn spec() -> RunSpec {
    RunSpec {
        run_id: RunId::from_u128(1),
        session_id: SessionId::from_u128(2),
        machine_version: MACHINE_VERSION,
        owner: "local".into(),
        agent: "main".into(),
        profile: None,
        mode: palyra_common::RunMode::Guarded,
        frame_seed: Digest::of(b"seed"),
        from: None,
        prompt: "measure".into(),
        attachments: Vec::new(),
        workspace: "/".into(),
        started_with: Default::default(),
        system: "system".into(),
        project: Vec::new(),
        surroundings: None,
        history: Vec::new(),
        history_omitted: 0,
        tools: palyra_agent::ToolSelection::All,
        client_tools: Vec::new(),
        objective: None,
        limits: RunLimits { wall_clock_ms: Duration::from_secs(900).as_millis() as u64, ..RunLimits::default() },
        model: ModelChoice { provider: "scripted".into(), name: "m".into(), context_tokens: 128_000 },
        reserved_tokens: 0,
        idempotency: None,
    }
}

fn inputs() -> Vec<Input> {
    let mut inputs = vec![Input::Started];
    for turn in 1..=TURNS {
        inputs.push(model_turn(turn, CALLS));
        for call in 1..=CALLS {
            inputs.push(decided(turn, call));
        }
        for call in 1..=CALLS {
            inputs.push(finished(turn, call));
        }
    }
    inputs.push(model_turn(TURNS + 1, 0));
    inputs
}

fn model_turn(turn: u32, calls: u32) -> Input {
    Input::ModelTurnFinished(ModelTurn {
        turn,
        attempt: 1,
        text: "working on it".into(),
        tool_calls: (0..calls)
            .map(|call| ToolCallRequest {
                id: format!("c{call}"),
                name: "palyra.fs.read".into(),
                arguments: format!("{{\"path\":\"file-{turn}-{call}.txt\"}}"),
            })
            .collect(),
        usage: Usage::default(),
        stop_reason: if calls == 0 { StopReason::EndTurn } else { StopReason::ToolUse },
        duration_ms: 1,
        reasoning: Vec::new(),
        answering: None,
        attempts: Vec::new(),
        repairs: Vec::new(),
        cost: Cost::default(),
    })
}

fn decided(turn: u32, call: u32) -> Input {
    Input::Decided(Box::new(Decided {
        call_id: format!("t{turn}c{call}"),
        verdict: ToolVerdict::Permit,
        reasons: vec!["it reads inside the workspace".into()],
        told: Vec::new(),
        policies: vec!["builtin.workspace_read".into()],
        requests: Vec::new(),
        facts: CallFacts {
            containment: palyra_policy::Containment::Reaching,
            concurrency: Concurrency::Shared,
            repeatability: Repeatability::Repeatable,
            risk: Risk::Low,
            summary: "read a file".into(),
            resource: "file".into(),
            destination: None,
            confirmed_first: false,
            evidence: Vec::new(),
            offer: None,
            source: palyra_flow::SourceNaming::ChosenOtherwise,
            mandate: None,
            seen: Label::system(),
        },
        invalid: None,
    }))
}

fn finished(turn: u32, call: u32) -> Input {
    let call_id = format!("t{turn}c{call}");
    Input::ToolFinished {
        tool: "palyra.fs.read".into(),
        result: Box::new(CallResult {
            content: format!("content of {call_id}"),
            error: None,
            failure: None,
            broke_off: false,
            label: Label::system(),
            data: None,
            class: None,
            server: None,
            origin: None,
            safety: Vec::new(),
            suspicions: Vec::new(),
            signals: palyra_policy::Signals::default(),
            showing: Showing::ByMode,
            found_tools: Vec::new(),
            canvas: None,
            truncated: false,
            artifact: None,
            changes: Vec::new(),
            wrote: None,
            later: Vec::new(),
            attestation: ToolAttestation {
                call_id: call_id.clone(),
                execution_sha256: Digest::of(call_id.as_bytes()),
                executor: "builtin".into(),
                tier: None,
                fallback_reasons: Vec::new(),
                limits_used: LimitsUsed::default(),
                timed_out: false,
            },
            duration_ms: 1,
        }),
        call_id,
    }
}
