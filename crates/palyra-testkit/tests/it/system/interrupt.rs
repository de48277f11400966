//! Ctrl-C at `palyra run`, and the other signals that end it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use palyra_testkit::TestContext;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::PATIENCE;

#[test]
fn the_first_interruption_aborts_the_run_and_says_so() {
    assert_aborts(Signal::INT, "cancelled at the terminal");
}

#[test]
fn whoever_ends_the_command_or_closes_its_terminal_ends_the_run() {
    assert_aborts(Signal::TERM, "ended by SIGTERM");
    assert_aborts(Signal::HUP, "ended by SIGHUP");
}

fn assert_aborts(signal: Signal, reason: &str) {
    let words: Vec<String> = (0..400).map(|number| format!("word {number} ")).collect();
    let context =
        TestContext::new().unwrap().scripted(&json!({ "turn": [{ "text": words, "delay_ms": 40 }] })).unwrap();
    let started = context.run(["daemon", "start"]).unwrap();
    assert_eq!(started.code, 0, "{started}");
    let printed = context.root().join("printed");
    let mut command = context.command(["run", "tell a long story"]).unwrap();
    command.stdout(std::fs::File::create(&printed).unwrap()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    while !std::fs::read_to_string(&printed).unwrap().contains("word 1 ") {
        assert!(began.elapsed() < PATIENCE, "nothing was streamed");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));

    let shown = context.run(["runs", "show", "last", "--output", "json"]).unwrap().json().unwrap();
    assert_eq!((shown["phase"].as_str(), shown["reason"].as_str()), (Some("aborted"), Some("cancellation")), "{shown}");
    assert!(shown["detail"]["message"].as_str().unwrap_or_default().contains(reason), "{shown}");
    let tape = context.run(["runs", "tape", "last", "--output", "ndjson"]).unwrap();
    let events: Vec<Value> = tape.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cancel = events.iter().position(|event| event["journal_event"]["kind"] == "run.cancel").unwrap();
    assert!(events[cancel..].iter().all(|event| event.get("model_token").is_none()), "the model went on: {tape}");
    assert!(events[..cancel].iter().any(|event| event.get("model_token").is_some()), "{tape}");
    assert!(!tape.stdout.contains("word 399"), "the whole story was told");
    context.finish().unwrap();
}
