//! Everything that can be changed in a state, one thing at a time: each table, row and column, and each file. Verification notices all of it.

use std::fs;
use std::path::{Path, PathBuf};

use palyra_figures::{Aim, Report};
use palyra_journal::Journal;
use palyra_journal::rusqlite::Connection;
use palyra_journal::rusqlite::types::Value;

use crate::support::{check_with, copy_dir, fill, note, on_tape, options};

/// One change, and what it is called.
struct Tamper {
    name: String,
    apply: Box<dyn Fn(&Path)>,
}

/// A state that has something of everything: segments, artifacts, kept checkpoints, runs.
fn subject(root: &Path) {
    let mut options = options(root);
    options.segment_records = 1;
    options.checkpoint_every = 500;
    options.inline_payload_bytes = 64;
    let journal = Journal::open(options).unwrap();
    fill(&journal, 2_200);
    for step in 1..=3 {
        let mut large = note(step);
        large.payload = format!("{{\"text\":\"{}\"}}", "x".repeat(100 + step as usize)).into_bytes();
        journal.append_blocking(vec![on_tape(1, step), large]).unwrap();
    }
    let began = std::time::Instant::now();
    let sealed = "SELECT count(*) = 2 AND max(last_seq) < (SELECT min(seq) FROM records) FROM segments";
    while !journal.read_blocking(|r| Ok(r.connection().query_row(sealed, [], |row| row.get::<_, bool>(0))?)).unwrap() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "no segment was sealed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    journal.close_blocking().unwrap();
}

fn database(root: &Path) -> Connection {
    Connection::open(root.join("journal/journal.db")).unwrap()
}

fn sql(name: String, text: String) -> Tamper {
    Tamper { name, apply: Box::new(move |root| database(root).execute_batch(&text).unwrap()) }
}

/// Another value of the same type.
fn another(value: &Value) -> Option<String> {
    match value {
        Value::Integer(n) => Some((n ^ 1).to_string()),
        Value::Real(n) => Some((n + 1.0).to_string()),
        Value::Text(text) => Some(format!("'{}x'", text.replace('\'', "''"))),
        Value::Blob(bytes) if bytes.is_empty() => Some("x'00'".to_owned()),
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            bytes[0] ^= 1;
            Some(format!("x'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
        }
        Value::Null => None,
    }
}

/// Rows of every table: removed, changed in each column, put there.
fn rows(root: &Path) -> Vec<Tamper> {
    let connection = database(root);
    let mut names =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").unwrap();
    let tables: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut tampers = Vec::new();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1")).unwrap();
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let all: Vec<Vec<Value>> = statement
            .query_map([], |row| (0..columns.len()).map(|column| row.get(column)).collect())
            .unwrap()
            .map(Result::unwrap)
            .collect();
        if all.is_empty() {
            continue;
        }
        tampers.push(sql(format!("empty {table}"), format!("DELETE FROM {table}")));
        tampers.push(sql(format!("drop {table}"), format!("DROP TABLE {table}")));
        for (place, row) in [("first", &all[0]), ("middle", &all[all.len() / 2]), ("last", &all[all.len() - 1])] {
            let key = &columns[0];
            let value = literal(&row[0]);
            tampers.push(sql(
                format!("delete the {place} of {table}"),
                format!("DELETE FROM {table} WHERE {key} = {value}"),
            ));
            for (column, old) in columns.iter().zip(row) {
                let Some(new) = another(old) else { continue };
                let text = format!("UPDATE OR REPLACE {table} SET {column} = {new} WHERE {key} = {value}");
                // A constraint that refuses the change is not a change.
                let copy = tempfile::tempdir().unwrap();
                fs::copy(root.join("journal/journal.db"), copy.path().join("journal.db")).unwrap();
                if Connection::open(copy.path().join("journal.db")).unwrap().execute_batch(&text).is_ok() {
                    tampers.push(sql(format!("change {column} of the {place} of {table}"), text));
                }
            }
        }
    }
    let quarantine = "INSERT INTO quarantined VALUES ('kinds', 5, 'no reason')";
    tampers.push(sql("quarantine a record".to_owned(), quarantine.to_owned()));
    let extra = "CREATE TABLE extra (a INTEGER)";
    tampers.push(sql("add a table".to_owned(), extra.to_owned()));
    tampers.push(sql(
        "add a trigger".to_owned(),
        "CREATE TRIGGER t AFTER INSERT ON kinds BEGIN DELETE FROM kinds; END".to_owned(),
    ));
    tampers.push(sql("drop an index".to_owned(), "DROP INDEX records_by_run".to_owned()));
    tampers
}

