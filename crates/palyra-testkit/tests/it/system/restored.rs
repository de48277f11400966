//! A restored backup does not know what happened after it was made, so nothing that was under way goes on without a person's word.

use palyra_client::api::{BackupJournalParams, ResumeRunParams};
use palyra_common::{HealthStatus, RunLifecyclePhase, SystemClock};
use palyra_testkit::{Binary, DaemonOptions, Model, probe};
use serde_json::json;
use tempfile::TempDir;

use super::{Probed, call, finish, wait_for_phase};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_backup_repeats_no_effect_without_asking() {
    let script = json!({ "turn": [
        call("probe.repeatable", json!({ "n": 1 })),
        call("probe.once", json!({ "n": 2 })),
        { "text": "done" },
    ] });
    let mut probed = Probed::start(script.clone()).await;
    probed.receiver.hold();
    let run = probed.create("an effect").await;
    probed.wait_for_effects(1);
    let home = TempDir::with_prefix("palyra-restore-").unwrap();
    let (backup, restored) = (home.path().join("backup"), home.path().join("state"));
    let params = BackupJournalParams { dest: backup.display().to_string() };
    let report = probed.daemon.client().journal_backup(&params).await.unwrap();
    assert!(report.bytes > 4096, "{report:?}");
    assert!(report.left_out.iter().any(|name| name == "keys/journal.key"), "{report:?}");
    probed.receiver.release();
    let (detail, _) = finish(&probed.daemon.client(), run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed);
    let happened =
        |probed: &Probed| probed.receiver.deliveries().iter().filter(|delivery| delivery.tool == "probe.once").count();
    assert_eq!(happened(&probed), 1);
    probed.daemon.stop().await.unwrap();

    palyra_journal::restore(&backup, &restored, palyra_common::Clock::now(&SystemClock)).unwrap();
    let options = DaemonOptions::new(Model::Scripted(script)).binary(Binary::PalyradProbe);
    let options = options.state_root(&restored).env(probe::SOCKET_VARIABLE, probed.receiver.socket());
    let mut daemon = options.start().await.unwrap();
    wait_for_phase(&daemon.client(), run.run_id, RunLifecyclePhase::Paused).await;
    let health = daemon.client().health().await.unwrap();
    let journal = health.components.iter().find(|component| component.component == "journal").unwrap();
    assert_eq!(journal.status, HealthStatus::Degraded, "{journal:?}");
    assert_eq!(happened(&probed), 1, "it happened again without anybody's word");
    daemon.stop().await.unwrap();

    palyra_journal::accept_restore(&restored).unwrap();
    daemon.restart().await.unwrap();
    let client = daemon.client();
    assert_eq!(client.run(run.run_id).await.unwrap().run.phase, RunLifecyclePhase::Paused);
    client.resume_run(run.run_id, &ResumeRunParams::default()).await.unwrap();
    let (detail, _) = finish(&client, run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    assert_eq!(happened(&probed), 2, "a person said so");
    daemon.finish().await.unwrap();
}
