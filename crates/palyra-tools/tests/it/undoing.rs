//! Taking back what a run did.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use palyra_tools::{EffectId, FileChange, ToolError, UndoReport, UndoRequest, undo};
use proptest::prelude::{ProptestConfig, Strategy, proptest};
use proptest::{prop_assert_eq, prop_oneof};
use serde_json::{Value, json};

use crate::support::{Bench, snapshot};

fn take_back(bench: &Bench, changes: &[FileChange], id: &str) -> Result<UndoReport, ToolError> {
    undo(
        &UndoRequest::all_or_nothing(changes),
        &bench.workspace,
        bench.artifacts.as_ref(),
        &bench.effects,
        &EffectId::new(id),
    )
}

#[test]
fn a_run_is_taken_back_and_forth() {
    let bench = Bench::new();
    bench.file("a", "one\n");
    bench.file("gone", "x\n");
    fs::set_permissions(bench.root().join("gone"), Permissions::from_mode(0o711)).unwrap();
    let before = snapshot(&bench.root());
    let mut changes = Vec::new();
    for (tool, arguments) in [
        ("fs.write", json!({"path": "a", "content": "two\n"})),
        ("fs.write", json!({"path": "new/deep/b", "content": "b\n"})),
        ("fs.edit", json!({"path": "new/deep/b", "old": "b", "new": "bb"})),
        (
            "fs.apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: a\n-two\n+three\n*** Delete File: gone\n*** Add File: new/c\n+c\n*** End Patch"}),
        ),
    ] {
        changes.extend(bench.call(tool, arguments).unwrap().changes);
    }
    let after = snapshot(&bench.root());
    let report = take_back(&bench, &changes, "undo").unwrap();
    assert_eq!(report.restored, ["a", "gone"]);
    assert_eq!(report.removed, ["new/c", "new/deep/b"]);
    assert_eq!(snapshot(&bench.root()), before, "directories included");
    assert_eq!(fs::metadata(bench.root().join("gone")).unwrap().permissions().mode() & 0o777, 0o711);
    assert_eq!(take_back(&bench, &changes, "undo").unwrap(), report, "once");
    take_back(&bench, &report.changes, "redo").unwrap();
    assert_eq!(snapshot(&bench.root()), after);
}

#[test]
fn a_file_changed_since_stops_the_whole_undo() {
    let bench = Bench::new();
    for name in ["a", "b", "c", "d"] {
        bench.file(name, "old");
    }
    let mut changes = Vec::new();
    for name in ["a", "b", "c", "d"] {
        changes.extend(bench.call("fs.write", json!({"path": name, "content": "new"})).unwrap().changes);
    }
    bench.file("b", "a person's");
    fs::remove_file(bench.root().join("c")).unwrap();
    fs::remove_file(bench.root().join("d")).unwrap();
    fs::create_dir(bench.root().join("d")).unwrap();
    let before = snapshot(&bench.root());
    let error = take_back(&bench, &changes, "undo").unwrap_err();
    assert_eq!(error.code(), "undo_conflict");
    assert_eq!(error.to_string(), "nothing was undone: changed since the run: `b`, `c`, `d`");
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn a_change_between_two_calls_is_not_lost() {
    let bench = Bench::new();
    bench.file("a", "old");
    let mut changes = bench.call("fs.write", json!({"path": "a", "content": "1"})).unwrap().changes;
    bench.file("a", "a person's");
    changes.extend(bench.call("fs.write", json!({"path": "a", "content": "2"})).unwrap().changes);
    assert_eq!(take_back(&bench, &changes, "undo").unwrap_err().code(), "undo_conflict");
    assert_eq!(bench.text("a").unwrap(), "2");
}

#[test]
fn a_file_that_became_very_long_is_a_conflict_and_not_hashed() {
    let bench = Bench::new();
    bench.file("a", "old");
    let changes = bench.call("fs.write", json!({"path": "a", "content": "new"})).unwrap().changes;
    // A tebibyte of nothing: hashing it would take an hour.
    fs::File::options().write(true).open(bench.root().join("a")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(take_back(&bench, &changes, "undo").unwrap_err().code(), "undo_conflict");
    assert_eq!(fs::metadata(bench.root().join("a")).unwrap().len(), 1 << 40);
}

#[test]
fn a_missing_before_image_stops_the_undo() {
    let bench = Bench::new();
    bench.file("a", "old");
    let changes = bench.call("fs.write", json!({"path": "a", "content": "new"})).unwrap().changes;
    let empty = palyra_tools::MemoryArtifacts::default();
    let error =
        undo(&UndoRequest::all_or_nothing(&changes), &bench.workspace, &empty, &bench.effects, &EffectId::new("u"))
            .unwrap_err();
    assert_eq!(error.code(), "artifact_not_found");
    assert_eq!(bench.text("a").unwrap(), "new");
}

/// A few edits of a few files, some of which will not be possible.
fn edit() -> impl Strategy<Value = (&'static str, Value)> {
    let name = "[ab](/[cd])?";
    prop_oneof![
        (name, "[xyz\n]{0,8}").prop_map(|(path, content)| ("fs.write", json!({"path": path, "content": content}))),
        name.prop_map(|path| ("fs.apply_patch", patch(&format!("*** Delete File: {path}")))),
        (name, name)
            .prop_map(|(from, to)| ("fs.apply_patch", patch(&format!("*** Update File: {from}\n*** Move to: {to}")))),
        (name, name).prop_map(|(one, two)| (
            "fs.apply_patch",
            patch(&format!("*** Add File: {one}\n+n\n*** Add File: {two}\n+m"))
        )),
        name.prop_map(|path| ("fs.apply_patch", patch(&format!("*** Update File: {path}\n@@\n+appended")))),
    ]
}

fn patch(body: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{body}\n*** End Patch") })
}

proptest! {
    // Each case makes files; more cases find no more.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn undo_gives_the_original(edits in proptest::collection::vec(edit(), 1..10)) {
        let bench = Bench::new();
        bench.file("a", "x\ny\n");
        bench.file("b/c", "z\n");
        let before = snapshot(&bench.root());
        let mut changes = Vec::new();
        for (tool, arguments) in edits {
            if let Ok(output) = bench.call(tool, arguments) {
                changes.extend(output.changes);
            }
        }
        take_back(&bench, &changes, "undo").unwrap();
        prop_assert_eq!(snapshot(&bench.root()), before);
    }
}
