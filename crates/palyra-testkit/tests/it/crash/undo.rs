//! Undoing is an effect, too: a daemon that is killed in the middle of it finishes it when it is asked again, and never does it twice.

use anyhow::{Context as _, Result, bail, ensure};
use palyra_client::{Client, ClientError};
use palyra_common::RunId;
use palyra_testkit::{
    DaemonOptions, Exit, Followed, Kill, Model, Person, TestDaemon, Tree, assert_all_runs_replay, copy_tree,
    strace_is_usable,
};
use tempfile::TempDir;

use super::point::{create, write_files};
use super::scenario::{Scenario, all_in_one_turn};

/// What undoing does to files, call by call.
const KINDS: [&str; 3] = ["fdatasync,fsync", "rename,renameat,renameat2", "unlink,unlinkat"];
const LONGEST_SWEEP: u32 = 200;

/// A state in which a run is over, and the workspace as it left it.
struct Finished {
    directory: TempDir,
    run_id: RunId,
    before: Tree,
    after: Tree,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_in_the_middle_of_an_undo_leaves_all_or_nothing_of_it() {
    assert!(strace_is_usable(), "this needs strace: apt-get install strace (and ptrace permitted)");
    let finished = finished().await.unwrap();
    let mut points = 0;
    for calls in KINDS {
        let mut at = 1;
        while try_undo(&finished, &Kill { calls, files: &[], at })
            .await
            .with_context(|| format!("{calls} {at}"))
            .unwrap()
        {
            points += 1;
            at += 1;
            assert!(at < LONGEST_SWEEP, "no undo got by unkilled");
        }
    }
    println!("undo: killed at {points} points");
    assert!(points > 10, "only {points} points");
}

/// Changes three files by a run, with the workspace inside the directory that is copied for each point.
async fn finished() -> Result<Finished> {
    let directory = TempDir::with_prefix("palyra-undo-")?;
    let workspace = directory.path().join("workspace");
    let Scenario { before: files, script, .. } = all_in_one_turn();
    write_files(&workspace, files)?;
    let before = Tree::of(&workspace)?;
    // Only the calls that change files: the others need a receiver.
    let mut turn = script["turn"][0].clone();
    let calls = turn["call"].as_array_mut().context("the turn makes calls")?;
    calls.retain(|call| call["tool"].as_str().is_some_and(|tool| tool.starts_with("palyra.")));
    let script = serde_json::json!({ "turn": [turn, { "text": "done" }] });
    let root = directory.path().join("state");
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).state_root(&root).start().await?;
    let client = daemon.client();
    let run_id = create(&client, &workspace).await?.context("the run was not created")?;
    ensure!(Person::new(run_id).follow(&client).await? == Followed::ToItsEnd);
    ensure!(daemon.stop().await? == Exit::Code(0));
    let after = Tree::of(&workspace)?;
    ensure!(after != before, "the run changed nothing");
    Ok(Finished { directory, run_id, before, after })
}

/// Undoes on a daemon that is killed at one place; says whether it was.
async fn try_undo(finished: &Finished, kill: &Kill) -> Result<bool> {
    // The workspace has to stay where the run knows it, so it is put back into the same place each time.
    let workspace = finished.directory.path().join("workspace");
    let kept = TempDir::new()?;
    copy_tree(&workspace, kept.path())?;
    let state = TempDir::with_prefix("palyra-undo-state-")?;
    let root = state.path().join("state");
    copy_tree(&finished.directory.path().join("state"), &root)?;
    let mut daemon = DaemonOptions::new(Model::Offline).state_root(&root).killed_at(kill.clone()).spawn()?;
    let outcome = undo_until_done(&mut daemon, finished.run_id).await.with_context(|| daemon.log());
    let found = Tree::of(&workspace)?;
    std::fs::remove_dir_all(&workspace)?;
    copy_tree(kept.path(), &workspace)?;
    ensure!(Tree::of(&workspace)? == finished.after, "the workspace was not put back for the next point");
    let killed = outcome?;
    ensure!(found == finished.before, "undo left {:?}", found.names());
    daemon.verify_journal()?;
    Ok(killed)
}

async fn undo_until_done(daemon: &mut TestDaemon, run_id: RunId) -> Result<bool> {
    let client = daemon.client();
    let mut killed = false;
    for _ in 0..3 {
        if daemon.wait_healthy().await.is_ok() && undone(&client, run_id).await? {
            assert_all_runs_replay(&client).await?;
            let exit = daemon.stop().await?;
            if exit == Exit::Code(0) {
                return Ok(killed);
            }
            ensure!(exit == Exit::Signal(9) && !killed, "the daemon ended with {exit:?}");
        } else {
            let exit = daemon.wait_exit().await?;
            ensure!(exit == Exit::Signal(9) && !killed, "the daemon ended with {exit:?}");
        }
        killed = true;
        daemon.respawn(None)?;
    }
    bail!("the undo was never done")
}

/// Asks for the undo; false when the daemon went away.
async fn undone(client: &Client, run_id: RunId) -> Result<bool> {
    match client.undo_run(run_id).await {
        Ok(_) => {}
        // Done by the attempt that was killed before it could answer.
        Err(ClientError::Refused(envelope)) if envelope.message.contains("undone before") => {}
        Err(error) if error.is_connection_trouble() => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    ensure!(client.run(run_id).await?.run.undone, "an undone run does not say so");
    Ok(true)
}
