//! Rows of derived tables that somebody removed, changed or added while the daemon was stopped: each is noticed by itself, and the next start builds the tables again from the journal.

use std::fs;
use std::path::Path;

use palyra_client::api::VerifyLine;
use palyra_journal::VerifyOptions;
use palyra_journal::rusqlite::Connection;
use palyra_testkit::{DaemonOptions, Model, copy_tree};
use serde_json::json;
use tempfile::TempDir;

use super::{call, finish, task, workspace};

/// A derived table with rows, and its columns.
struct Table {
    name: String,
    columns: Vec<String>,
    rows: i64,
}

fn tables(database: &Path) -> Vec<Table> {
    let connection = Connection::open(database).unwrap();
    let mut statement = connection.prepare("SELECT value FROM projections, json_each(tables)").unwrap();
    let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let table = |name: String| {
        let selected = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = selected.column_names().map(str::to_owned).collect();
        let rows = connection.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0)).unwrap();
        Table { name, columns, rows }
    };
    names.into_iter().map(table).filter(|table| table.rows > 0).collect()
}

/// Every kind of change to one row of a table: removed, changed in each column, added.
fn changes(Table { name, columns, .. }: &Table) -> Vec<String> {
    let key = &columns[0];
    let first = format!("WHERE {key} = (SELECT {key} FROM {name} LIMIT 1)");
    let other = |column: &str| {
        format!(
            "CASE typeof({column}) WHEN 'text' THEN {column} || 'x' WHEN 'blob' THEN CAST({column} || x'00' AS BLOB) ELSE {column} + 1 END"
        )
    };
    let mut changes = vec![format!("DELETE FROM {name} {first}")];
    changes.extend(columns.iter().map(|column| {
        format!("UPDATE OR REPLACE {name} SET {column} = {} {first} AND {column} IS NOT NULL", other(column))
    }));
    let values: Vec<String> =
        columns.iter().map(|column| if column == key { other(column) } else { column.clone() }).collect();
    changes.push(format!("INSERT OR IGNORE INTO {name} SELECT {} FROM {name} LIMIT 1", values.join(", ")));
    changes
}

/// A state in which something of most things happened: answers, a question, files that were changed and put back, an artifact.
async fn fixture() -> (palyra_testkit::TestDaemon, TempDir) {
    let workspace = workspace();
    let text = "a text that is too long to be shown whole ".repeat(4_000);
    fs::write(workspace.path().join("long.txt"), text).unwrap();
    let script = json!({ "turn": [
        call("palyra.fs.read", json!({ "path": "long.txt" })),
        call("palyra.fs.write", json!({ "path": "notes.md", "content": "other lines\n" })),
        { "text": "done" },
    ] });
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let run = daemon.client().create_run(&task("change notes.md", workspace.path())).await.unwrap();
    finish(&daemon.client(), run.run_id).await;
    daemon.client().undo_run(run.run_id).await.unwrap();
    daemon.stop().await.unwrap();
    (daemon, workspace)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_to_a_row_of_a_derived_table_is_noticed_and_put_right_by_a_start() {
    let (daemon, _workspace) = fixture().await;
    let copy = TempDir::with_prefix("palyra-tables-").unwrap();
    let root = copy.path().join("state");
    copy_tree(daemon.state_root(), &root).unwrap();
    let database = root.join("journal/journal.db");
    let untouched = fs::read(&database).unwrap();
    let tables = tables(&database);
    assert!(tables.len() >= 8, "{:?}", tables.iter().map(|table| &table.name).collect::<Vec<_>>());
    let report = palyra_journal::verify(&root, VerifyOptions::default()).unwrap();
    assert!(report.is_complete(), "{report:?}");

    let (mut noticed, mut missed) = (0, Vec::new());
    for table in &tables {
        for change in changes(table) {
            // What a constraint refuses is no change, nor is one to a value that is not there.
            if Connection::open(&database).unwrap().execute(&change, []).is_ok_and(|rows| rows > 0) {
                let report = palyra_journal::verify(&root, VerifyOptions::default()).unwrap();
                let named = |position: String| position.contains(&table.name);
                if report.problems.iter().any(|problem| named(problem.position.to_string())) {
                    noticed += 1;
                } else {
                    missed.push(change);
                }
            }
            fs::write(&database, &untouched).unwrap();
        }
    }
    assert!(missed.is_empty(), "{} changes were not noticed: {missed:#?}", missed.len());
    assert!(noticed >= 5 * tables.len(), "only {noticed} changes in {} tables", tables.len());

    for table in &tables {
        let delete = changes(table).swap_remove(0);
        assert!(Connection::open(&database).unwrap().execute(&delete, []).unwrap() > 0, "{}", table.name);
    }
    let mut again = DaemonOptions::new(Model::Offline).state_root(&root).start().await.unwrap();
    let mut lines = again.client().journal_verify().await.unwrap();
    while let Some(line) = lines.next().await.unwrap() {
        if let VerifyLine::Report(report) = line {
            assert!(report.problems.is_empty(), "{report:?}");
        }
    }
    again.stop().await.unwrap();
    for Table { name, rows, .. } in &tables {
        let count = format!("SELECT count(*) FROM {name}");
        let found: i64 = Connection::open(&database).unwrap().query_row(&count, [], |row| row.get(0)).unwrap();
        assert!(found >= *rows, "{name} has {found} of {rows} rows");
    }
}
