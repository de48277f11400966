//! Commands with a key and a daemon that is killed while it carries them out: whoever gives the command again under its key learns what came of it, and it
//! had its effect once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use palyra_client::api::{JournalRecordView, ListRunsParams, TailJournalParams};
use palyra_client::{Follow, command};
use palyra_common::{AcpCommand, CommandEffect, RequestId, RunId, RunLifecyclePhase, StableErrorEnvelope};
use palyra_testkit::{DaemonOptions, Exit, Kill, Model, TestDaemon, copy_tree, strace_is_usable};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::command_cases::{SAMPLE, Sweep, sweep_of};
use super::point::broken_off;
use super::{LOG, LONGEST_SWEEP, SIGKILL, is_whole};
use crate::system::{task, wait_for_phase};

/// Waiting for the disk to take a commit: killed there, the commit may or may not be found afterwards.
const COMMIT: &str = "fdatasync,fsync";

/// Records that say what holds, such as who handed over which bytes: said again, they change nothing.
const FACTS: [&str; 1] = ["attachment.added"];

/// A state in which a run waits for an answer, a place is bound to its session, another session has a form, and there are a token and a granted directory.
pub(super) struct Waiting {
    directory: TempDir,
    pub(super) run_id: RunId,
    pub(super) session_id: String,
    pub(super) idle_session_id: String,
    pub(super) approval_id: String,
    pub(super) binding_id: String,
    pub(super) canvas_id: String,
    pub(super) token_id: String,
    pub(super) granted: String,
    /// Records that every life of a daemon writes by itself.
    own: BTreeSet<String>,
    last_seq: u64,
}

impl Waiting {
    pub(super) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }
}

/// What a command came to, or why it was refused.
type Answer = std::result::Result<Value, StableErrorEnvelope>;

/// A command, and the records on the tape of the run that it leaves once.
struct Case {
    command: AcpCommand,
    params: Value,
    leaves: Option<&'static str>,
}

/// What a command left on the journal beside tapes: kinds of records and how many, and how many runs there are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Left {
    records: BTreeMap<String, usize>,
    runs: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_between_effect_and_answer_neither_repeats_nor_hides_a_command() {
    assert!(strace_is_usable(), "this needs strace: apt-get install strace (and ptrace permitted)");
    let waiting = waiting().await.unwrap();
    let whole = is_whole();
    for command in AcpCommand::ALL.iter().copied() {
        let Some(spec) = command::spec(command) else { continue };
        let streams = command::STREAM_COMMANDS.iter().any(|spec| spec.name == command);
        if spec.effect == CommandEffect::Read || streams {
            continue;
        }
        let (params, leaves) = match sweep_of(command, &waiting) {
            Sweep::Given { params, leaves } => (params, leaves),
            Sweep::NotHere(why) => {
                println!("{command}: not here: {why}");
                continue;
            }
        };
        if !whole && !SAMPLE.contains(&command) {
            continue;
        }
        let case = Case { command, params, leaves };
        let mut at = 1;
        let mut left = BTreeMap::new();
        loop {
            let (killed, now) = give(&waiting, &case, at).await.with_context(|| format!("{command} {at}")).unwrap();
            left.insert(at, now);
            if !killed {
                break;
            }
            at += 1;
            assert!(at < LONGEST_SWEEP, "no command got by unkilled");
        }
        println!("{command}: killed at {} commits", at - 1);
        assert!(at > 1, "{command}: no commit");
        let unkilled = left[&at].clone();
        for (at, now) in left {
            assert_eq!(now, unkilled, "{command}: killed at commit {at}, it left something else than unkilled");
        }
    }
}

