//! Whose a change is that was found by comparison, and that undo touches nobody else's.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use palyra_common::{ChangeAttribution, RunId};
use palyra_tools::{
    Changed, Checkpoint, CheckpointLimits, CheckpointStore, EffectId, EffectStore, ToolError, UndoRequest,
    WriterVisibility, undo,
};
use serde_json::json;

use crate::support::{Bench, snapshot};

const ONE: u128 = 1;
const TWO: u128 = 2;

fn bench() -> (Bench, CheckpointStore) {
    let mut bench = Bench::new();
    let store = CheckpointStore::open(bench.dir.path().join("state/checkpoints")).unwrap();
    let effects = EffectStore::open(bench.dir.path().join("state/effects")).unwrap();
    bench.effects = Arc::new(effects.reporting_to(store.activity()));
    for name in ["edited", "deleted", "own"] {
        bench.file(name, name);
    }
    (bench, store)
}

fn take(bench: &Bench, store: &CheckpointStore, run: u128) -> Checkpoint {
    store.take(&bench.workspace, CheckpointLimits::default(), RunId::from_u128(run), &bench.cancel).unwrap()
}

fn changes(bench: &Bench, checkpoint: &Checkpoint) -> Changed {
    checkpoint.changes(&bench.workspace, bench.artifacts.as_ref(), &bench.cancel).unwrap()
}

fn take_back(bench: &Bench, changed: &Changed, id: &str) -> Result<(), ToolError> {
    let id = EffectId::new(id);
    undo(
        &UndoRequest::all_or_nothing(&changed.changes),
        &bench.workspace,
        bench.artifacts.as_ref(),
        &bench.effects,
        &id,
    )
    .map(|_| ())
}

fn attributed(changed: &Changed) -> Vec<(&str, ChangeAttribution)> {
    changed.changes.iter().map(|change| (change.path.as_str(), change.attribution)).collect()
}

/// Longer than the clocks of file systems take to tick.
fn pause() {
    std::thread::sleep(Duration::from_millis(60));
}

/// Has a person do something while the program certainly does not run.
fn while_idle(checkpoint: &Checkpoint, deed: impl FnOnce()) {
    pause();
    let from = SystemTime::now();
    pause();
    deed();
    pause();
    checkpoint.idle_periods().add(from, SystemTime::now());
    pause();
}

#[test]
fn what_a_person_changed_while_the_program_slept_stands_against_undo() {
    for (path, deed) in [
        ("edited", (|bench| bench.file("edited", "a person's")) as fn(&Bench)),
        ("deleted", |bench| fs::remove_file(bench.root().join("deleted")).unwrap()),
        ("own", |bench| bench.file("own", "by the call, and a person's")),
    ] {
        let (bench, store) = bench();
        let checkpoint = take(&bench, &store, ONE);
        pause();
        bench.file("own", "by the call");
        while_idle(&checkpoint, || deed(&bench));
        let changed = changes(&bench, &checkpoint);
        assert!(attributed(&changed).contains(&(path, ChangeAttribution::Contested)), "{changed:?}");
        let before = snapshot(&bench.root());
        let refused = take_back(&bench, &changed, "undo").unwrap_err();
        assert_eq!(refused.code(), "undo_conflict");
        assert_eq!(refused.to_string(), format!("nothing was undone: changed by someone else during a call: `{path}`"));
        assert_eq!(snapshot(&bench.root()), before);
    }
}

#[test]
fn what_a_person_made_while_the_program_slept_is_not_among_its_changes() {
    let (bench, store) = bench();
    let checkpoint = take(&bench, &store, ONE);
    pause();
    bench.file("own", "by the call");
    bench.file("new", "by the call");
    while_idle(&checkpoint, || bench.file("notes", "a person's"));
    let changed = changes(&bench, &checkpoint);
    let observed = ChangeAttribution::Observed;
    assert_eq!(attributed(&changed), [("own", observed), ("new", observed)]);
    take_back(&bench, &changed, "undo").unwrap();
    assert_eq!(bench.text("notes").as_deref(), Some("a person's"));
    assert_eq!((bench.text("own").as_deref(), bench.text("new")), (Some("own"), None));
}

#[test]
fn what_changes_after_the_program_is_gone_is_not_its_own() {
    let (bench, store) = bench();
    let checkpoint = take(&bench, &store, ONE);
    pause();
    bench.file("own", "by the call");
    pause();
    checkpoint.idle_periods().ended();
    pause();
    bench.file("edited", "a person's");
    let changed = changes(&bench, &checkpoint);
    assert_eq!(attributed(&changed), [("edited", ChangeAttribution::Contested), ("own", ChangeAttribution::Observed)]);
}

