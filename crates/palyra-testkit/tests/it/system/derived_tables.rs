//! Rows of tables that somebody removed, changed or added while the daemon was stopped: each is noticed by itself, and the next start builds derived tables again from the
//! journal.
//!
//! The tables are those that the database has. A table that the fixture leaves empty fails the test, so that nobody adds one whose rows were never tampered with.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use palyra_client::Client;
use palyra_client::api::VerifyLine;
use palyra_common::{
    AcpCommand, BindingId, Digest, Label, RequestId, RunId, RunLifecyclePhase, SessionId, StableErrorEnvelope,
    Timestamp,
};
use palyra_journal::rusqlite::Connection;
use palyra_journal::{Journal, JournalOptions, NewRecord, Reader, VerifyOptions};
use palyra_testkit::{DaemonOptions, Exit, Model, TestContext, TestDaemon, copy_tree};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PATIENCE, call, file_labels, finish, task, wait_for_phase, workspace};

/// Tables that a daemon empties by itself when it starts, with what it does about their rows. Only rows that are added can be tested there.
const EMPTIED: [(&str, &str); 2] = [
    ("hooks_due", "hooks that a dead daemon owed are run"),
    ("reservations", "money that was held for calls of a dead daemon is booked"),
];

/// A table, and its columns with their types.
struct Table {
    name: String,
    columns: Vec<(String, String)>,
    rows: i64,
}

/// Tables that are derived from the log, as the database itself lists them.
const DERIVED: &str = "SELECT value FROM projections, json_each(tables)";
/// All others: the log, and what proves it.
const OWN: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
    EXCEPT SELECT value FROM projections, json_each(tables)";

fn tables(database: &Path, which: &str) -> Vec<Table> {
    let connection = Connection::open(database).unwrap();
    let mut statement = connection.prepare(&format!("{which} ORDER BY 1")).unwrap();
    let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let table = |name: String| {
        let mut described = connection.prepare("SELECT name, type FROM pragma_table_info(?1)").unwrap();
        let columns = described.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let columns = columns.map(Result::unwrap).collect();
        let rows = connection.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0)).unwrap();
        Table { name, columns, rows }
    };
    names.into_iter().map(table).collect()
}

/// Every kind of change to a table: a row removed, changed in each column, added.
fn changes(Table { name, columns, rows }: &Table) -> Vec<String> {
    if *rows == 0 {
        let value = |(_, kind): &(String, String)| match kind.as_str() {
            "TEXT" => "'x'",
            "BLOB" => "x'00'",
            _ => "1",
        };
        let values: Vec<&str> = columns.iter().map(value).collect();
        return vec![format!("INSERT INTO {name} VALUES ({})", values.join(", "))];
    }
    let key = &columns[0].0;
    let first = format!("WHERE {key} = (SELECT {key} FROM {name} LIMIT 1)");
    let other = |column: &str| {
        format!(
            "CASE typeof({column}) WHEN 'text' THEN {column} || 'x' WHEN 'blob' THEN CAST({column} || x'00' AS BLOB) ELSE {column} + 1 END"
        )
    };
    let mut changes = vec![format!("DELETE FROM {name} {first}")];
    changes.extend(columns.iter().map(|(column, _)| {
        format!("UPDATE OR REPLACE {name} SET {column} = {} {first} AND {column} IS NOT NULL", other(column))
    }));
    let values: Vec<String> =
        columns.iter().map(|(column, _)| if column == key { other(column) } else { column.clone() }).collect();
    changes.push(format!("INSERT OR IGNORE INTO {name} SELECT {} FROM {name} LIMIT 1", values.join(", ")));
    changes
}

/// Whether a command may be given again under its key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyed {
    Yes,
    /// Its answer has a secret.
    No,
}

async fn tell(client: &Client, command: AcpCommand, keyed: Keyed, params: Value) -> Value {
    asked(client, command, keyed, params).await.unwrap_or_else(|error| panic!("{command}: {error:?}"))
}

