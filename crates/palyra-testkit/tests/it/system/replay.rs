//! Replay over a damaged tape: a missing record is an error, never a shorter run.

use palyra_agent::replay::replay;
use palyra_journal::open_read_only;
use palyra_journal::rusqlite::Connection;
use palyra_testkit::{DaemonOptions, Exit, Model, TestContext, copy_tree};
use serde_json::json;
use tempfile::TempDir;

use super::{call, finish, task, workspace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_record_is_an_error_wherever_it_was() {
    let script = json!({ "turn": [call("palyra.fs.read", json!({ "path": "notes.md" })), { "text": "read" }] });
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("read", workspace.path())).await.unwrap();
    let (_, events) = finish(&client, run.run_id).await;
    assert!(client.replay_run(run.run_id).await.unwrap().identical);
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0));

    let reader = open_read_only(daemon.state_root()).unwrap();
    let records = reader.run_tape(run.run_id, 1, usize::MAX >> 1).unwrap();
    assert_eq!(records.len(), events.len());
    assert!(replay(&records).unwrap().difference.is_none());
    for missing in 0..records.len() {
        let mut damaged = records.clone();
        damaged.remove(missing);
        let noticed = match replay(&damaged) {
            Err(_) => true,
            // Without its last record a tape is not damaged but unfinished: the machine still wants to record it.
            Ok(replayed) => missing + 1 == records.len() && replayed.difference.is_some(),
        };
        assert!(noticed, "record {} of {} is missing and was not missed", missing + 1, records.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_does_not_start_over_a_missing_record() {
    let mut daemon = DaemonOptions::new(Model::Offline).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("read notes.md", workspace.path())).await.unwrap();
    finish(&client, run.run_id).await;
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0));

    let copy = TempDir::new().unwrap();
    let root = copy.path().join("state");
    copy_tree(daemon.state_root(), &root).unwrap();
    let database = Connection::open(root.join("journal/journal.db")).unwrap();
    assert_eq!(database.execute("DELETE FROM records WHERE run_seq = 3", []).unwrap(), 1);
    drop(database);
    let refused = DaemonOptions::new(Model::Offline).state_root(&root).start().await.unwrap_err().to_string();
    assert!(refused.contains("[journal_damaged]") && refused.contains("record 4: it is missing"), "{refused}");
    // It stays refused, and the file is still there for whoever wants to look.
    let again = DaemonOptions::new(Model::Offline).state_root(&root).start().await.unwrap_err().to_string();
    assert!(again.contains("[journal_damaged]"), "{again}");
    let context = TestContext::new().unwrap().env("PALYRA_STATE_ROOT", root.display());
    let verify = context.run(["journal", "verify"]).unwrap();
    assert_eq!(verify.code, 7, "{verify}");
}
