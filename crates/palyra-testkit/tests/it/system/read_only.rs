//! A state root on a file system that is mounted read-only: whoever needs a daemon is told why there is none, and what is on the journal can be read.
//!
//! The file system is mounted again, read-only, in a namespace of the commands' own, which an ordinary user may do as well.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use palyra_common::RunLifecyclePhase;
use palyra_testkit::{Binary, DaemonOptions, Model, TestContext};
use serde_json::{Value, json};

use super::{finish, task, workspace};

/// Runs a command of this home where its state root is read-only.
fn read_only(context: &TestContext, program: Binary, arguments: &[&str]) -> Output {
    read_only_in(context, &context.state_root(), program, arguments)
}

fn read_only_in(context: &TestContext, root: &Path, program: Binary, arguments: &[&str]) -> Output {
    let script = r#"mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 99
        shift; exec "$@""#;
    let inner = context.command(arguments).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(root).arg(program.path().unwrap()).args(arguments);
    command.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(context.workspace()).stdin(std::process::Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Everything below a directory, with its bytes.
fn contents(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap_or_default()));
        }
    }
    found.sort();
}

/// Why namespaces cannot be had here, if they cannot.
fn unavailable() -> Option<String> {
    let tried = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).output();
    match tried {
        Ok(tried) if tried.status.success() => None,
        Ok(tried) => Some(said(&tried)),
        Err(error) => Some(error.to_string()),
    }
}

/// A home whose state has a finished run.
fn home(stop: &[&str]) -> TestContext {
    let context = TestContext::new().unwrap().scripted(&json!({ "turn": [{ "text": "done" }] })).unwrap();
    let run = context.run(["run", "something"]).unwrap();
    assert_eq!(run.code, 0, "{run}");
    let stopped = context.run(stop.iter().copied()).unwrap();
    assert_eq!(stopped.code, 0, "{stopped}");
    context
}

#[test]
fn a_start_says_why_nothing_can_be_written_and_changes_nothing() {
    let context = home(&["daemon", "stop"]);
    if let Some(why) = unavailable() {
        println!("skipped: no mount namespace can be had here: {why}");
        return;
    }
    let (mut before, mut after) = (Vec::new(), Vec::new());
    contents(&context.state_root(), &mut before);
    let daemon = read_only(&context, Binary::Palyrad, &[]);
    assert_eq!(daemon.status.code(), Some(4), "{}", said(&daemon));
    for part in ["is mounted read-only", "[state_read_only]", "hint: remount it read-write"] {
        assert!(said(&daemon).contains(part), "{part}: {}", said(&daemon));
    }
    // Whoever needs a daemon hears its reason.
    for arguments in [&["runs", "list"][..], &["run", "more"]] {
        let refused = read_only(&context, Binary::Palyra, arguments);
        assert!(!refused.status.success(), "{}", said(&refused));
        assert!(said(&refused).contains("[state_read_only]"), "{arguments:?}: {}", said(&refused));
    }
    contents(&context.state_root(), &mut after);
    assert_eq!(before, after, "something was changed");
}

#[test]
fn the_journal_can_be_read_and_verified_where_nothing_can_be_written() {
    let context = home(&["daemon", "stop"]);
    if let Some(why) = unavailable() {
        println!("skipped: no mount namespace can be had here: {why}");
        return;
    }
    let verified = read_only(&context, Binary::Palyra, &["journal", "verify", "--offline", "--output", "json"]);
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert!(report["records"].as_u64().unwrap() > 0 && report["problems"].as_array().unwrap().is_empty(), "{report}");
    let exported = read_only(&context, Binary::Palyra, &["journal", "export"]);
    assert!(exported.status.success(), "{}", said(&exported));
    let lines = String::from_utf8(exported.stdout).unwrap().lines().count() as u64;
    assert_eq!(lines, report["records"].as_u64().unwrap());
    let tail = read_only(&context, Binary::Palyra, &["journal", "tail", "-n", "3"]);
    assert!(tail.status.success() && said(&tail).lines().count() == 3, "{}", said(&tail));
    context.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_daemon_left_can_be_read_where_nothing_can_be_written() {
    let mut daemon =
        DaemonOptions::new(Model::Scripted(json!({ "turn": [{ "text": "done" }] }))).start().await.unwrap();
    let place = workspace();
    let run = daemon.client().create_run(&task("something", place.path())).await.unwrap();
    let (detail, _) = finish(&daemon.client(), run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed);
    daemon.kill9().unwrap();
    let root = daemon.state_root().to_owned();
    assert!(fs::metadata(root.join("journal/journal.db-wal")).unwrap().len() > 0, "nothing is left in the log");
    let context = TestContext::new().unwrap().env("PALYRA_STATE_ROOT", root.display());
    if let Some(why) = unavailable() {
        println!("skipped: no mount namespace can be had here: {why}");
        return;
    }
    let exported = read_only_in(&context, &root, Binary::Palyra, &["journal", "export"]);
    assert!(exported.status.success(), "{}", said(&exported));
    let text = String::from_utf8(exported.stdout).unwrap();
    assert!(text.contains(&run.run_id.to_string()), "the newest records are missing");
    let verified =
        read_only_in(&context, &root, Binary::Palyra, &["journal", "verify", "--offline", "--output", "json"]);
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert!(report["problems"].as_array().unwrap().is_empty(), "{report}");
    assert_eq!(report["records"].as_u64().unwrap(), text.lines().count() as u64);
    daemon.restart().await.unwrap();
    daemon.finish().await.unwrap();
}
