//! What a program can change beside the contents of files: covered, or named in the result.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
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
    let mut expected = vec![".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git/modules/one/config"];
    // `sub` is excluded by the ignore file, and named for it.
    assert!(changed.not_covered.iter().any(|line| line.contains("`sub` changed")), "{changed:?}");
    expected.sort_unstable();
    assert_eq!(paths, expected, "{changed:?}");
    take_back(&bench, &changed);
    bench.file("sub/.git/hooks/pre-push", "#!/bin/sh\n");
    assert_eq!(snapshot(&bench.root()), before);
}

#[test]
fn what_ignore_files_exclude_is_named_when_it_changed_and_only_then() {
    let bench = Bench::new();
    bench.file(".gitignore", "*.log\nbuild/\nquiet/\n");
    for name in ["a.log", "b.log", "gone.log", "build/deep/out", "quiet/deep/out"] {
        bench.file(name, "1");
    }
    let checkpoint = take(&bench);
    bench.file("a.log", "2");
    bench.file("build/deep/out", "2");
    bench.file("new.log", "1");
    fs::remove_file(bench.root().join("gone.log")).unwrap();
    let changed = changes(&bench, &checkpoint);
    assert!(changed.changes.is_empty());
    assert_eq!(
        changed.not_covered,
        [
            "`a.log` changed, and ignore files exclude it",
            "`build` changed, and ignore files exclude it",
            "`new.log` is new, and ignore files exclude it",
            "`gone.log`, which was not copied before, is gone",
        ]
    );
}

#[test]
fn directories_links_owners_attributes_and_names_are_named() {
    let bench = Bench::new();
    for name in ["linked", "attributed", "owned", "a", "b", "mode/file"] {
        bench.file(name, name);
    }
    let root = bench.root();
    fs::create_dir(root.join("empty")).unwrap();
    symlink("a", root.join("link")).unwrap();
    fs::hard_link(root.join("linked"), root.join("twin")).unwrap();
    let checkpoint = take(&bench);
    assert!(changes(&bench, &checkpoint).not_covered.is_empty(), "nothing is named before anything changed");
    fs::remove_dir(root.join("empty")).unwrap();
    fs::create_dir_all(root.join("made/inside")).unwrap();
    fs::set_permissions(root.join("mode"), Permissions::from_mode(0o711)).unwrap();
    fs::remove_file(root.join("link")).unwrap();
    symlink("b", root.join("link")).unwrap();
    bench.file("linked", "other");
    let file = fs::File::open(root.join("attributed")).unwrap();
    let with_attributes = rustix::fs::fsetxattr(&file, "user.palyra", b"1", rustix::fs::XattrFlags::empty()).is_ok();
    let as_root = rustix::process::geteuid().is_root();
    if as_root {
        std::os::unix::fs::chown(root.join("owned"), Some(12), Some(34)).unwrap();
    }
    let changed = changes(&bench, &checkpoint);
    let mut expected = vec![
        "the permissions of the directory `mode` changed from 755 to 711",
        "`made` is a new directory",
        "`empty`, a directory, is gone",
        "`link` was a link to `a` and is a link to `b` now",
        "`linked` had 2 names (hard links); undo restores it as a file of its own",
        "`twin` had 2 names (hard links); undo restores it as a file of its own",
    ];
    if with_attributes {
        expected.push("the extended attributes of `attributed` changed");
    }
    if as_root {
        expected.push("the owner of `owned` changed from 0:0 to 12:34");
    }
    let mut told: Vec<_> = changed.not_covered.iter().map(String::as_str).collect();
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
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
    assert!(told("permissions of the directory `shut`"), "{changed:?}");
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
