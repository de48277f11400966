//! Replay over a damaged tape: a missing record is an error, never a shorter run.

use palyra_journal::rusqlite::Connection;
use palyra_testkit::{DaemonOptions, Exit, Model, TestContext, copy_tree};
use serde_json::json;
use tempfile::TempDir;

use super::{call, finish, task, workspace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_record_is_an_error() {
    let script = json!({ "turn": [call("palyra.fs.read", json!({ "path": "notes.md" })), { "text": "read" }] });
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("read", workspace.path())).await.unwrap();
    let (_, events) = finish(&client, run.run_id).await;
    assert!(client.replay_run(run.run_id).await.unwrap().identical);
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0));

    for missing in [2, events.len() / 2, events.len() - 1] {
        let copy = TempDir::new().unwrap();
        let root = copy.path().join("state");
        copy_tree(daemon.state_root(), &root).unwrap();
        let database = Connection::open(root.join("journal/journal.db")).unwrap();
        let deleted = database.execute("DELETE FROM records WHERE run_seq = ?1", [i64::try_from(missing).unwrap()]).unwrap();
        assert_eq!(deleted, 1);
        drop(database);
        let replaying = DaemonOptions::new(Model::Offline).state_root(&root).start().await.unwrap();
        let context = TestContext::new().unwrap().env("PALYRA_STATE_ROOT", root.display());
        let replay = context.run(["runs", "replay", &run.run_id.to_string(), "--output", "json"]).unwrap();
        assert_ne!(replay.code, 0, "record {missing} is missing, but: {replay}");
        let message = replay.json().unwrap()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(&missing.to_string()), "record {missing} is not named: {replay}");
        drop(replaying);
    }
}
