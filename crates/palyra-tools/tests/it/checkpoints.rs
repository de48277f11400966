//! Changes that no tool reported: found by comparison, and taken back like any other.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use palyra_common::RunId;
use palyra_tools::{Changed, Checkpoint, CheckpointLimits, CheckpointStore, EffectId, UndoRequest, undo};
use proptest::prelude::{ProptestConfig, Strategy, proptest};
use proptest::{prop_assert_eq, prop_oneof};

use crate::support::{Bench, snapshot};

fn store(bench: &Bench) -> CheckpointStore {
    CheckpointStore::open(bench.dir.path().join("state/checkpoints")).unwrap()
}

fn take(bench: &Bench, store: &CheckpointStore) -> Checkpoint {
    store.take(&bench.workspace, CheckpointLimits::default(), RunId::from_u128(1), &bench.cancel).unwrap()
}

fn changes(bench: &Bench, checkpoint: &Checkpoint) -> Changed {
    checkpoint.changes(&bench.workspace, bench.artifacts.as_ref(), &bench.cancel).unwrap()
}

fn take_back(bench: &Bench, changed: &Changed) {
    let id = EffectId::new("undo");
    undo(
        &UndoRequest::all_or_nothing(&changed.changes),
        &bench.workspace,
        bench.artifacts.as_ref(),
        &bench.effects,
        &id,
    )
    .unwrap();
}

#[test]
fn what_a_stranger_did_is_found_and_taken_back() {
    let bench = Bench::new();
    bench.file("edited", "one");
    bench.file("deleted", "two");
    bench.file("old/deep/deleted", "three");
    bench.file("mode", "four");
    bench.file("kept", "five");
    let before = snapshot(&bench.root());
    let store = store(&bench);
    let checkpoint = take(&bench, &store);
    assert_eq!((checkpoint.cost().files, checkpoint.cost().copied, checkpoint.uncounted()), (5, 5, 0));
    bench.file("edited", "changed");
    bench.file("new/deep/made", "six");
    fs::remove_file(bench.root().join("deleted")).unwrap();
    fs::remove_dir_all(bench.root().join("old")).unwrap();
    fs::set_permissions(bench.root().join("mode"), Permissions::from_mode(0o700)).unwrap();
    let changed = changes(&bench, &checkpoint);
    let paths: Vec<_> = changed.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["deleted", "edited", "mode", "old/deep/deleted", "old", "old/deep", "new/deep/made"]);
    assert!(changed.not_covered.is_empty(), "{:?}", changed.not_covered);
    take_back(&bench, &changed);
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn the_second_checkpoint_copies_only_what_changed() {
    let bench = Bench::new();
    for n in 0..50 {
        bench.file(format!("f{n}"), format!("{n}"));
    }
    std::thread::sleep(Duration::from_millis(120));
    let store = store(&bench);
    assert_eq!(take(&bench, &store).cost().copied, 50);
    bench.file("f7", "other");
    std::thread::sleep(Duration::from_millis(120));
    let cost = take(&bench, &store).cost();
    assert_eq!((cost.files, cost.copied, cost.copied_bytes), (50, 1, 5));
}

#[test]
fn restoring_the_modification_time_hides_nothing() {
    let bench = Bench::new();
    bench.file("a", "same length 1");
    let path = bench.root().join("a");
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    std::thread::sleep(Duration::from_millis(120));
    let store = store(&bench);
    let checkpoint = take(&bench, &store);
    fs::write(&path, "same length 2").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(changes(&bench, &checkpoint).changes.len(), 1);
}

#[test]
fn an_ignore_file_written_meanwhile_hides_nothing_that_was_there() {
    let bench = Bench::new();
    bench.file("a", "one");
    let before = snapshot(&bench.root());
    let store = store(&bench);
    let checkpoint = take(&bench, &store);
    bench.file(".gitignore", "*\n");
    bench.file("a", "two");
    let changed = changes(&bench, &checkpoint);
    assert!(changed.changes.iter().any(|change| change.path == "a" && change.after.is_some()), "{changed:?}");
    fs::remove_file(bench.root().join(".gitignore")).unwrap();
    let changed = changes(&bench, &checkpoint);
    take_back(&bench, &changed);
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn what_is_not_covered_is_said() {
    let bench = Bench::new();
    bench.file("large", vec![b'x'; 2_000]);
    bench.file("small", "1");
    let store = store(&bench);
    let limits = CheckpointLimits { file_bytes: 1_000, ..CheckpointLimits::default() };
    let checkpoint = store.take(&bench.workspace, limits, RunId::from_u128(1), &bench.cancel).unwrap();
    assert_eq!((checkpoint.cost().files, checkpoint.uncounted()), (1, 0));
    bench.file("large", vec![b'y'; 2_000]);
    symlink("small", bench.root().join("link")).unwrap();
    let changed = changes(&bench, &checkpoint);
    let paths: Vec<_> = changed.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["link"], "a link can be taken back");
    assert_eq!(changed.not_covered, ["`large` changed and was not copied before"]);
    let few = CheckpointLimits { files: 1, ..CheckpointLimits::default() };
    assert_eq!(store.take(&bench.workspace, few, RunId::from_u128(1), &bench.cancel).unwrap().uncounted(), 1);
}

