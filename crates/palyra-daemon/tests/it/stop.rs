//! How the daemon ends.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

use palyra_common::RunLifecyclePhase;
use palyra_journal::VerifyOptions;

use crate::support::{Daemon, Place};

fn signal(daemon: &Daemon, name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(daemon.pid().to_string()).status().unwrap();
    assert!(status.success());
}

/// The journal is whole, and its newest checkpoint covers every record.
fn check_journal(place: &Place) {
    let options = VerifyOptions { projections: palyra_agent::projections(), ..VerifyOptions::default() };
    let report = palyra_journal::verify(&place.state_root(), options).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(report.records > 0 && report.checkpoints > 0, "{report:?}");
    let reader = palyra_journal::open_read_only(&place.state_root()).unwrap();
    let newest = reader.checkpoints(report.records, 10).unwrap();
    assert!(newest.iter().any(|checkpoint| checkpoint.count == report.records), "{newest:?}");
}

#[tokio::test]
async fn a_stop_on_request_leaves_a_checkpointed_journal() {
    let place = Place::new();
    let daemon = place.start().await;
    let run = daemon.create("list the files").await;
    daemon.follow(run.run_id, 1).await;
    let answer = daemon.client.stop_daemon().await.unwrap();
    assert_eq!((answer.pid, answer.unfinished_runs), (daemon.pid(), 0));
    assert!(daemon.ended().await.success());
    for name in ["palyrad.sock", "palyrad.pid", "http.addr"] {
        assert!(!place.state_root().join(name).exists(), "{name}");
    }
    check_journal(&place);
}

#[tokio::test]
async fn a_signal_stops_in_good_order_too() {
    for name in ["TERM", "INT"] {
        let place = Place::new();
        let daemon = place.start().await;
        let run = daemon.create("list the files").await;
        daemon.follow(run.run_id, 1).await;
        signal(&daemon, name);
        assert!(daemon.ended().await.success(), "{name}");
        check_journal(&place);
    }
}

#[tokio::test]
async fn a_second_signal_ends_at_once_and_loses_nothing() {
    let place = Place::new();
    let daemon = place.start().await;
    let run = daemon.create("list the files").await;
    let events = daemon.follow(run.run_id, 1).await;
    // A request that never arrives whole holds up a stop in good order.
    let mut half = UnixStream::connect(place.state_root().join("palyrad.sock")).unwrap();
    half.write_all(b"POST /api/v1/runs HTTP/1.1\r\nHost: palyrad\r\nContent-Length: 9\r\n\r\n{").unwrap();
    let pid = daemon.pid();
    let both = format!("kill -TERM {pid}; kill -INT {pid}");
    assert!(Command::new("sh").arg("-c").arg(both).status().unwrap().success());
    let code = daemon.ended().await.code();
    assert!([Some(130), Some(143)].contains(&code), "{code:?}");

    let daemon = place.start().await;
    assert_eq!(daemon.follow(run.run_id, 1).await, events);
    let options = VerifyOptions { projections: palyra_agent::projections(), ..VerifyOptions::default() };
    assert!(palyra_journal::verify(&place.state_root(), options).unwrap().is_sound());
}

#[tokio::test]
async fn unfinished_runs_go_on_after_the_next_start() {
    let script = "[[turn]]\ntext = [\"slowly\", \" done\"]\ndelay_ms = 700\n";
    let place = Place::new().with_script(script);
    let daemon = place.start().await;
    let run = daemon.create("take your time").await;
    let stopped = daemon.client.stop_daemon().await.unwrap();
    assert_eq!(stopped.unfinished_runs, 1);
    assert!(daemon.ended().await.success());
    check_journal(&place);

    let daemon = place.start().await;
    let events = daemon.follow(run.run_id, 1).await;
    assert!(events.last().unwrap().is_terminal());
    let detail = daemon.client.run(run.run_id).await.unwrap();
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{detail:?}");
    assert_eq!(detail.answer.as_deref(), Some("slowly done"));
}
