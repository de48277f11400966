//! Tapes that older versions of the machine made: this one acts on them as they did, so that a run which was accepted before an update goes on after it.

use std::borrow::Cow;

use palyra_agent::machine::Input;
use palyra_agent::replay::replay;
use palyra_common::{ApprovalDecision, ApprovalScope, Digest, RunId, RunLifecyclePhase, Timestamp};
use palyra_journal::StoredRecord;
use serde::Deserialize;

/// A call whose daemon was killed, the question whether to run it again, and a person who says no. Written by a daemon of that version.
const VERSION_3: &str = include_str!("tapes/version_3_unknown_outcome.jsonl");

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
fn a_tape_of_version_3_replays_byte_for_byte() {
    let replayed = replay(&tape(VERSION_3)).unwrap();
    assert_eq!(replayed.difference, None);
    assert_eq!(replayed.machine.spec().machine_version, 3);
    assert_eq!(replayed.machine.phase(), RunLifecyclePhase::Completed);
}

#[test]
fn an_unfinished_run_of_version_3_is_resumed_from_any_record_and_acts_as_that_version_did() {
    let whole = tape(VERSION_3);
    let mut resumed = 0;
    for length in 1..whole.len() {
        let Ok(replayed) = replay(&whole[..length]) else { panic!("the tape does not replay up to {length}") };
        // A commit is cut between records only here; a difference can only be what is missing of it.
        assert!(replayed.difference.is_none_or(|difference| difference.recorded.is_none()), "up to {length}");
        resumed += 1;
    }
    assert_eq!(resumed, whole.len() - 1);
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
    let actions = serde_json::to_string(&machine.step(denied, Timestamp(whole[asked].at.0 + 1)).unwrap()).unwrap();
    assert!(actions.contains("the daemon stopped while this ran"), "{actions}");
}

#[test]
fn a_tape_of_a_version_that_nobody_knows_is_refused() {
    let unknown = VERSION_3.replacen(r#"\"machine_version\":3"#, r#"\"machine_version\":99"#, 1);
    let error = replay(&tape(&unknown)).unwrap_err().to_string();
    assert!(error.contains("machine version 99"), "{error}");
}
