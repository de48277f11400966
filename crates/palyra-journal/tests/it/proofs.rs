//! Checkpoints and inclusion proofs.

use palyra_common::Digest;
use palyra_journal::{InclusionProof, Journal, PublicKey};

use crate::support::{code, fill, on_tape, open, options};

#[tokio::test]
async fn every_record_can_be_proved_without_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    journal.append(vec![on_tape(1, 1)]).await.unwrap();
    fill(&journal, 2_600);
    for seq in [1, 2, 1023, 1024, 1025, 2048, 2049, 2600, 2601] {
        let proof = journal.prove(seq).await.unwrap();
        let json = serde_json::to_string(&proof).unwrap();
        let read: InclusionProof = serde_json::from_str(&json).unwrap();
        assert_eq!(read, proof);
        read.verify_with(&journal.public_key()).unwrap();
        assert_eq!(read.record.seq, seq);
    }
    assert_eq!(code(&journal.prove(2602).await.unwrap_err()), "record_not_found");
    assert_eq!(code(&journal.prove(0).await.unwrap_err()), "record_not_found");
}

#[tokio::test]
async fn a_proof_of_anything_else_is_refuted() {
    let dir = tempfile::tempdir().unwrap();
    let journal = open(dir.path());
    fill(&journal, 100);
    let good = journal.prove(42).await.unwrap();
    let other: PublicKey = format!("ed25519:{}", "00".repeat(32)).parse().unwrap();
    let changes: Vec<fn(&mut InclusionProof)> = vec![
        |p| p.record.seq = 43,
        |p| p.record.kind.push('x'),
        |p| p.record.payload = Some("{}".to_owned()),
        |p| p.record.payload_digest = Digest([0; 32]),
        |p| p.record.hash = Digest([0; 32]),
        |p| p.record.prev_hash = Digest([0; 32]),
        |p| p.path[0] = Digest([0; 32]),
        |p| p.path.truncate(1),
        |p| p.checkpoint.count += 1,
        |p| p.checkpoint.merkle_root = Digest([0; 32]),
        |p| p.checkpoint.signature[5] ^= 1,
        |p| p.checkpoint.at.0 += 1,
        |p| p.version = 2,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut proof = good.clone();
        change(&mut proof);
        assert_eq!(code(&proof.verify().unwrap_err()), "proof_refuted", "change {at}");
    }
    assert_eq!(code(&good.verify_with(&other).unwrap_err()), "proof_refuted");
    let mut hidden = good.clone();
    hidden.record.payload = None;
    hidden.verify().unwrap();
}

#[tokio::test]
async fn checkpoints_are_kept_every_so_often_and_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut often = options(dir.path());
    often.checkpoint_every = 10;
    let journal = Journal::open(often).unwrap();
    fill(&journal, 35);
    let asked = journal.checkpoint().await.unwrap();
    assert_eq!((asked.count, asked.head), (35, journal.head().hash));
    assert!(asked.signed_by(&[journal.public_key()]));
    fill(&journal, 1);
    journal.close().await.unwrap();
    let reader = palyra_journal::open_read_only(dir.path()).unwrap();
    let kept: Vec<_> = reader.checkpoints(0, 100).unwrap().iter().map(|c| c.count).collect();
    assert_eq!(kept, [10, 20, 30, 35, 36]);
}