fn literal(value: &Value) -> String {
    match value {
        Value::Integer(n) => n.to_string(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Blob(bytes) => format!("x'{}'", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        other => panic!("no key: {other:?}"),
    }
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

/// Every file: removed, emptied, cut, and with a byte changed.
fn files(root: &Path) -> Vec<Tamper> {
    let mut paths = Vec::new();
    files_below(root, &mut paths);
    paths.sort();
    let mut tampers = Vec::new();
    for path in paths {
        let inside = path.strip_prefix(root).unwrap().to_owned();
        // Nothing is claimed about these: the lock's text, and the note that spares reading the tables.
        if inside.ends_with("writer.lock") || inside.ends_with("closed") {
            continue;
        }
        let mut add = |what: &str, change: fn(&Path)| {
            let inside = inside.clone();
            let name = format!("{what} {}", inside.display());
            tampers.push(Tamper { name, apply: Box::new(move |root| change(&root.join(&inside))) });
        };
        add("remove", |path| fs::remove_file(path).unwrap());
        add("empty", |path| fs::write(path, "").unwrap());
        add("cut", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        });
        add("change the first byte of", |path| change_byte(path, 0));
    }
    let directories = ["journal", "journal/segments", "artifacts", "keys"];
    for inside in directories {
        let name = format!("remove {inside}/");
        tampers.push(Tamper { name, apply: Box::new(move |root| fs::remove_dir_all(root.join(inside)).unwrap()) });
    }
    tampers
}

fn change_byte(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn no_change_of_any_row_or_file_goes_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    subject(&state);
    let report = check_with(&state, None);
    assert!(report.is_complete(), "the untouched state: {report:?}");
    let mut tampers = rows(&state);
    tampers.extend(files(&state));
    assert!(tampers.len() >= 150, "only {} tampers", tampers.len());
    let mut unnoticed = Vec::new();
    for (number, tamper) in tampers.iter().enumerate() {
        let copy = dir.path().join(number.to_string());
        copy_dir(&state, &copy);
        (tamper.apply)(&copy);
        let options = palyra_journal::VerifyOptions {
            projections: vec![std::sync::Arc::new(crate::support::Kinds { version: 1 })],
            ..palyra_journal::VerifyOptions::default()
        };
        if palyra_journal::verify(&copy, options).is_ok_and(|report| report.is_complete()) {
            unnoticed.push(tamper.name.as_str());
        }
        fs::remove_dir_all(&copy).unwrap();
    }
    let n = tampers.len() as u64;
    let mut figures = Report::new("tamper");
    figures.figure("tamper.tried", n as f64, "changes", None, Aim::AtLeast(150.0), n, None).figure(
        "tamper.unnoticed",
        unnoticed.len() as f64,
        "changes",
        None,
        Aim::AtMost(0.0),
        n,
        None,
    );
    figures.note("each row of each table and each file of a small journal is removed or changed once");
    figures.finish().unwrap();
    assert!(unnoticed.is_empty(), "{} of {} went unnoticed: {unnoticed:#?}", unnoticed.len(), tampers.len());
}

#[test]
fn a_deleted_journal_is_never_replaced_by_an_empty_one() {
    for anchor_too in [false, true] {
        for before_a_start in [false, true] {
            deleted(before_a_start, anchor_too);
        }
    }
}

fn deleted(before_a_start: bool, anchor_too: bool) {
    let dir = tempfile::tempdir().unwrap();
    let journal = crate::support::open(dir.path());
    journal.append_blocking(vec![note(1)]).unwrap();
    journal.close_blocking().unwrap();
    let delete = || {
        fs::remove_dir_all(dir.path().join("journal")).unwrap();
        if anchor_too {
            fs::remove_file(dir.path().join("journal.anchor")).unwrap();
        }
    };
    let refused = || crate::support::code(&Journal::open(options(dir.path())).unwrap_err());
    delete();
    if !before_a_start {
        assert_eq!(refused(), "journal_damaged", "{anchor_too}");
    }
    palyra_journal::accept_loss(dir.path(), palyra_common::Timestamp(7)).unwrap();
    let journal = crate::support::open(dir.path());
    assert_eq!(journal.head().count, 0);
    journal.close_blocking().unwrap();
    // What was accepted was that loss, not every other.
    delete();
    assert_eq!(refused(), "journal_damaged", "{anchor_too}");
}

#[test]
fn a_first_start_that_was_cut_short_is_not_a_deleted_journal() {
    let dir = tempfile::tempdir().unwrap();
    crate::support::open(dir.path()).close_blocking().unwrap();
    // As it is left when the daemon dies between making the key and signing the empty log.
    for name in ["journal/anchor", "journal.anchor", "journal/closed"] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join("journal/journal.db"), "").unwrap();
    assert_eq!(crate::support::open(dir.path()).head().count, 0);
}

#[test]
fn a_replaced_key_is_refused() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for root in [dir.path(), other.path()] {
        let journal = crate::support::open(root);
        journal.append_blocking(vec![note(1)]).unwrap();
        journal.close_blocking().unwrap();
    }
    fs::copy(other.path().join("keys/journal.key"), dir.path().join("keys/journal.key")).unwrap();
    let refused = Journal::open(options(dir.path())).unwrap_err();
    assert_eq!(crate::support::code(&refused), "journal_key_unusable", "{refused}");
}
