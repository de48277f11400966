//! What a program can change beside the contents of files: covered, or named in the result.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use palyra_common::RunId;
use palyra_tools::{Changed, Checkpoint, CheckpointLimits, CheckpointStore, EffectId, UndoRequest, undo};

use crate::support::{Bench, snapshot};

fn take(bench: &Bench) -> Checkpoint {
    // Longer than a file counts as young.
    std::thread::sleep(Duration::from_millis(120));
    let store = CheckpointStore::open(bench.dir.path().join("state/checkpoints")).unwrap();
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
fn hooks_and_configuration_of_git_are_reported_and_undone() {
    let bench = Bench::new();
    bench.file(".gitignore", "*\n");
    bench.file(".git/config", "[core]\n");
    bench.file(".git/objects/aa/bb", "data");
    bench.file("sub/.git/hooks/pre-push", "#!/bin/sh\n");
    bench.file(".git/modules/one/config", "[core]\n");
    let before = snapshot(&bench.root());
    let checkpoint = take(&bench);
    bench.file(".git/config", "[core]\n\tfsmonitor = evil\n");
    bench.file(".git/hooks/pre-commit", "#!/bin/sh\nevil\n");
    bench.file(".git/modules/one/config", "[core]\n\tsshCommand = evil\n");
    bench.file(".git/info/attributes", "* filter=evil\n");
    fs::remove_file(bench.root().join("sub/.git/hooks/pre-push")).unwrap_or_default();
    let changed = changes(&bench, &checkpoint);
    let mut paths: Vec<_> = changed.changes.iter().map(|change| change.path.as_str()).collect();
    paths.sort_unstable();
    let expected = [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/info/attributes",
        ".git/modules/one/config",
        "sub/.git/hooks/pre-push",
    ];
    assert_eq!(paths, expected, "{changed:?}");
    take_back(&bench, &changed);
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn what_is_filled_again_is_named_when_it_changed_and_only_then() {
    let bench = Bench::new();
    bench.file(".gitignore", "*.log\nbuild/\ntarget/\ndata/\n");
    for name in
        ["a.log", "gone.log", "build/deep/out", "build/more", "target/deep/out", "target/more", "data/x", "data/y"]
    {
        bench.file(name, "1");
    }
    std::thread::sleep(Duration::from_millis(120));
    let store = CheckpointStore::open(bench.dir.path().join("state/checkpoints")).unwrap();
    let limits = CheckpointLimits { tree_entries: 1, ..CheckpointLimits::default() };
    assert_eq!(store.survey(&bench.workspace, limits).unwrap(), [], "it may be lost");
    let checkpoint = store.take(&bench.workspace, limits, RunId::from_u128(1), &bench.cancel).unwrap();
    bench.file("a.log", "2");
    bench.file("build/deep/out", "2");
    bench.file("new.log", "1");
    bench.file("data/x", "2");
    fs::remove_file(bench.root().join("gone.log")).unwrap();
    let changed = changes(&bench, &checkpoint);
    let paths: Vec<_> = changed.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["a.log", "data/x", "gone.log", "new.log"], "what ignore files exclude is covered");
    assert_eq!(changed.not_covered, ["`build` changed, which is filled again and was not copied"]);
    take_back(&bench, &changed);
    assert_eq!((bench.text("a.log").as_deref(), bench.text("data/x").as_deref()), (Some("1"), Some("1")));
    assert_eq!((bench.text("gone.log").as_deref(), bench.text("new.log")), (Some("1"), None));
}

#[test]
fn build_products_that_were_not_there_go_as_a_whole_whoever_built_again() {
    let bench = Bench::new();
    bench.file(".gitignore", "target/\n");
    bench.file("src", "1");
    let before = snapshot(&bench.root());
    let checkpoint = take(&bench);
    bench.file("target/debug/app", "built");
    let changed = changes(&bench, &checkpoint);
    let paths: Vec<_> = changed.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["target"], "{changed:?}");
    bench.file("target/debug/app", "built again");
    bench.file("target/release/app", "built by a person");
    take_back(&bench, &changed);
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn what_was_there_is_never_removed_as_a_build_product() {
    let bench = Bench::new();
    bench.file(".gitignore", "target/\nnode_modules/\n");
    bench.file("node_modules/a/b", "1");
    std::thread::sleep(Duration::from_millis(120));
    let store = CheckpointStore::open(bench.dir.path().join("state/checkpoints")).unwrap();
    let limits = CheckpointLimits { tree_entries: 1, ..CheckpointLimits::default() };
    let checkpoint = store.take(&bench.workspace, limits, RunId::from_u128(1), &bench.cancel).unwrap();
    fs::rename(bench.root().join("node_modules"), bench.root().join("target")).unwrap();
    let changed = changes(&bench, &checkpoint);
    assert!(changed.changes.is_empty(), "{changed:?}");
    assert_eq!(
        changed.not_covered,
        ["`target` is new and holds what was there before", "`node_modules`, which was not copied before, is gone"]
    );
}

#[test]
fn owners_and_attributes_are_named() {
    let bench = Bench::new();
    for name in ["attributed", "owned"] {
        bench.file(name, name);
    }
    let root = bench.root();
    let checkpoint = take(&bench);
    assert!(changes(&bench, &checkpoint).not_covered.is_empty(), "nothing is named before anything changed");
    let file = fs::File::open(root.join("attributed")).unwrap();
    let with_attributes = rustix::fs::fsetxattr(&file, "user.palyra", b"1", rustix::fs::XattrFlags::empty()).is_ok();
    let as_root = rustix::process::geteuid().is_root();
    if as_root {
        std::os::unix::fs::chown(root.join("owned"), Some(12), Some(34)).unwrap();
    }
    let changed = changes(&bench, &checkpoint);
    let mut expected = Vec::new();
    if with_attributes {
        expected.push("the extended attributes of `attributed` changed");
    }
    if as_root {
        expected.push("the owner of `owned` changed from 0:0 to 12:34");
    }
    assert_eq!(changed.not_covered, expected);
}

#[test]
fn what_a_deleted_file_will_not_have_again_is_named() {
    let bench = Bench::new();
    for name in ["attributed", "linked", "owned", "plain", "privileged"] {
        bench.file(name, name);
    }
    let root = bench.root();
    let file = fs::File::open(root.join("attributed")).unwrap();
    let with_attributes = rustix::fs::fsetxattr(&file, "user.palyra", b"1", rustix::fs::XattrFlags::empty()).is_ok();
    fs::hard_link(root.join("linked"), bench.dir.path().join("elsewhere")).unwrap();
    let as_root = rustix::process::geteuid().is_root();
    if as_root {
        std::os::unix::fs::chown(root.join("owned"), Some(12), Some(34)).unwrap();
    }
    fs::set_permissions(root.join("privileged"), Permissions::from_mode(0o4755)).unwrap();
    let checkpoint = take(&bench);
    for name in ["attributed", "linked", "owned", "plain", "privileged"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    let changed = changes(&bench, &checkpoint);
    let mut expected = Vec::new();
    if with_attributes {
        expected.push("`attributed` had extended attributes, which undo does not restore");
    }
    expected.push("`linked` had 2 names (hard links); undo restores it as a file of its own");
    if as_root {
        expected.push("`owned` belonged to 12:34, which undo does not restore");
    }
    expected.push("the set-user-id, set-group-id or sticky bit of `privileged`, which undo does not restore");
    assert_eq!(changed.not_covered, expected);
}

#[test]
fn a_directory_that_cannot_be_read_is_named_and_its_files_are_not_deleted_ones() {
    let bench = Bench::new();
    bench.file("shut/file", "1");
    bench.file("unreadable", "1");
    let checkpoint = take(&bench);
    let root = bench.root();
    bench.file("unreadable", "2");
    fs::set_permissions(root.join("unreadable"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(root.join("shut"), Permissions::from_mode(0o000)).unwrap();
    let changed = changes(&bench, &checkpoint);
    fs::set_permissions(root.join("shut"), Permissions::from_mode(0o755)).unwrap();
    assert!(changed.changes.iter().all(|change| change.after.is_some()), "nothing was deleted: {changed:?}");
    let told = |part: &str| changed.not_covered.iter().any(|line| line.contains(part));
    assert!(
        changed.changes.iter().any(|change| change.path == "shut" && change.before_mode == Some(0o755)),
        "{changed:?}"
    );
    if !rustix::process::geteuid().is_root() {
        assert!(told("changes in `shut`: the directory cannot be read"), "{changed:?}");
        assert!(told("`unreadable` changed and cannot be read"), "{changed:?}");
    }
}

#[test]
fn a_path_longer_than_the_kernel_takes_hides_nothing() {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let bench = Bench::new();
    let checkpoint = take(&bench);
    let name = "d".repeat(200);
    let mut here = std::os::fd::OwnedFd::from(fs::File::open(bench.root()).unwrap());
    for _ in 0..25 {
        mkdirat(&here, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
        here = openat(&here, name.as_str(), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    }
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    drop(openat(&here, "hidden", flags, Mode::from_raw_mode(0o644)).unwrap());
    let changed = changes(&bench, &checkpoint);
    assert!(
        changed.not_covered.iter().any(|line| line.contains("/hidden` is new and cannot be read")),
        "{:?}",
        changed.not_covered.iter().map(String::len).collect::<Vec<_>>()
    );
}
