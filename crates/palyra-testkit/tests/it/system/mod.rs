//! System tests: the real programs, a scripted model, and judgement by the tape. Every one of them ends with
//! `TestDaemon::finish`, which replays all runs and verifies the journal.

mod agents;
mod answers;
mod approvals;
mod attachments;
mod canvas;
mod change_sets;
mod contained;
mod conversation;
mod demo;
mod derived_tables;
mod devices;
mod disk_full;
mod fetching;
mod file_labels;
mod honesty;
mod instructions;
mod interrupt;
mod io_faults;
mod mistakes;
mod models;
mod openai;
mod outside;
mod outside_edits;
mod outside_hostile;
mod outside_restart;
mod outside_restart_kinds;
mod pipes;
mod process_kills;
mod processes;
mod provider_waits;
mod read_only;
mod replay;
mod restored;
mod resume;
mod secrets;
mod skill_cache;
mod skill_guests;
mod skill_hostile;
mod skill_keys;
mod skill_pages;
mod skill_registries;
mod skills;
mod skills_by_hand;
mod steering;
mod strangers;
mod tokens;

use std::path::Path;
use std::time::{Duration, Instant};

use palyra_client::api::{CreateRunParams, RunDetail, RunView};
use palyra_client::{Client, Follow};
use palyra_common::{RunId, RunLifecyclePhase, RunStreamBody, RunStreamEvent};
use palyra_testkit::{Binary, DaemonOptions, Followed, Model, Person, Receiver, TestDaemon, probe};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a test waits for something that must happen. Nothing is asserted about how long it takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A task in a workspace, with nothing else said.
pub(crate) fn task(prompt: &str, workspace: &Path) -> CreateRunParams {
    CreateRunParams {
        attachments: Vec::new(),
        objective: None,
        max_attempts: None,
        binding: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_id: None,
        session_key: None,
        prompt: prompt.to_owned(),
        workspace: workspace.display().to_string(),
        model: None,
        agent: None,
        mode: None,
        limits: None,
        idempotency_key: None,
    }
}

/// A scripted turn that makes one call.
fn call(tool: &str, arguments: Value) -> Value {
    let mut call = json!({ "tool": tool });
    call["arguments"] = arguments;
    json!({ "call": [call] })
}

/// A daemon with probe tools, where they report to, and a workspace with one file.
struct Probed {
    daemon: TestDaemon,
    receiver: Receiver,
    workspace: TempDir,
}

impl Probed {
    async fn start(script: Value) -> Self {
        let receiver = Receiver::start().unwrap();
        let options = DaemonOptions::new(Model::Scripted(script)).binary(Binary::PalyradProbe);
        let daemon = options.env(probe::SOCKET_VARIABLE, receiver.socket()).start().await.unwrap();
        Self { daemon, receiver, workspace: workspace() }
    }

    async fn create(&self, prompt: &str) -> RunView {
        self.daemon.client().create_run(&task(prompt, self.workspace.path())).await.unwrap()
    }

    /// Waits until so many effects have arrived.
    fn wait_for_effects(&self, count: usize) {
        assert!(self.receiver.wait_for(count, PATIENCE), "{:?}\n{}", self.receiver.deliveries(), self.daemon.log());
    }
}

fn workspace() -> TempDir {
    let workspace = TempDir::with_prefix("palyra-workspace-").unwrap();
    std::fs::write(workspace.path().join("notes.md"), "first line\nsecond line\n").unwrap();
    workspace
}

/// Follows a run to its end as a person who allows everything; returns what became of it and its whole tape.
async fn finish(client: &Client, run_id: RunId) -> (RunDetail, Vec<RunStreamEvent>) {
    assert_eq!(Person::new(run_id).follow(client).await.unwrap(), Followed::ToItsEnd);
    let mut tape = client.tape(run_id, 1, Follow::No);
    let mut events = Vec::new();
    while let Some(event) = tape.next().await.unwrap() {
        events.push(event);
    }
    assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64), "the tape has a gap");
    (client.run(run_id).await.unwrap(), events)
}

/// Waits until a run is in a phase.
pub(crate) async fn wait_for_phase(client: &Client, run_id: RunId, phase: RunLifecyclePhase) {
    let began = Instant::now();
    loop {
        let now = client.run(run_id).await.unwrap().run.phase;
        if now == phase {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "run {run_id} is {now} and not {phase}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A short name for each event, so that a tape's order can be read and compared.
fn names(events: &[RunStreamEvent]) -> Vec<String> {
    let name = |event: &RunStreamEvent| match &event.body {
        RunStreamBody::Status(status) => format!("status {}", status.phase),
        RunStreamBody::ModelToken(_) => "token".to_owned(),
        RunStreamBody::ToolProposal(proposal) => format!("proposal {}", proposal.tool),
        RunStreamBody::ToolDecision(decision) => format!("decision {}", decision.verdict),
        RunStreamBody::ToolApprovalRequest(_) => "question".to_owned(),
        RunStreamBody::ToolApprovalResponse(response) => format!("answer {}", response.decision),
        RunStreamBody::ToolResult(result) if result.ok => "result ok".to_owned(),
        RunStreamBody::ToolResult(result) => {
            format!("result {}", result.error.as_ref().map_or("failed", |error| error.code.as_str()))
        }
        RunStreamBody::ToolAttestation(_) => "attestation".to_owned(),
        RunStreamBody::A2uiUpdate(_) => "a2ui".to_owned(),
        RunStreamBody::JournalEvent(event) => event.kind.clone(),
    };
    events.iter().map(name).collect()
}

/// Where an event of this name first stands.
fn position(names: &[String], wanted: &str) -> usize {
    names.iter().position(|name| name == wanted).unwrap_or_else(|| panic!("no `{wanted}` among {names:#?}"))
}