async fn asked(
    client: &Client,
    command: AcpCommand,
    keyed: Keyed,
    params: Value,
) -> Result<Value, StableErrorEnvelope> {
    let mut request = json!({ "request_id": RequestId::generate(), "command": command, "params": params });
    if keyed == Keyed::Yes {
        request["idempotency_key"] = json!(format!("{command}"));
    }
    let request = serde_json::from_value(request).unwrap();
    client.envelope(&request).await.unwrap().into_outcome()
}

/// A state in which something of everything happened.
async fn fixture() -> (TestContext, TestDaemon, TempDir) {
    let workspace = workspace();
    let context = TestContext::new().unwrap();
    file_labels::add_mail_server(&context);
    let text = "a text that is too long to be shown whole ".repeat(4_000);
    fs::write(workspace.path().join("long.txt"), text).unwrap();
    let fields = json!([{ "type": "text", "name": "city", "label": "City", "required": true }]);
    let page = json!({ "title": "A trip", "document": { "root": { "type": "form", "id": "trip", "fields": fields } } });
    let write = call("palyra.fs.write", json!({ "path": "notes.md", "content": "other lines\n" }));
    let script = json!({ "script": [
        { "when": "keep the mail", "turn": [
            call("mcp.mail.read", json!({})),
            call("palyra.fs.write", json!({ "path": "mail.txt", "content": "$v1" })),
            { "text": "kept" },
        ] },
        { "when": "draw it", "turn": [call("palyra.a2ui.render", page), { "text": "drawn" }] },
        { "when": "list it", "turn": [call("palyra.process.run", json!({ "argv": ["ls", "-a"] })), { "text": "listed" }] },
        { "when": "wait for me", "turn": [write.clone(), { "text": "waited" }] },
        { "turn": [call("palyra.fs.read", json!({ "path": "long.txt" })), write, { "text": "done" }] },
    ] });
    let options = DaemonOptions::new(Model::Scripted(script)).state_root(&context.state_root());
    let mut daemon = options.env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write,palyra.process.run").start().await.unwrap();
    let client = daemon.client();
    let of = |prompt: &str| {
        let mut params = task(prompt, workspace.path());
        params.idempotency_key = Some(prompt.to_owned());
        params
    };
    let changed = client.create_run(&of("change notes.md")).await.unwrap();
    finish(&client, changed.run_id).await;
    client.undo_run(changed.run_id).await.unwrap();

    let drawn = client.create_run(&of("draw it")).await.unwrap();
    finish(&client, drawn.run_id).await;
    let canvases = tell(&client, AcpCommand::CanvasList, Keyed::No, json!({})).await;
    let canvas = &canvases["canvases"][0]["canvas_id"];
    let filled_in = json!({ "canvas_id": canvas, "component_id": "trip", "values": { "city": "Bern" } });
    tell(&client, AcpCommand::CanvasSubmit, Keyed::Yes, filled_in).await;
    tell(&client, AcpCommand::CanvasLink, Keyed::No, json!({ "canvas_id": canvas })).await;

    let listed = client.create_run(&of("list it")).await.unwrap();
    wait_for_phase(&client, listed.run_id, RunLifecyclePhase::WaitingForApproval).await;
    let question = client.run(listed.run_id).await.unwrap().pending_approvals[0].approval_id;
    let allowed = json!({ "approval_id": question, "decision": "allow", "scope": "session" });
    tell(&client, AcpCommand::ApprovalDecide, Keyed::Yes, allowed).await;
    finish(&client, listed.run_id).await;

    let kept = client.create_run(&of("keep the mail")).await.unwrap();
    wait_for_phase(&client, kept.run_id, RunLifecyclePhase::WaitingForApproval).await;
    let question = client.run(kept.run_id).await.unwrap().pending_approvals[0].approval_id;
    // The key of the other answer says nothing about this one.
    let allowed = json!({ "approval_id": question, "decision": "allow", "scope": "once" });
    tell(&client, AcpCommand::ApprovalDecide, Keyed::No, allowed).await;
    finish(&client, kept.run_id).await;
    let seen = json!({
        "workspace": workspace.path().display().to_string(), "path": "mail.txt", "digest": Digest::of(file_labels::TEXT.as_bytes()),
    });
    tell(&client, AcpCommand::FileEndorse, Keyed::Yes, seen).await;

    let session = drawn.session_id;
    let place = json!({ "place": { "channel": "editor" }, "session_id": session });
    tell(&client, AcpCommand::BindingSet, Keyed::Yes, place).await;
    let granted = json!({ "principal": "ci", "path": workspace.path().display().to_string() });
    tell(&client, AcpCommand::WorkspaceGrant, Keyed::Yes, granted).await;
    tell(&client, AcpCommand::AgentSet, Keyed::Yes, json!({ "agent_id": "helper" })).await;
    tell(&client, AcpCommand::ApprovalRequest, Keyed::Yes, json!({ "subject": "tool", "summary": "may I?" })).await;
    tell(&client, AcpCommand::AttachmentAdd, Keyed::Yes, json!({ "name": "n.txt", "data": "aGVsbG8g" })).await;
    let glad = json!({ "kind": "classification", "input": { "text": "late again", "labels": ["glad", "cross"] } });
    // The script has no turn for it, so the task fails, which is as good.
    let failed = asked(&client, AcpCommand::AuxiliaryRun, Keyed::No, glad).await.unwrap_err();
    assert_eq!(failed.code, "model_request_rejected");
    // Any key will do: here it is the journal's.
    let keys = fs::read_to_string(daemon.state_root().join("keys/journal.pub")).unwrap();
    let trusted = json!({ "publisher": "acme", "public_key": keys.lines().next() });
    tell(&client, AcpCommand::PublisherTrust, Keyed::Yes, trusted).await;
    let token = tell(&client, AcpCommand::TokenCreate, Keyed::No, json!({ "name": "t", "role": "viewer" })).await;

    let waiting = client.create_run(&of("wait for me")).await.unwrap();
    wait_for_phase(&client, waiting.run_id, RunLifecyclePhase::WaitingForApproval).await;
    let queued = json!({ "session_id": waiting.session_id, "text": "and then" });
    tell(&client, AcpCommand::SessionInput, Keyed::Yes, queued).await;
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0), "{}", daemon.log());
    happen_elsewhere(daemon.state_root(), &token["token"]["token_id"], canvas);
    // The tables are built from the log by a daemon, which knows all of them.
    daemon.restart().await.unwrap();
    assert_eq!(daemon.stop().await.unwrap(), Exit::Code(0), "{}", daemon.log());
    (context, daemon, workspace)
}