async fn waiting() -> Result<Waiting> {
    let directory = TempDir::with_prefix("palyra-commands-")?;
    let workspace = directory.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    let call = json!({"tool": "palyra.fs.write", "arguments": {"path": "a.txt", "content": "x"}});
    let fields = json!([{"type": "text", "name": "city", "label": "City", "required": true}]);
    let page = json!({"title": "A trip", "document": {"root": {"type": "form", "id": "trip", "fields": fields}}});
    let draw = json!({"tool": "palyra.a2ui.render", "arguments": page});
    let script = json!({"script": [
        {"when": "draw it", "turn": [{"call": [draw]}, {"text": "drawn"}]},
        {"turn": [{"call": [call]}, {"text": "done"}]},
    ]});
    let options = DaemonOptions::new(Model::Scripted(script)).state_root(&directory.path().join("state"));
    let mut daemon = options.env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write").start().await?;
    let client = daemon.client();
    let drawn = client.create_run(&task("draw it", &workspace)).await?;
    wait_for_phase(&client, drawn.run_id, RunLifecyclePhase::Completed).await;
    let canvases = ask(&daemon, AcpCommand::CanvasList, &json!({}), "look").await??;
    let canvas_id = canvases["canvases"][0]["canvas_id"].as_str().context("a canvas")?.to_owned();
    let run = client.create_run(&task("write it", &workspace)).await?;
    wait_for_phase(&client, run.run_id, RunLifecyclePhase::WaitingForApproval).await;
    let asked = client.run(run.run_id).await?.pending_approvals;
    let approval_id = asked.first().context("a question is open")?.approval_id.to_string();
    let place = json!({"place": {"channel": "editor"}, "session_id": run.session_id});
    let bound = ask(&daemon, AcpCommand::BindingSet, &place, "bind").await??;
    let binding_id = bound["binding_id"].as_str().context("bound")?.to_owned();
    let create = json!({"request_id": RequestId::generate(), "command": AcpCommand::TokenCreate, "params": {"name": "t", "role": "viewer"}});
    let created = client.envelope(&serde_json::from_value(create)?).await?.into_outcome()?;
    let token_id = created["token"]["token_id"].as_str().context("created")?.to_owned();
    let granted = workspace.display().to_string();
    ask(&daemon, AcpCommand::WorkspaceGrant, &json!({"principal": "ci", "path": granted}), "grant").await??;
    ensure!(daemon.stop().await? == Exit::Code(0));
    // What two lives write in which nobody asks for anything.
    daemon.restart().await?;
    let before = records(&daemon, 1).await?;
    let last_seq = before.last().map_or(0, |record| record.seq);
    daemon.kill9()?;
    daemon.restart().await?;
    ensure!(daemon.stop().await? == Exit::Code(0));
    daemon.restart().await?;
    let own = records(&daemon, last_seq + 1).await?.into_iter().map(|record| record.kind).collect();
    let last_seq = records(&daemon, 1).await?.last().map_or(0, |record| record.seq);
    ensure!(daemon.stop().await? == Exit::Code(0));
    Ok(Waiting {
        directory,
        run_id: run.run_id,
        session_id: run.session_id.to_string(),
        idle_session_id: drawn.session_id.to_string(),
        approval_id,
        binding_id,
        canvas_id,
        token_id,
        granted,
        own,
        last_seq,
    })
}

async fn records(daemon: &TestDaemon, from: u64) -> Result<Vec<JournalRecordView>> {
    let params = TailJournalParams { from_seq: Some(from), ..TailJournalParams::default() };
    let mut lines = daemon.client().journal_tail(&params).await?;
    let mut records = Vec::new();
    while let Some(record) = lines.next().await? {
        records.push(record);
    }
    Ok(records)
}

/// Everything that is on the journal since the command was given, but for tapes, what a daemon writes by itself, and what is noted about the key.
async fn left(waiting: &Waiting, daemon: &TestDaemon) -> Result<Left> {
    let mut left = Left { records: BTreeMap::new(), runs: 0 };
    for record in records(daemon, waiting.last_seq + 1).await? {
        let about_key = record.kind.starts_with("command.");
        if record.run_id.is_none() && !about_key && !waiting.own.contains(&record.kind) {
            let fact = FACTS.contains(&record.kind.as_str());
            let count = left.records.entry(record.kind).or_default();
            *count = if fact { 1 } else { *count + 1 };
        }
    }
    left.runs = daemon.client().runs(&ListRunsParams::default()).await?.runs.len();
    Ok(left)
}

