//! The journal that is tampered with: made by real runs of the real daemon, with segments, artifacts and checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use palyra_client::api::CreateRunParams;
use palyra_testkit::{DaemonOptions, Exit, Followed, Model, Person, TestDaemon, assert_all_runs_replay, copy_tree};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::oracle::{self, Record};

/// Runs before and after the older copy is taken.
const RUNS_BEFORE: u32 = 1;
const RUNS_AFTER: u32 = 2;
/// Turns of each run and calls of each turn: enough records for segments to be sealed, within the limit on calls.
const TURNS: u32 = 8;
const CALLS: u32 = 15;

/// A journal, its records, and copies to replace it by.
pub(super) struct Subject {
    _directory: TempDir,
    /// The state root; never changed, only copied.
    pub(super) root: PathBuf,
    /// Its records, as the oracle sees them.
    pub(super) records: Vec<Record>,
    /// The same state, earlier.
    pub(super) older: PathBuf,
    /// Another state altogether, with its own key.
    pub(super) foreign: PathBuf,
}

pub(super) async fn make() -> Result<Subject> {
    let directory = TempDir::with_prefix("palyra-subject-")?;
    let (root, older, foreign) =
        (directory.path().join("state"), directory.path().join("older"), directory.path().join("foreign"));
    let workspace = directory.path().join("workspace");
    fs::create_dir(&workspace)?;
    fs::write(workspace.join("notes.md"), "a line of notes\n".repeat(400))?;

    work(&root, &workspace, RUNS_BEFORE).await?;
    copy_tree(&root, &older)?;
    work(&root, &workspace, RUNS_AFTER).await?;
    work(&foreign, &workspace, 1).await?;

    let records = oracle::records(&root)?;
    ensure!(records.len() > 1000, "the journal has only {} records", records.len());
    let segments = fs::read_dir(root.join("journal/segments"))?.count();
    ensure!(segments > 0, "the journal has no sealed segment");
    Ok(Subject { _directory: directory, root, records, older, foreign })
}

/// Starts a daemon, runs tasks, stops it in good order.
async fn work(root: &Path, workspace: &Path, runs: u32) -> Result<()> {
    let options = DaemonOptions::new(Model::Scripted(script())).state_root(root);
    let mut daemon = options
        .env("PALYRA_JOURNAL_CHECKPOINT_EVERY", "64")
        .env("PALYRA_JOURNAL_SEGMENT_RECORDS", "1000")
        .env("PALYRA_JOURNAL_INLINE_PAYLOAD_BYTES", "2048")
        .start()
        .await?;
    for _ in 0..runs {
        run(&daemon, workspace).await.with_context(|| daemon.log())?;
    }
    assert_all_runs_replay(&daemon.client()).await?;
    ensure!(daemon.stop().await? == Exit::Code(0), "{}", daemon.log());
    Ok(())
}

async fn run(daemon: &TestDaemon, workspace: &Path) -> Result<()> {
    let client = daemon.client();
    let params = CreateRunParams {
        attachments: Vec::new(),
        objective: None,
        max_attempts: None,
        binding: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_id: None,
        session_key: None,
        prompt: "look and tell".to_owned(),
        workspace: workspace.display().to_string(),
        model: None,
        agent: None,
        mode: None,
        limits: None,
        idempotency_key: None,
    };
    let run = client.create_run(&params).await?;
    ensure!(Person::new(run.run_id).follow(&client).await? == Followed::ToItsEnd);
    Ok(())
}

/// Many small reads: each call leaves half a dozen records, and one of them is large enough to become an artifact.
fn script() -> Value {
    let read = |line: u32| json!({ "tool": "palyra.fs.read", "arguments": { "path": "notes.md", "offset": line, "limit": 1 } });
    let mut turns: Vec<Value> = (0..TURNS)
        .map(|turn| json!({ "text": "Reading.", "call": (1..=CALLS).map(|call| read(turn * CALLS + call)).collect::<Vec<_>>() }))
        .collect();
    turns.push(
        json!({ "text": "All of it.", "call": [{ "tool": "palyra.fs.read", "arguments": { "path": "notes.md" } }] }),
    );
    turns.push(json!({ "text": ["It is ", "all notes."] }));
    json!({ "turn": turns })
}