#[test]
fn a_cancelled_checkpoint_is_an_error_and_an_old_store_is_emptied() {
    let bench = Bench::new();
    bench.file("a", "1");
    let store = store(&bench);
    bench.cancel.cancel();
    let error =
        store.take(&bench.workspace, CheckpointLimits::default(), RunId::from_u128(1), &bench.cancel).unwrap_err();
    assert!(matches!(error, palyra_tools::ToolError::Cancelled), "{error}");
    let root = bench.dir.path().join("state/checkpoints");
    fs::write(root.join("left over"), "x").unwrap();
    CheckpointStore::open(&root).unwrap();
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
}

/// Longer than a file counts as young.
fn settle() {
    std::thread::sleep(Duration::from_millis(120));
}

#[test]
fn files_that_came_into_sight_are_not_taken_for_new_ones() {
    let bench = Bench::new();
    bench.file(".gitignore", "*.log\nbuild/\n");
    bench.file("person.log", "a person's");
    bench.file("build/out", "a person's");
    bench.file("a", "1");
    settle();
    let (before, store) = (snapshot(&bench.root()), store(&bench));
    let few = CheckpointLimits { files: 1, ..CheckpointLimits::default() };
    for limits in [CheckpointLimits::default(), few] {
        let checkpoint = store.take(&bench.workspace, limits, RunId::from_u128(1), &bench.cancel).unwrap();
        fs::remove_file(bench.root().join(".gitignore")).unwrap();
        let changed = changes(&bench, &checkpoint);
        let new: Vec<_> = changed.changes.iter().filter(|change| change.before.is_none()).collect();
        assert!(new.is_empty(), "{new:?}");
        bench.file(".gitignore", "*.log\nbuild/\n");
        assert_eq!(snapshot(&bench.root()), before);
        settle();
    }
}

#[test]
fn undo_does_not_remove_what_was_there_unseen_in_a_form_that_nobody_kept() {
    let bench = Bench::new();
    bench.file(".gitignore", "build/\n");
    for name in ["build/edited", "build/replaced", "build/moved"] {
        bench.file(name, "a person's");
    }
    bench.file("covered", "1");
    settle();
    let store = store(&bench);
    let nothing_filled_again = CheckpointLimits { tree_entries: 0, ..CheckpointLimits::default() };
    let checkpoint = store.take(&bench.workspace, nothing_filled_again, RunId::from_u128(1), &bench.cancel).unwrap();
    fs::remove_file(bench.root().join(".gitignore")).unwrap();
    // In place, by a new file in its place, in a directory that was not entered, and under another name.
    bench.file("build/edited", "by the call");
    bench.file("new", "by the call");
    fs::rename(bench.root().join("new"), bench.root().join("build/replaced")).unwrap();
    bench.file("build/more", "by the call");
    fs::rename(bench.root().join("build/moved"), bench.root().join("seen.txt")).unwrap();
    fs::rename(bench.root().join("covered"), bench.root().join("renamed")).unwrap();
    let changed = changes(&bench, &checkpoint);
    let expected = ["`build/edited`", "`build/more`", "`build/replaced`", "`seen.txt`"];
    assert_eq!(changed.not_covered, expected.map(|path| format!("{path} changed and was not copied before")));
    take_back(&bench, &changed);
    for name in ["build/edited", "build/replaced", "build/more", "seen.txt", "covered"] {
        assert!(bench.text(name).is_some(), "{name} is gone");
    }
    assert_eq!(bench.text("renamed"), None, "the same file is there again under its old name");
}

#[test]
fn undo_is_a_conflict_wherever_somebody_was_since() {
    type Deed = fn(&Bench);
    let by_the_call: Deed = |bench| {
        bench.file("edited", "by the call");
        fs::remove_file(bench.root().join("deleted")).unwrap();
        fs::rename(bench.root().join("renamed"), bench.root().join("to")).unwrap();
        bench.file("new/deep/made", "by the call");
        fs::remove_file(bench.root().join("replaced")).unwrap();
        bench.file("replaced/inside", "by the call");
    };
    let by_a_person: [(&str, Deed); 9] = [
        ("edited", |bench| bench.file("edited", "a person's")),
        ("edited", |bench| fs::remove_file(bench.root().join("edited")).unwrap()),
        ("deleted", |bench| bench.file("deleted", "a person's")),
        ("deleted", |bench| bench.file("deleted/inside", "a person's")),
        ("to", |bench| bench.file("to", "a person's")),
        ("renamed", |bench| bench.file("renamed", "a person's")),
        ("new/deep/made", |bench| bench.file("new/deep/made", "a person's")),
        ("edited", |bench| {
            fs::remove_file(bench.root().join("edited")).unwrap();
            symlink("deleted", bench.root().join("edited")).unwrap();
        }),
        ("replaced", |bench| bench.file("replaced/of a person", "a person's")),
    ];
    for (number, (path, deed)) in by_a_person.into_iter().enumerate() {
        let bench = Bench::new();
        for name in ["edited", "deleted", "renamed", "replaced"] {
            bench.file(name, name);
        }
        let store = store(&bench);
        let checkpoint = take(&bench, &store);
        by_the_call(&bench);
        let changed = changes(&bench, &checkpoint);
        deed(&bench);
        let before = snapshot(&bench.root());
        let id = EffectId::new("undo");
        let refused = undo(
            &UndoRequest::all_or_nothing(&changed.changes),
            &bench.workspace,
            bench.artifacts.as_ref(),
            &bench.effects,
            &id,
        );
        let error = refused.expect_err(&format!("{number} {path}"));
        assert!(error.to_string().contains(path), "{number} {path}: {error}");
        assert_eq!(snapshot(&bench.root()), before, "{number} {path}: nothing is touched");
    }
    // What somebody puts beside the call's files stays, with the directory that it is in.
    let bench = Bench::new();
    let store = store(&bench);
    let checkpoint = take(&bench, &store);
    bench.file("new/made", "by the call");
    let changed = changes(&bench, &checkpoint);
    bench.file("new/beside", "a person's");
    take_back(&bench, &changed);
    assert_eq!((bench.text("new/made"), bench.text("new/beside").as_deref()), (None, Some("a person's")));
}