async fn ask(daemon: &TestDaemon, command: AcpCommand, params: &Value, key: &str) -> Result<Answer> {
    let request = json!({
        "request_id": RequestId::generate(), "command": command, "params": params, "idempotency_key": key,
    });
    Ok(daemon.client().envelope(&serde_json::from_value(request)?).await?.into_outcome())
}

/// Gives a command to a daemon that is killed at one commit, again and again until it is answered; says whether it was killed, and what it left.
async fn give(waiting: &Waiting, case: &Case, at: u32) -> Result<(bool, Left)> {
    let state = TempDir::with_prefix("palyra-commands-state-")?;
    let root = state.path().join("state");
    copy_tree(&waiting.directory.path().join("state"), &root)?;
    let kill = Kill { calls: COMMIT, files: LOG, at };
    let script = json!({"turn": [{"text": "done"}]});
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).state_root(&root).killed_at(kill).spawn()?;
    let given = give_until_answered(&mut daemon, case).await;
    let mut killed = given.with_context(|| daemon.log())?;
    let left = loop {
        match look(waiting, case, &daemon).await {
            Ok(left) => break left,
            // What the command began goes on, and may be what is killed while we look.
            Err(error) if !killed && broken_off(&error) => {
                let exit = daemon.wait_exit().await?;
                ensure!(exit == Exit::Signal(SIGKILL), "the daemon ended with {exit:?}");
                killed = true;
                daemon.respawn(None)?;
                daemon.wait_healthy().await?;
            }
            Err(error) => return Err(error),
        }
    };
    daemon.stop().await?;
    daemon.verify_journal()?;
    Ok((killed, left))
}

/// Checks that the command had its effect once; says what it left.
async fn look(waiting: &Waiting, case: &Case, daemon: &TestDaemon) -> Result<Left> {
    if let Some(kind) = case.leaves {
        let found = on_tape(daemon, waiting.run_id, kind).await?;
        ensure!(found == 1, "{found} records of {kind}");
    }
    // The same key once more gives the same answer and nothing else.
    let again = ask(daemon, case.command, &case.params, "key").await?;
    ensure!(again.is_ok(), "{again:?}");
    let queued = ask(daemon, AcpCommand::SessionQueue, &json!({"session_id": waiting.session_id}), "look").await??;
    let inputs = queued["inputs"].as_array().map_or(0, Vec::len);
    ensure!(inputs == usize::from(case.command == AcpCommand::SessionInput), "{inputs} inputs wait");
    left(waiting, daemon).await
}

async fn give_until_answered(daemon: &mut TestDaemon, case: &Case) -> Result<bool> {
    let mut killed = false;
    loop {
        if daemon.wait_healthy().await.is_ok() {
            match ask(daemon, case.command, &case.params, "key").await {
                Ok(Ok(_)) => return Ok(killed),
                Ok(Err(refused)) => bail!("{refused:?}"),
                Err(_) => {}
            }
        }
        let exit = daemon.wait_exit().await?;
        ensure!(exit == Exit::Signal(SIGKILL) && !killed, "the daemon ended with {exit:?}");
        killed = true;
        daemon.respawn(None)?;
    }
}

async fn on_tape(daemon: &TestDaemon, run_id: RunId, kind: &str) -> Result<usize> {
    let mut tape = daemon.client().tape(run_id, 1, Follow::No);
    let mut found = 0;
    while let Some(event) = tape.next().await? {
        let event = serde_json::to_value(&event)?;
        let answered = kind == "approval.decided" && event.get("tool_approval_response").is_some();
        found += usize::from(answered || event["journal_event"]["kind"] == kind);
    }
    Ok(found)
}
