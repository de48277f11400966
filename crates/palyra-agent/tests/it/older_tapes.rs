//! Tapes that older versions of the machine made: this one acts on them as they did, so that a run which was accepted before an update goes on after it.

use std::borrow::Cow;

use palyra_agent::machine::Input;
use palyra_agent::replay::replay;
use palyra_agent::{Answer, ApprovalFilter, MACHINE_VERSION, projections};
use palyra_common::{ApprovalDecision, ApprovalScope, Digest, RunId, RunLifecyclePhase, SessionId, Timestamp};
use palyra_journal::{Journal, JournalOptions, NewRecord, StoredRecord};
use serde::Deserialize;

use crate::support::{Setup, answer, is_phase, tool_result};

/// A call whose daemon was killed, the question whether to run it again, and a person who says no, as a daemon of each version writes it. The tape of version 3 is a
/// recording; that of version 4 is the same with what this version says otherwise, and the digest of the context that says so.
const TAPES: [Tape; 2] = [
    Tape {
        version: 3,
        text: include_str!("tapes/version_3_unknown_outcome.jsonl"),
        told: "the daemon stopped while this ran",
    },
    Tape { version: 4, text: include_str!("tapes/version_4_unknown_outcome.jsonl"), told: "this was interrupted" },
];
/// Versions that no release had: there are no runs of theirs.
const UNRELEASED: [u32; 2] = [5, 6];

struct Tape {
    version: u32,
    text: &'static str,
    /// What that version tells the model about a call that is not run again.
    told: &'static str,
}

#[derive(Deserialize)]
struct Line {
    at: i64,
    kind: String,
    payload: String,
}

fn tape(text: &str) -> Vec<StoredRecord> {
    let lines = text.lines().map(|line| serde_json::from_str::<Line>(line).unwrap());
    let record = |(seq, line): (u64, Line)| StoredRecord {
        seq,
        kind: Cow::Owned(line.kind),
        at: Timestamp(line.at),
        session_id: None,
        run_id: Some(RunId::from_u128(1)),
        run_seq: Some(seq),
        payload: line.payload.into_bytes(),
        hash: Digest::of(b""),
        prev_hash: Digest::of(b""),
    };
    (1..).zip(lines).map(record).collect()
}

#[test]
fn every_released_version_before_this_one_has_a_tape() {
    let oldest = TAPES.iter().map(|tape| tape.version).min().unwrap();
    for version in oldest..MACHINE_VERSION {
        let is_recorded = TAPES.iter().any(|tape| tape.version == version);
        assert!(
            is_recorded || UNRELEASED.contains(&version),
            "add a tape that a daemon of machine version {version} wrote"
        );
    }
}

#[test]
fn a_tape_replays_byte_for_byte() {
    for Tape { version, text, .. } in TAPES {
        let replayed = replay(&tape(text)).unwrap();
        assert_eq!(replayed.difference, None, "{version}");
        assert_eq!(replayed.machine.spec().machine_version, version);
        assert_eq!(replayed.machine.phase(), RunLifecyclePhase::Completed, "{version}");
    }
}

#[test]
fn an_unfinished_run_is_resumed_from_any_record_and_acts_as_its_version_did() {
    for Tape { version, text, told } in TAPES {
        let whole = tape(text);
        for length in 1..whole.len() {
            let Ok(replayed) = replay(&whole[..length]) else { panic!("{version} does not replay up to {length}") };
            // A commit is cut between records only here; a difference can only be what is missing of it.
            assert!(
                replayed.difference.is_none_or(|difference| difference.recorded.is_none()),
                "{version} up to {length}"
            );
        }
        let asked = whole.iter().position(|record| record.kind == "approval.decided").unwrap();
        let mut machine = replay(&whole[..asked]).unwrap().machine;
        let request: serde_json::Value = serde_json::from_slice(&whole[asked].payload).unwrap();
        let approval_id = serde_json::from_value(request["input"]["approval_decided"]["approval_id"].clone()).unwrap();
        let denied = Input::ApprovalDecided {
            approval_id,
            decision: ApprovalDecision::Deny,
            scope: ApprovalScope::Once,
            until: None,
            by: "local".to_owned(),
            via: None,
            reason: None,
        };
        let actions = machine.step(denied, Timestamp(whole[asked].at.0 + 1)).unwrap();
        let actions = serde_json::to_string(&actions).unwrap();
        assert!(actions.contains(told), "{version}: {actions}");
    }
}

#[test]
fn a_tape_of_a_version_that_nobody_knows_is_refused() {
    let unknown = TAPES[0].text.replacen(r#"\"machine_version\":3"#, r#"\"machine_version\":99"#, 1);
    let error = replay(&tape(&unknown)).unwrap_err().to_string();
    assert!(error.contains("machine version 99"), "{error}");
}

/// Puts the first records of the tape on a journal, in the commits that they came in, as a daemon of that version would have left them when it died.
fn left_behind(text: &str, length: usize) -> (tempfile::TempDir, RunId) {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().join("work");
    std::fs::create_dir(&workspace).unwrap();
    // What the model was told about its surroundings stays as it is, so that its context is the same.
    let text = text.replacen(r#"\"/tmp/palyra-tape/work\""#, &format!(r#"\"{}\""#, workspace.display()), 1);
    let records = tape(&text);
    let accepted: serde_json::Value = serde_json::from_slice(&records[0].payload).unwrap();
    let spec = &accepted["input"]["accepted"];
    let run_id: RunId = serde_json::from_value(spec["run_id"].clone()).unwrap();
    let session_id: SessionId = serde_json::from_value(spec["session_id"].clone()).unwrap();
    let mut options = JournalOptions::at(directory.path().join("state"));
    options.projections = projections();
    options.min_free_bytes = 0;
    let journal = Journal::open(options).unwrap();
    let record = |record: &StoredRecord| {
        let on_tape = NewRecord::new(record.kind.to_string(), record.at, record.payload.clone());
        on_tape.in_session(session_id).on_tape(run_id, record.run_seq.unwrap())
    };
    journal.append_blocking(records[..length].iter().map(record).collect()).unwrap();
    journal.close_blocking().unwrap();
    (directory, run_id)
}

const DONE: &str = "[[turn]]\ntext = \"done\"\n[[turn]]\ntext = \"done\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_takes_up_a_run_in_every_phase_and_brings_it_to_its_end() {
    for Tape { version, text, told } in TAPES {
        // Queued, waiting for the model, in a call, waiting for a person, waiting for the model again.
        for (length, asks) in [(1, false), (3, false), (7, true), (10, true), (14, false)] {
            let (directory, run_id) = left_behind(text, length);
            let bench = Setup::script(DONE).start_in(directory).await;
            if asks {
                bench.follow_until(run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
                let open = ApprovalFilter { run_id: Some(run_id), open: Some(true) };
                let open = bench.engine.approvals(open).await.unwrap();
                let denied = Answer { by: "uid:0".to_owned(), ..answer(ApprovalDecision::Deny) };
                bench.engine.decide_approval(open[0].approval_id, denied).await.unwrap();
            }
            let (run, events) = bench.finish(run_id).await;
            assert_eq!(run.phase, RunLifecyclePhase::Completed, "{version}, {length}: {:?}", run.detail);
            assert_eq!(bench.engine.replay(run_id).await.unwrap().machine.spec().machine_version, version);
            if asks {
                let content = tool_result(&events, "t1c1").content;
                assert!(content.contains(told), "{version}, {length}: {content}");
            }
        }
    }
}
