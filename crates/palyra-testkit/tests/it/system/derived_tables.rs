//! Rows that somebody removed from a derived table while the daemon was stopped: the next start builds the table again from the journal.

use palyra_client::api::VerifyLine;
use palyra_journal::rusqlite::Connection;
use palyra_testkit::{DaemonOptions, Model, copy_tree};
use tempfile::TempDir;

use super::{finish, task, workspace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_missing_from_any_derived_table_is_there_again_after_a_start() {
    let workspace = workspace();
    let mut daemon = DaemonOptions::new(Model::Offline).start().await.unwrap();
    let run = daemon.client().create_run(&task("read notes.md", workspace.path())).await.unwrap();
    finish(&daemon.client(), run.run_id).await;
    daemon.stop().await.unwrap();
    let mut tables = Vec::new();
    {
        let connection = Connection::open(daemon.state_root().join("journal/journal.db")).unwrap();
        let mut statement = connection.prepare("SELECT value FROM projections, json_each(tables)").unwrap();
        let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        for name in names.map(Result::unwrap) {
            let rows: i64 =
                connection.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0)).unwrap();
            if rows > 0 {
                tables.push((name, rows));
            }
        }
    }
    assert!(tables.len() >= 4, "{tables:?}");
    for (table, rows) in tables {
        let copy = TempDir::with_prefix("palyra-tables-").unwrap();
        let root = copy.path().join("state");
        copy_tree(daemon.state_root(), &root).unwrap();
        let database = root.join("journal/journal.db");
        let delete = format!("DELETE FROM {table}");
        assert!(Connection::open(&database).unwrap().execute(&delete, []).unwrap() > 0);
        let mut again = DaemonOptions::new(Model::Offline).state_root(&root).start().await.unwrap();
        let mut lines = again.client().journal_verify().await.unwrap();
        while let Some(line) = lines.next().await.unwrap() {
            if let VerifyLine::Report(report) = line {
                assert!(report.problems.is_empty(), "{table}: {report:?}");
            }
        }
        again.stop().await.unwrap();
        let count = format!("SELECT count(*) FROM {table}");
        let found: i64 = Connection::open(&database).unwrap().query_row(&count, [], |row| row.get(0)).unwrap();
        assert!(found >= rows, "{table} has {found} of {rows} rows");
    }
}
