//! The client is killed in the middle of a stream, and another one goes on where it stood.
//!
//! The client is a process of its own, because only a process can be killed: this test, started once more.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use palyra_common::{RunId, RunStreamEvent};
use tokio::sync::mpsc;

use super::{Over, Told, assert_whole, talkative};
use crate::quic_support::{PATIENCE, credentials};
use crate::support::Daemon;

const FOLLOWER: &str = "PALYRA_TEST_FOLLOWER";

#[tokio::test]
async fn a_killed_client_costs_nothing_over_http() {
    killed("broken::client::a_killed_client_costs_nothing_over_http", Over::Http).await;
}

#[tokio::test]
async fn a_killed_client_costs_nothing_over_quic() {
    killed("broken::client::a_killed_client_costs_nothing_over_quic", Over::Quic).await;
}

async fn killed(name: &str, over: Over) {
    if let Ok(told) = std::env::var(FOLLOWER) {
        return follow(over, &told).await;
    }
    let place = talkative(5);
    let daemon = place.start().await;
    credentials(&daemon).await;
    let run = daemon.create("talk").await;
    let mut events: Vec<RunStreamEvent> = Vec::new();
    // Three clients are killed, the fourth reads to the end.
    for number in 0..4 {
        let file = place.path().join(format!("seen-{number}"));
        let next = events.last().map_or(1, |event| event.seq + 1);
        let mut client = start(name, &daemon, run.run_id, next, &file);
        let enough = if number < 3 { 25 } else { usize::MAX };
        let begun = Instant::now();
        let seen = loop {
            assert!(begun.elapsed() < PATIENCE, "the client sees too little");
            let seen = whole_lines(&file);
            if seen.len() >= enough {
                client.kill().unwrap();
                client.wait().unwrap();
                break whole_lines(&file);
            }
            if let Some(status) = client.try_wait().unwrap() {
                assert!(status.success() && number == 3, "client {number} ended with {status}");
                break whole_lines(&file);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(number == 3 || !seen.last().unwrap().is_terminal(), "it was not in the middle");
        events.extend(seen);
    }
    assert_whole(&events, &daemon, run.run_id).await;
}

fn start(name: &str, daemon: &Daemon, id: RunId, from_seq: u64, file: &std::path::Path) -> Child {
    let told = format!("{}\n{id}\n{from_seq}\n{}", daemon.state_root.display(), file.display());
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads", "1"])
        .env(FOLLOWER, told)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The other process: writes every event into a file, a line each, as soon as it has it.
async fn follow(over: Over, told: &str) {
    let mut told = told.split('\n').map(str::to_owned);
    let mut next = || told.next().unwrap();
    let (state_root, id, from_seq, file) = (next(), next(), next(), next());
    let mut file = std::fs::File::create(file).unwrap();
    let (tell, mut heard) = mpsc::unbounded_channel();
    let (id, from_seq) = (id.parse().unwrap(), from_seq.parse().unwrap());
    let follower = tokio::spawn(async move { over.follow(state_root.as_ref(), id, from_seq, tell).await });
    while let Some(told) = heard.recv().await {
        match told {
            Told::Event(event) => file.write_all((serde_json::to_string(&event).unwrap() + "\n").as_bytes()).unwrap(),
            Told::Ended(ended) => ended.unwrap(),
        }
    }
    follower.await.unwrap();
}

/// What is in the file; a line that was being written when its writer was killed does not count.
fn whole_lines(file: &std::path::Path) -> Vec<RunStreamEvent> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
