//! One fault: a daemon with a run, an attachment and a backup, one of whose system calls fails; then a daemon without faults on what is left.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use palyra_client::api::BackupJournalParams;
use palyra_client::{Client, ClientError, Follow};
use palyra_common::{AcpCommand, RequestId, RunId, RunLifecyclePhase, RunStreamEvent};
use palyra_testkit::{
    DaemonOptions, Exit, FaultDuration, Followed, Model, Person, SyscallFault, TestDaemon, assert_all_runs_replay,
    copy_tree,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a daemon whose disk never recovers is given commands.
const LASTING_FAULT: Duration = Duration::from_secs(2);
/// How long a command may be refused after a single error.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Calls that failed.
    pub(super) failed: usize,
    /// Calls of the class that one thread made.
    pub(super) calls: u32,
    /// Names of the calls of the class that were about the journal or an artifact.
    pub(super) names: BTreeSet<String>,
    pub(super) failure: Option<String>,
}

/// A state that a daemon made and left in good order.
pub(super) struct Template(TempDir);

impl Template {
    pub(super) async fn make() -> Result<Self> {
        let directory = TempDir::with_prefix("palyra-faults-template-")?;
        let workspace = directory.path().join("workspace");
        std::fs::create_dir(&workspace)?;
        let mut daemon = options(&directory.path().join("state")).start().await?;
        let mut work = Work::new(&workspace);
        work.finish(&daemon).await?;
        ensure!(daemon.stop().await? == Exit::Code(0));
        Ok(Self(directory))
    }
}

fn options(state_root: &Path) -> DaemonOptions {
    let text = "a text that is too long for a row of the journal and becomes an artifact ".repeat(20);
    let write = json!({ "tool": "palyra.fs.write", "arguments": { "path": "made.txt", "content": text } });
    let script = json!({ "turn": [{ "call": [write] }, { "text": "done" }] });
    DaemonOptions::new(Model::Scripted(script))
        .state_root(state_root)
        .env("PALYRA_JOURNAL_INLINE_PAYLOAD_BYTES", "1024")
}

pub(super) async fn try_point(template: &Template, fault: &SyscallFault) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(error) = attempt(template, fault, &mut outcome).await {
        outcome.failure = Some(format!("{error:#}"));
    }
    outcome
}

async fn attempt(template: &Template, fault: &SyscallFault, outcome: &mut Outcome) -> Result<()> {
    let directory = TempDir::with_prefix("palyra-faults-")?;
    let (workspace, root) = (directory.path().join("workspace"), directory.path().join("state"));
    std::fs::create_dir(&workspace)?;
    copy_tree(&template.0.path().join("state"), &root)?;
    let mut daemon = options(&root).failing_at(fault.clone()).spawn()?;
    let mut work = Work::new(&workspace);
    let faulty = with_fault(&mut daemon, &mut work, fault, directory.path()).await;
    let traced = daemon.traced();
    (outcome.failed, outcome.calls) = (traced.failed, traced.most_of_a_thread);
    outcome.names = daemon.traced_calls(&["journal", "journal.anchor", "artifacts"]);
    faulty.with_context(|| daemon.log())?;
    without_fault(&mut daemon, &mut work).await.with_context(|| daemon.log())
}

/// The life in which calls fail. It may end early, but in good order.
async fn with_fault(daemon: &mut TestDaemon, work: &mut Work, fault: &SyscallFault, directory: &Path) -> Result<()> {
    if let Err(error) = daemon.wait_healthy().await {
        // Whoever cannot start says why and ends; nobody crashes, and nobody hangs.
        return match daemon.exited()? {
            Some(Exit::Code(code)) if code != 0 => Ok(()),
            _ => Err(error),
        };
    }
    match fault.lasts {
        FaultDuration::Once => {
            work.finish(daemon).await?;
            back_up(daemon, directory).await?;
        }
        FaultDuration::Lasting => {
            let tried = async {
                let _ = work.finish(daemon).await;
                back_up(daemon, directory).await
            };
            if let Ok(backed_up) = tokio::time::timeout(LASTING_FAULT, tried).await {
                backed_up?;
            }
        }
    }
    match daemon.stop().await? {
        Exit::Code(_) => Ok(()),
        exit @ Exit::Signal(_) => bail!("the daemon ended with {exit:?}"),
    }
}