/// Puts on the log what takes a device, a plugin, a priced model or a backup to happen.
fn happen_elsewhere(root: &Path, token: &Value, canvas: &Value) {
    let mut options = JournalOptions::at(root);
    options.segment_records = 1;
    let journal = Journal::open(options).unwrap();
    let (key, run, session) = (journal.public_key().id(), RunId::generate(), SessionId::generate());
    let binding = json!({ "id": "greeter", "event": "gateway:startup", "plugin_id": "acme.nothing", "on_failure": "fail_open", "enabled": false });
    let cost = json!({ "micro_usd": 7, "assumed": false });
    let received = json!({
        "binding_id": BindingId::generate(), "message_id": "m", "sender": "s", "trusted": false, "session_id": session, "input_id": "i",
    });
    let patch = json!([{ "op": "replace", "path": "/root/id", "value": "trip" }]);
    let redrawn = json!({
        "canvas_id": canvas, "session_id": session, "run_id": run, "effect_id": "e", "version": 2, "patch": patch, "label": Label::user(),
    });
    let tested = json!({
        "run_id": run, "session_id": session, "asked": { "provider": "acme", "model": "large" },
        "usage": { "input_tokens": 1, "output_tokens": 1 }, "cost": cost,
    });
    let records = [
        ("device.revoked", json!({ "device_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "serials": ["0a"], "by": "uid:0" })),
        ("hook_binding.set", json!({ "binding": binding, "by": "ada" })),
        ("message.received", received),
        ("canvas.changed", redrawn),
        ("openai.answered", json!({ "owner": "ada", "conversation": Digest::of(b"x"), "run_id": run, "from_seq": 1 })),
        ("models.tested", tested),
        // A record that the books cannot take in is set aside by them.
        ("budget.reserved", json!({ "reservation": 1 })),
        // One that a table cannot take in is set aside by the journal.
        ("openai.answered", json!({ "owner": 1 })),
        ("tokens.used", json!({ "used": [[token, 1]] })),
        ("journal.restored", json!({ "restored_at": 1, "key_id": key, "former_key_id": key })),
    ];
    let batch = records.map(|(kind, payload)| NewRecord::new(kind, Timestamp(1), payload.to_string().into_bytes()));
    let last = journal.append_blocking(batch.to_vec()).unwrap().last_seq;
    let accepted = json!({ "through_seq": last, "key_id": key }).to_string().into_bytes();
    journal.append_blocking(vec![NewRecord::new("journal.restore_accepted", Timestamp(1), accepted)]).unwrap();
    // As many as a segment takes.
    let filler = NewRecord::new("client.filler", Timestamp(1), b"{}".to_vec());
    journal.append_blocking(vec![filler; 2_048]).unwrap();
    let began = Instant::now();
    let segments = |reader: &Reader| {
        Ok(reader.connection().query_row("SELECT count(*) FROM segments", [], |row| row.get::<_, i64>(0))?)
    };
    while journal.read_blocking(segments).unwrap() == 0 {
        assert!(began.elapsed() < PATIENCE, "no segment is sealed");
        std::thread::sleep(Duration::from_millis(5));
    }
    journal.close_blocking().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_to_a_row_of_any_table_is_noticed_and_a_start_puts_derived_ones_right() {
    let (_context, daemon, _workspace) = fixture().await;
    let copy = TempDir::with_prefix("palyra-tables-").unwrap();
    let root = copy.path().join("state");
    copy_tree(daemon.state_root(), &root).unwrap();
    let database = root.join("journal/journal.db");
    let (tables, own) = (tables(&database, DERIVED), tables(&database, OWN));
    let is_emptied = |table: &&Table| EMPTIED.iter().any(|(name, _)| *name == table.name);
    let all = || tables.iter().chain(&own);
    let empty: Vec<_> = all().filter(|table| table.rows == 0 && !is_emptied(table)).map(|t| &t.name).collect();
    assert!(empty.is_empty(), "nothing in the fixture fills {empty:?}");
    let filled: Vec<_> = tables.iter().filter(|table| table.rows > 0 && is_emptied(table)).map(|t| &t.name).collect();
    assert!(filled.is_empty(), "these are not empty after a start: {filled:?}");
    for (name, _) in EMPTIED {
        assert!(tables.iter().any(|table| table.name == name), "there is no table {name}");
    }
    let refused: i64 = Connection::open(&database)
        .unwrap()
        .query_row("SELECT count(*) FROM quarantined", [], |row| row.get(0))
        .unwrap();
    assert_eq!(refused, 1, "records of the fixture that a table does not take in");
    let untouched = fs::read(&database).unwrap();
    let report = palyra_journal::verify(&root, VerifyOptions::default()).unwrap();
    assert!(report.is_complete(), "{report:?}");

    let (mut noticed, mut missed) = (0, Vec::new());
    for table in all() {
        let is_own = own.iter().any(|own| own.name == table.name);
        for change in changes(table) {
            // What a constraint refuses is no change, nor is one to a value that is not there.
            if Connection::open(&database).unwrap().execute(&change, []).is_ok_and(|rows| rows > 0) {
                let report = palyra_journal::verify(&root, VerifyOptions::default()).unwrap();
                // What is wrong with the log itself is named by record.
                let named = |position: String| is_own || position.contains(&table.name);
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
    println!("{noticed} changes in {} tables", all().count());

    for table in &tables {
        let first = changes(table).swap_remove(0);
        assert!(Connection::open(&database).unwrap().execute(&first, []).unwrap() > 0, "{}", table.name);
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
