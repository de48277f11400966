//! Commands with a key and a daemon that is killed while it carries them out: whoever gives the command again under its key learns what came of it, and it
//! had its effect once.

use anyhow::{Context as _, Result, bail, ensure};
use palyra_client::Follow;
use palyra_common::{AcpCommand, RequestId, RunId, RunLifecyclePhase, StableErrorEnvelope};
use palyra_testkit::{DaemonOptions, Exit, Kill, Model, TestDaemon, copy_tree, strace_is_usable};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{LOG, LONGEST_SWEEP, SIGKILL};
use crate::system::{task, wait_for_phase};

/// Waiting for the disk to take a commit: killed there, the commit may or may not be found afterwards.
const COMMIT: &str = "fdatasync,fsync";

/// A state in which a run waits for an answer, a place is bound to its session, and there are a token and a granted directory.
struct Waiting {
    directory: TempDir,
    run_id: RunId,
    session_id: String,
    approval_id: String,
    binding_id: String,
    token_id: String,
    granted: String,
}

/// What a command came to, or why it was refused.
type Answer = std::result::Result<Value, StableErrorEnvelope>;

/// A command, and the records on the tape of the run that it leaves once.
struct Case {
    command: AcpCommand,
    params: Value,
    leaves: Option<&'static str>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_between_effect_and_answer_neither_repeats_nor_hides_a_command() {
    assert!(strace_is_usable(), "this needs strace: apt-get install strace (and ptrace permitted)");
    let waiting = waiting().await.unwrap();
    let (run, session) = (json!(waiting.run_id), json!(waiting.session_id));
    let case = |command, params, leaves| Case { command, params, leaves };
    let cases = [
        case(AcpCommand::RunPause, json!({"run_id": run}), Some("run.pause")),
        case(
            AcpCommand::RunInput,
            json!({"run_id": run, "text": "more", "mode": "follow_up"}),
            Some("run.user_message"),
        ),
        case(AcpCommand::RunAbort, json!({"run_id": run}), Some("run.cancel")),
        case(AcpCommand::SessionInput, json!({"session_id": session, "text": "and then"}), None),
        case(
            AcpCommand::ApprovalDecide,
            json!({"approval_id": waiting.approval_id, "decision": "deny", "scope": "once"}),
            Some("approval.decided"),
        ),
        case(AcpCommand::BindingRemove, json!({"binding_id": waiting.binding_id}), None),
        case(AcpCommand::EventAppend, json!({"kind": "client.test", "payload": {}}), None),
        case(AcpCommand::TokenRevoke, json!({"token_id": waiting.token_id}), None),
        case(AcpCommand::WorkspaceRevoke, json!({"principal": "ci", "path": waiting.granted}), None),
    ];
    for case in &cases {
        let mut at = 1;
        while give(&waiting, case, at).await.with_context(|| format!("{} {at}", case.command)).unwrap() {
            at += 1;
            assert!(at < LONGEST_SWEEP, "no command got by unkilled");
        }
        println!("{}: killed at {} commits", case.command, at - 1);
        assert!(at > 3, "{}: a command with a key has at least three commits", case.command);
    }
}

async fn waiting() -> Result<Waiting> {
    let directory = TempDir::with_prefix("palyra-commands-")?;
    let workspace = directory.path().join("workspace");
    std::fs::create_dir(&workspace)?;
    let call = json!({"tool": "palyra.fs.write", "arguments": {"path": "a.txt", "content": "x"}});
    let script = json!({"turn": [{"call": [call]}, {"text": "done"}]});
    let options = DaemonOptions::new(Model::Scripted(script)).state_root(&directory.path().join("state"));
    let mut daemon = options.env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write").start().await?;
    let client = daemon.client();
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
    let (run_id, session_id) = (run.run_id, run.session_id.to_string());
    Ok(Waiting { directory, run_id, session_id, approval_id, binding_id, token_id, granted })
}

async fn ask(daemon: &TestDaemon, command: AcpCommand, params: &Value, key: &str) -> Result<Answer> {
    let request = json!({
        "request_id": RequestId::generate(), "command": command, "params": params, "idempotency_key": key,
    });
    Ok(daemon.client().envelope(&serde_json::from_value(request)?).await?.into_outcome())
}

/// Gives a command to a daemon that is killed at one commit, again and again until it is answered; says whether it was killed.
async fn give(waiting: &Waiting, case: &Case, at: u32) -> Result<bool> {
    let state = TempDir::with_prefix("palyra-commands-state-")?;
    let root = state.path().join("state");
    copy_tree(&waiting.directory.path().join("state"), &root)?;
    let kill = Kill { calls: COMMIT, files: LOG, at };
    let script = json!({"turn": [{"text": "done"}]});
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).state_root(&root).killed_at(kill).spawn()?;
    let given = give_until_answered(&mut daemon, case).await;
    let killed = given.with_context(|| daemon.log())?;
    if let Some(kind) = case.leaves {
        let found = on_tape(&daemon, waiting.run_id, kind).await?;
        ensure!(found == 1, "{found} records of {kind}");
    }
    // The same key once more gives the same answer and nothing else.
    let again = ask(&daemon, case.command, &case.params, "key").await?;
    ensure!(again.is_ok(), "{again:?}");
    let queued = ask(&daemon, AcpCommand::SessionQueue, &json!({"session_id": waiting.session_id}), "look").await??;
    let inputs = queued["inputs"].as_array().map_or(0, Vec::len);
    ensure!(inputs == usize::from(case.command == AcpCommand::SessionInput), "{inputs} inputs wait");
    daemon.stop().await?;
    daemon.verify_journal()?;
    Ok(killed)
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
