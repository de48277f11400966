//! A full disk: new work is refused, work under way waits, nothing accepted is lost, and all goes on when there is room again.
//!
//! The state root lies on a small file system of its own, mounted in a namespace of the daemon, so no privilege is needed.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use palyra_client::api::VerifyLine;
use palyra_client::{Client, ClientError};
use palyra_common::{HealthStatus, RunLifecyclePhase};
use palyra_testkit::{Binary, DaemonOptions, Exit, Model, Receiver, probe};
use serde_json::json;
use tempfile::TempDir;

use super::{PATIENCE, call, finish, names, task, workspace};

const MEGABYTE: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_new_work_and_loses_nothing() {
    let receiver = Receiver::start().unwrap();
    let script = json!({ "turn": [
        call("probe.once", json!({ "n": 1 })),
        call("probe.repeatable", json!({ "n": 2 })),
        { "text": "done" },
    ] });
    let mut daemon = DaemonOptions::new(Model::Scripted(script))
        .binary(Binary::PalyradProbe)
        .env(probe::SOCKET_VARIABLE, receiver.socket())
        .env("PALYRA_JOURNAL_MIN_FREE_BYTES", (2 * MEGABYTE).to_string())
        .on_a_disk_of(24 * MEGABYTE as u64)
        .spawn()
        .unwrap();
    daemon.wait_healthy().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());

    receiver.hold();
    let run = client.create_run(&task("two effects", workspace.path())).await.unwrap();
    assert!(receiver.wait_for(1, PATIENCE), "{}", daemon.log());
    let filler = fill(&daemon.seen_root());
    receiver.release();

    let refused = client.create_run(&task("more", workspace.path())).await.unwrap_err();
    let ClientError::Refused(envelope) = &refused else { panic!("{refused}") };
    assert_eq!(envelope.code, "disk_full", "{envelope:?}");
    assert!(envelope.recovery_hint.is_some());
    wait_until_it_waits(&daemon.log_path()).await;
    assert_eq!(receiver.deliveries().len(), 1, "an effect happened whose intent could not be recorded");

    fs::remove_file(filler).unwrap();
    let (detail, events) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{:#?}\n{}", names(&events), daemon.log());
    assert_eq!(receiver.deliveries().len(), 2);
    assert!(client.replay_run(run.run_id).await.unwrap().identical);
    assert_sound(&client).await;
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0), "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_full_disk_serves_what_is_there_and_says_why() {
    let home = TempDir::with_prefix("palyra-full-").unwrap();
    let (state, workspace) = (home.path().join("state"), workspace());
    let options = || {
        DaemonOptions::new(Model::Scripted(json!({ "turn": [{ "text": "done" }] })))
            .env("PALYRA_JOURNAL_MIN_FREE_BYTES", (2 * MEGABYTE).to_string())
    };
    let mut daemon = options().state_root(&state).start().await.unwrap();
    let run = daemon.client().create_run(&task("before", workspace.path())).await.unwrap();
    finish(&daemon.client(), run.run_id).await;
    daemon.stop().await.unwrap();

    let mut daemon = options().on_a_full_disk_of(32 * MEGABYTE as u64, &state).spawn().unwrap();
    daemon.wait_healthy().await.unwrap();
    let health = daemon.client().health().await.unwrap();
    let journal = health.components.iter().find(|component| component.component == "journal").unwrap();
    assert_eq!(journal.status, HealthStatus::Failing, "{journal:?}");
    assert!(journal.summary.contains("full") || journal.summary.contains("space"), "{journal:?}");
    let client = daemon.client();
    assert_eq!(client.run(run.run_id).await.unwrap().run.phase, RunLifecyclePhase::Completed);
    assert!(client.replay_run(run.run_id).await.unwrap().identical);
    let refused = client.create_run(&task("more", workspace.path())).await.unwrap_err();
    let ClientError::Refused(envelope) = &refused else { panic!("{refused}") };
    assert_eq!(envelope.code, "disk_full", "{envelope:?}");

    fs::remove_file(daemon.seen_root().join("filler")).unwrap();
    let began = Instant::now();
    let run = loop {
        match client.create_run(&task("after", workspace.path())).await {
            Ok(run) => break run,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}\n{}", daemon.log()),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let (detail, _) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    assert_sound(&client).await;
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0), "{}", daemon.log());
}

/// Fills the file system to the last byte.
fn fill(root: &Path) -> PathBuf {
    let path = root.join("filler");
    let mut file = File::create(&path).unwrap();
    for size in [MEGABYTE, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    path
}

/// Waits until the daemon has noticed that it cannot record.
async fn wait_until_it_waits(log: &Path) {
    let began = Instant::now();
    while !fs::read_to_string(log).unwrap_or_default().contains("waiting for the journal") {
        assert!(began.elapsed() < PATIENCE, "the daemon never noticed:\n{}", fs::read_to_string(log).unwrap());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The journal, as the daemon itself verifies it: its file system is gone once the daemon is.
async fn assert_sound(client: &Client) {
    let mut lines = client.journal_verify().await.unwrap();
    let mut report = None;
    while let Some(line) = lines.next().await.unwrap() {
        if let VerifyLine::Report(last) = line {
            report = Some(last);
        }
    }
    let report = report.unwrap();
    assert!(report.problems.is_empty() && report.records > 0, "{report:?}");
}
