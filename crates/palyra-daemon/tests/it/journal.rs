//! The journal through the API.

use palyra_client::api::{BackupJournalParams, ExportJournalParams, TailJournalParams, VerifyLine};
use palyra_client::{ClientError, NdjsonStream};
use palyra_journal::{InclusionProof, VerifyOptions};
use serde::de::DeserializeOwned;

use crate::support::{Daemon, Place, code};

async fn all<T: DeserializeOwned>(stream: Result<NdjsonStream<T>, ClientError>) -> Vec<T> {
    let mut stream = stream.unwrap();
    let mut found = Vec::new();
    while let Some(document) = stream.next().await.unwrap() {
        found.push(document);
    }
    found
}

async fn with_some_runs(place: &Place) -> Daemon {
    let daemon = place.start().await;
    for _ in 0..12 {
        let run = daemon.create("say yes").await;
        daemon.follow(run.run_id, 1).await;
    }
    daemon
}

fn place() -> Place {
    Place::new().with_script("[[turn]]\ntext = [\"y\", \"e\", \"s\"]\n")
}

#[tokio::test]
async fn export_and_tail_show_the_log() {
    let place = place();
    let daemon = with_some_runs(&place).await;
    let records = all(daemon.client.journal_export(&ExportJournalParams::default()).await).await;
    let positions: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert_eq!(positions, (1..=records.len() as u64).collect::<Vec<_>>());
    // More than one page, or this shows little.
    assert!(records.len() > 70, "{}", records.len());

    let tail = all(daemon.client.journal_tail(&TailJournalParams { n: Some(3), ..Default::default() }).await).await;
    assert_eq!(tail, records[records.len() - 3..]);
    let from = TailJournalParams { from_seq: Some(70), ..Default::default() };
    assert_eq!(all(daemon.client.journal_tail(&from).await).await, records[69..]);
    let from = ExportJournalParams { from_seq: Some(u64::MAX) };
    assert!(all(daemon.client.journal_export(&from).await).await.is_empty());
}

#[tokio::test]
async fn a_followed_journal_shows_what_comes() {
    let place = place();
    let daemon = place.start().await;
    let params = TailJournalParams { n: Some(0), follow: Some(true), ..Default::default() };
    let mut stream = daemon.client.journal_tail(&params).await.unwrap();
    let run = daemon.create("say yes").await;
    let mut kinds = Vec::new();
    while kinds.last().map(String::as_str) != Some("run.status") {
        let record = stream.next().await.unwrap().expect("a followed journal does not end");
        assert!(record.run_id.is_none_or(|id| id == run.run_id));
        kinds.push(record.kind);
    }
    assert!(kinds.iter().any(|kind| kind == "run.accepted"), "{kinds:?}");
    // Stopping ends the stream with a word, not with a cut.
    daemon.client.stop_daemon().await.unwrap();
    let ended = loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(code(ended), "daemon_stopping");
}

#[tokio::test]
async fn proof_verification_and_backup_hold() {
    let place = place();
    let daemon = with_some_runs(&place).await;
    let proof: InclusionProof = serde_json::from_value(daemon.client.journal_prove(5).await.unwrap()).unwrap();
    proof.verify().unwrap();
    assert_eq!(proof.record.seq, 5);

    let lines = all(daemon.client.journal_verify().await).await;
    let Some(VerifyLine::Report(report)) = lines.last() else { panic!("{lines:?}") };
    assert!(report.problems.is_empty(), "{report:?}");
    assert!(report.records > 70);
    assert!(report.unchecked_projections.is_empty(), "{report:?}");
    assert!(lines[..lines.len() - 1].iter().all(|line| matches!(line, VerifyLine::Progress(_))));

    let dest = place.path().join("backup");
    let params = BackupJournalParams { dest: dest.display().to_string() };
    let backup = daemon.client.journal_backup(&params).await.unwrap();
    assert!(backup.records >= report.records);
    let options = VerifyOptions { projections: palyra_agent::projections(), ..VerifyOptions::default() };
    let verified = palyra_journal::verify(&dest, options).unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    assert_eq!(verified.records, backup.records);
    assert_eq!(code(daemon.client.journal_backup(&params).await), "would_overwrite");
}