#[test]
fn what_changed_while_a_server_slept_may_be_that_of_a_program_it_uses() {
    let (bench, store) = bench();
    let checkpoint = take(&bench, &store, ONE).with_writers(WriterVisibility::Partial);
    pause();
    bench.file("own", "by the server");
    while_idle(&checkpoint, || {
        bench.file("edited", "a person's");
        bench.file("new", "a person's, or a container's");
    });
    let changed = changes(&bench, &checkpoint);
    let (contested, observed) = (ChangeAttribution::Contested, ChangeAttribution::Observed);
    assert_eq!(attributed(&changed), [("edited", contested), ("own", observed), ("new", contested)]);
    let before = snapshot(&bench.root());
    assert_eq!(take_back(&bench, &changed, "undo").unwrap_err().code(), "undo_conflict");
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn where_nobody_is_observed_everything_may_be_somebody_elses() {
    let (bench, store) = bench();
    let checkpoint = take(&bench, &store, ONE).with_writers(WriterVisibility::Absent);
    pause();
    bench.file("edited", "by the server, or a person");
    fs::remove_file(bench.root().join("deleted")).unwrap();
    bench.file("new", "by the server, or a person");
    bench.call("fs.write", json!({"path": "own", "content": "by a file tool"})).unwrap();
    let changed = changes(&bench, &checkpoint);
    let contested = ChangeAttribution::Contested;
    assert_eq!(attributed(&changed), [("deleted", contested), ("edited", contested), ("new", contested)]);
    assert_eq!(take_back(&bench, &changed, "undo").unwrap_err().code(), "undo_conflict");
}

#[test]
fn two_runs_at_work_at_once_undo_nothing_of_each_other() {
    let (bench, store) = bench();
    let first = take(&bench, &store, ONE);
    pause();
    bench.file("own", "by the first, before the second began");
    pause();
    let second = take(&bench, &store, TWO);
    pause();
    bench.file("edited", "by one of them");
    let before = snapshot(&bench.root());
    let (of_first, of_second) = (changes(&bench, &first), changes(&bench, &second));
    let (contested, observed) = (ChangeAttribution::Contested, ChangeAttribution::Observed);
    assert_eq!(attributed(&of_first), [("edited", contested), ("own", observed)]);
    assert_eq!(attributed(&of_second), [("edited", contested)]);
    assert!(take_back(&bench, &of_first, "one").is_err() && take_back(&bench, &of_second, "two").is_err());
    assert_eq!(snapshot(&bench.root()), before);
    drop((first, second));
    // Once nobody else is at work, an ordinary undo goes through again.
    pause();
    let third = take(&bench, &store, ONE);
    pause();
    bench.file("own", "by the third");
    let changed = changes(&bench, &third);
    take_back(&bench, &changed, "three").unwrap();
    assert_eq!(bench.text("own").as_deref(), Some("by the first, before the second began"));
}

#[test]
fn a_run_that_slept_takes_nothing_from_the_one_that_wrote() {
    let (bench, store) = bench();
    let (first, second) = (take(&bench, &store, ONE), take(&bench, &store, TWO));
    while_idle(&second, || {
        bench.file("edited", "by the first");
        bench.file("new", "by the first");
    });
    let of_first = changes(&bench, &first);
    let observed = ChangeAttribution::Observed;
    assert_eq!(attributed(&of_first), [("edited", observed), ("new", observed)]);
    assert_eq!(attributed(&changes(&bench, &second)), [("edited", ChangeAttribution::Contested)]);
    take_back(&bench, &of_first, "undo").unwrap();
}

#[test]
fn two_calls_of_one_run_are_undone_together() {
    let (bench, store) = bench();
    let server = take(&bench, &store, ONE);
    let program = take(&bench, &store, ONE);
    pause();
    bench.file("edited", "by the program");
    let mut both = changes(&bench, &program);
    drop(program);
    both.changes.extend(changes(&bench, &server).changes);
    take_back(&bench, &both, "undo").unwrap();
    assert_eq!(bench.text("edited").as_deref(), Some("edited"));
}

#[test]
fn what_a_file_tool_wrote_meanwhile_is_reported_by_the_tool_alone() {
    let (bench, store) = bench();
    let checkpoint = take(&bench, &store, ONE);
    pause();
    bench.file("own", "by the call");
    let by_tool = bench.call("fs.write", json!({"path": "edited", "content": "by a tool of another run"})).unwrap();
    bench.call("fs.write", json!({"path": "deleted", "content": "by a tool first"})).unwrap();
    bench.file("deleted", "and by the call");
    let changed = changes(&bench, &checkpoint);
    assert_eq!(attributed(&changed), [("deleted", ChangeAttribution::Contested), ("own", ChangeAttribution::Observed)]);
    let only_own = Changed {
        excluded: std::collections::BTreeSet::new(),
        changes: changed.changes.into_iter().filter(|change| change.path == "own").collect(),
        not_covered: Vec::new(),
    };
    take_back(&bench, &only_own, "undo").unwrap();
    assert_eq!(bench.text("edited").as_deref(), Some("by a tool of another run"));
    assert_eq!(by_tool.changes.len(), 1);
}