/// One thing that a process may do to a tree of few names.
#[derive(Debug, Clone)]
enum Deed {
    Write(u8, u8),
    Remove(u8),
    RemoveDirectory(u8),
    Mode(u8, bool),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (0..12_u8, 0..4_u8).prop_map(|(file, content)| Deed::Write(file, content)),
        (0..12_u8).prop_map(Deed::Remove),
        (0..3_u8).prop_map(Deed::RemoveDirectory),
        (0..12_u8, proptest::bool::ANY).prop_map(|(file, strict)| Deed::Mode(file, strict)),
    ]
}

fn name(file: u8) -> String {
    format!("d{}/{}f{file}", file % 3, if file.is_multiple_of(2) { "e/" } else { "" })
}

fn act(bench: &Bench, deed: &Deed) {
    match deed {
        Deed::Write(file, content) => bench.file(name(*file), vec![b'a' + content; 5]),
        Deed::Remove(file) => drop(fs::remove_file(bench.root().join(name(*file)))),
        Deed::RemoveDirectory(directory) => drop(fs::remove_dir_all(bench.root().join(format!("d{directory}")))),
        Deed::Mode(file, strict) => {
            let mode = if *strict { 0o600 } else { 0o755 };
            drop(fs::set_permissions(bench.root().join(name(*file)), Permissions::from_mode(mode)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_done_to_files_is_taken_back(first in proptest::collection::vec(deed(), 0..20), then in proptest::collection::vec(deed(), 1..20)) {
        let bench = Bench::new();
        for deed in &first {
            act(&bench, deed);
        }
        // Empty directories are not files; one that only the process made may stay.
        let files = || -> Vec<_> { snapshot(&bench.root()).into_iter().filter(|(_, content)| content != b"directory").collect() };
        let before = files();
        let store = store(&bench);
        let checkpoint = take(&bench, &store);
        for deed in &then {
            act(&bench, deed);
        }
        let changed = changes(&bench, &checkpoint);
        take_back(&bench, &changed);
        let after = changes(&bench, &checkpoint);
        prop_assert_eq!(after.changes.len(), 0, "{:?}", after.changes);
        prop_assert_eq!(files(), before);
    }
}

#[test]
fn what_is_too_long_to_be_hashed_is_named_and_left_alone() {
    let bench = Bench::new();
    let store = store(&bench);
    let limits = CheckpointLimits { hashed_bytes: 1_000, ..CheckpointLimits::default() };
    let before = store.take(&bench.workspace, limits, RunId::from_u128(1), &bench.cancel).unwrap();
    let root = bench.workspace.root();
    std::fs::write(root.join("short"), "made").unwrap();
    let sparse = std::fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let changed = changes(&bench, &before);
    assert_eq!(changed.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["short"]);
    assert!(
        changed.not_covered.iter().any(|line| line.contains("`sparse`") && line.contains("not hashed")),
        "{changed:?}"
    );
    take_back(&bench, &changed);
    assert!(!root.join("short").exists() && root.join("sparse").exists());
}

#[test]
fn a_comparison_ends_when_it_is_cancelled() {
    let bench = Bench::new();
    let store = store(&bench);
    let limits = CheckpointLimits { hashed_bytes: u64::MAX, ..CheckpointLimits::default() };
    let before = store.take(&bench.workspace, limits, RunId::from_u128(1), &bench.cancel).unwrap();
    // Eight tebibytes of nothing: hashing them would take hours.
    let sparse = std::fs::File::create(bench.workspace.root().join("sparse")).unwrap();
    sparse.set_len(1 << 43).unwrap();
    let stop = bench.cancel.clone();
    let stopping = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        stop.cancel();
    });
    let compared = before.changes(&bench.workspace, bench.artifacts.as_ref(), &bench.cancel);
    assert!(matches!(compared, Err(palyra_tools::ToolError::Cancelled)), "{compared:?}");
    stopping.join().unwrap();
}
