//! Readers that stop reading hold little, and what they held goes back to the system.

use std::time::{Duration, Instant};

use palyra_common::RequestId;
use serde_json::json;

use crate::hostile::peak;
use crate::hostile_socket::Socket;
use crate::support::{Daemon, Place};

const SOCKETS: usize = 100;
const STREAMS: usize = 8;
/// What all of them may hold: far less than a page for each stream.
const MOST_HELD: u64 = 160 * 1024 * 1024;

fn resident(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// A journal that is much longer than what a connection takes into its buffers.
async fn long_journal(daemon: &Daemon) {
    for number in 0..16 {
        let run = daemon.create(&format!("list the files {number} {}", "x".repeat(400_000))).await;
        daemon.follow(run.run_id, 1).await;
    }
}

fn open_streams(daemon: &Daemon) -> Socket {
    let mut socket = Socket::open(daemon);
    for _ in 0..STREAMS {
        let command = json!({ "request_id": RequestId::generate(), "command": "journal.export", "params": {} });
        socket.send_text(&command.to_string());
    }
    socket
}

#[tokio::test]
async fn stopped_readers_hold_little_and_their_memory_comes_back() {
    let place = Place::new();
    let daemon = place.start().await;
    long_journal(&daemon).await;
    drop(open_streams(&daemon));
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (idle, before) = (resident(&daemon), peak(&daemon));

    let sockets: Vec<_> = (0..SOCKETS).map(|_| open_streams(&daemon)).collect();
    // Longer than the daemon waits between two looks at its memory: what is freed after a look at the peak has to be returned too.
    tokio::time::sleep(Duration::from_secs(11)).await;
    let held = peak(&daemon).saturating_sub(before);
    assert!(held < MOST_HELD, "stopped readers hold {held} bytes");
    assert!(daemon.client.health().await.is_ok());
    drop(sockets);

    let start = Instant::now();
    while resident(&daemon) > idle + idle / 2 {
        assert!(start.elapsed() < Duration::from_secs(30), "{} of {idle} bytes are kept", resident(&daemon));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_stopped_reader_of_one_stream_does_not_end_the_others_of_its_principal() {
    let place = Place::new();
    let daemon = place.start().await;
    long_journal(&daemon).await;
    let _stopped: Vec<_> = (0..40).map(|_| open_streams(&daemon)).collect();
    // All pages of the owner are held; whoever reads gets them once those who do not are closed.
    let mut reader = Socket::open(&daemon);
    let command = json!({ "request_id": RequestId::generate(), "command": "journal.tail", "params": { "n": 5 } });
    reader.send_text(&command.to_string());
    let mut documents = 0;
    while let Some(message) = reader.message() {
        if message.get("document").is_none() {
            break;
        }
        documents += 1;
    }
    assert_eq!(documents, 5);
}