/// A backup may be refused; one that was acknowledged can be restored.
async fn back_up(daemon: &TestDaemon, directory: &Path) -> Result<()> {
    let (dest, restored) = (directory.join("backup"), directory.join("restored"));
    let params = BackupJournalParams { dest: dest.display().to_string() };
    if daemon.client().journal_backup(&params).await.is_ok() {
        let now = palyra_common::Clock::now(&palyra_common::SystemClock);
        palyra_journal::restore(&dest, &restored, now).context("restoring a backup that was acknowledged")?;
    }
    Ok(())
}

/// The next life: everything that was acknowledged is there, and what was not done can be done.
async fn without_fault(daemon: &mut TestDaemon, work: &mut Work) -> Result<()> {
    daemon.restart().await.context("starting again without faults")?;
    work.finish(daemon).await.context("without faults")?;
    work.judge(&daemon.client()).await?;
    assert_all_runs_replay(&daemon.client()).await?;
    let exit = daemon.stop().await?;
    ensure!(exit == Exit::Code(0), "the daemon ended with {exit:?}");
    daemon.verify_journal()
}

/// An attachment and a run with it, each under its key.
struct Work {
    workspace: String,
    attachment: Option<Value>,
    run: Option<(RunId, Person)>,
    over: bool,
}

impl Work {
    fn new(workspace: &Path) -> Self {
        Self { workspace: workspace.display().to_string(), attachment: None, run: None, over: false }
    }

    /// Gives all commands that were not acknowledged yet and follows the run to its end.
    async fn finish(&mut self, daemon: &TestDaemon) -> Result<()> {
        let client = daemon.client();
        if self.attachment.is_none() {
            let params = json!({ "name": "notes.txt", "data": "aGVsbG8gaGVsbG8g".repeat(200) });
            self.attachment = Some(given(&client, AcpCommand::AttachmentAdd, &params, "attach").await?);
        }
        if self.run.is_none() {
            let params = json!({
                "prompt": "write it", "workspace": self.workspace, "attachments": [self.attachment],
            });
            let run = given(&client, AcpCommand::RunCreate, &params, &format!("run in {}", self.workspace)).await?;
            let run_id: RunId = run["run_id"].as_str().context("a run has an id")?.parse()?;
            self.run = Some((run_id, Person::new(run_id)));
        }
        let Some((_, person)) = &mut self.run else { bail!("there is no run") };
        let began = Instant::now();
        while !self.over {
            match person.follow(&client).await {
                Ok(Followed::ToItsEnd) => self.over = true,
                // Reading the tape failed, or answering did: the run itself goes on.
                Ok(Followed::UntilItBroke) if began.elapsed() < PATIENCE => {}
                Err(error) if refused(&error) && began.elapsed() < PATIENCE => {}
                Ok(Followed::UntilItBroke) => bail!("the run's tape cannot be read"),
                Err(error) => return Err(error),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn judge(&self, client: &Client) -> Result<()> {
        let (run_id, person) = self.run.as_ref().context("the run was created")?;
        let run = client.run(*run_id).await?.run;
        ensure!(run.phase == RunLifecyclePhase::Completed, "the run is {}: {:?}", run.phase, run.detail);
        let mut tape = client.tape(*run_id, 1, Follow::No);
        let mut events: Vec<RunStreamEvent> = Vec::new();
        while let Some(event) = tape.next().await? {
            events.push(event);
        }
        ensure!(events == person.seen(), "{} events were seen, {} are there", person.seen().len(), events.len());
        Ok(())
    }
}

fn refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ClientError>(), Some(ClientError::Refused(_)))
}

/// Gives a command under its key until it is carried out. Being refused because the disk failed is honest; not knowing is not.
async fn given(client: &Client, command: AcpCommand, params: &Value, key: &str) -> Result<Value> {
    let began = Instant::now();
    loop {
        let envelope = json!({
            "request_id": RequestId::generate(), "command": command, "params": params, "idempotency_key": key,
        });
        let refusal = match client.envelope(&serde_json::from_value(envelope)?).await {
            Ok(answer) => match answer.into_outcome() {
                Ok(value) => return Ok(value),
                Err(refusal) if refusal.code == "command_outcome_unknown" => bail!("{refusal:?}"),
                Err(refusal) => format!("{refusal:?}"),
            },
            Err(error) => error.to_string(),
        };
        ensure!(began.elapsed() < PATIENCE, "{command} is refused for good: {refusal}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
