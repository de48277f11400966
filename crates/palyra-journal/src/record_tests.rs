use super::*;

fn sample() -> StoredRecord {
    StoredRecord {
        seq: 7,
        kind: "sample".into(),
        at: Timestamp(1_794_700_000_123),
        session_id: Some(SessionId::from_u128(1)),
        run_id: Some(RunId::from_u128(2)),
        run_seq: Some(3),
        payload: br#"{"a":1}"#.to_vec(),
        hash: Digest([0; 32]),
        prev_hash: Digest([9; 32]),
    }
}

#[test]
fn the_encoding_is_fixed() {
    // Computed independently from the table in the module's documentation; a change here is a new format version.
    let mut bytes = b"palyra.record.v1\n".to_vec();
    bytes.extend([9; 32]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 7]);
    bytes.extend(1_794_700_000_123_i64.to_be_bytes());
    bytes.extend([0, 0, 0, 6]);
    bytes.extend(b"sample");
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0, 3]);
    bytes.extend(Digest::of(br#"{"a":1}"#).0);
    assert_eq!(sample().computed_hash(), Digest::of(&bytes));
}

#[test]
fn every_field_is_covered() {
    let base = sample().computed_hash();
    let changes: Vec<fn(&mut StoredRecord)> = vec![
        |r| r.seq = 8,
        |r| r.kind = "sampla".into(),
        |r| r.at = Timestamp(0),
        |r| r.session_id = None,
        |r| r.run_id = Some(RunId::from_u128(1)),
        |r| r.run_seq = None,
        |r| r.payload = b"{}".to_vec(),
        |r| r.prev_hash = Digest([8; 32]),
    ];
    for change in changes {
        let mut record = sample();
        change(&mut record);
        assert_ne!(record.computed_hash(), base);
    }
}

#[test]
fn what_cannot_stand_in_the_log_is_refused() {
    let good = || NewRecord::new("k", Timestamp(0), b"null".to_vec());
    assert!(Entry::prepare(good()).is_ok());
    assert!(Entry::prepare(NewRecord { kind: "".into(), ..good() }).is_err());
    assert!(Entry::prepare(NewRecord { kind: "x".repeat(129).into(), ..good() }).is_err());
    assert!(Entry::prepare(NewRecord { payload: b"{".to_vec(), ..good() }).is_err());
    assert!(Entry::prepare(NewRecord { payload: b"\"\xff\"".to_vec(), ..good() }).is_err());
    assert!(Entry::prepare(NewRecord { payload: Vec::new(), ..good() }).is_err());
    assert!(Entry::prepare(NewRecord { run_seq: Some(1), ..good() }).is_err());
}
