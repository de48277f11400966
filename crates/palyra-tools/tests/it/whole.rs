//! Undo takes back everything that a program can do to a workspace, byte for byte.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use palyra_common::RunId;
use palyra_tools::{Changed, Checkpoint, CheckpointLimits, CheckpointStore, EffectId, Reach, UndoRequest, undo};
use proptest::prelude::{ProptestConfig, Strategy, proptest};
use proptest::{prop_assert_eq, prop_oneof};

use crate::support::Bench;

fn store(bench: &Bench) -> CheckpointStore {
    CheckpointStore::open(bench.dir.path().join("state/checkpoints")).unwrap()
}

fn take(bench: &Bench, store: &CheckpointStore) -> Checkpoint {
    let checkpoint =
        store.take(&bench.workspace, CheckpointLimits::default(), RunId::from_u128(1), &bench.cancel).unwrap();
    assert_eq!(checkpoint.reaches(), [], "everything is covered");
    checkpoint
}

fn changes(bench: &Bench, checkpoint: &Checkpoint) -> Changed {
    checkpoint.changes(&bench.workspace, bench.artifacts.as_ref(), &bench.cancel).unwrap()
}

fn take_back(bench: &Bench, changed: &Changed) {
    let (request, id) = (UndoRequest::all_or_nothing(&changed.changes), EffectId::new("undo"));
    undo(&request, &bench.workspace, bench.artifacts.as_ref(), &bench.effects, &id).unwrap();
}

/// A directory and everything in it: mode, content or target, and which names are those of one file.
fn whole(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>, Vec<PathBuf>)> {
    let mut found = BTreeMap::new();
    let mut names: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    let mut inodes = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    found.insert(root.to_path_buf(), (root.metadata().unwrap().mode() & 0o7777, b"directory".to_vec(), Vec::new()));
    while let Some(here) = left.pop() {
        for entry in fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() {
                left.push(path.clone());
                b"directory".to_vec()
            } else if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                names.entry(metadata.ino()).or_default().push(path.clone());
                inodes.insert(path.clone(), metadata.ino());
                fs::read(&path).unwrap()
            };
            found.insert(path, (metadata.mode() & 0o7777, content, Vec::new()));
        }
    }
    names.values_mut().for_each(|names| names.sort());
    for (path, inode) in inodes {
        found.get_mut(&path).unwrap().2 = names[&inode].clone();
    }
    found
}

#[test]
fn links_directories_modes_names_and_large_files_come_back() {
    let bench = Bench::new();
    let root = bench.root();
    for name in ["a", "b", "dir/file", "dir/deep/file", "gone/file", "becomes_a_link", "becomes_a_directory", "mode"] {
        bench.file(name, name);
    }
    bench.file("large", vec![b'x'; 40 << 20]);
    fs::create_dir(root.join("empty")).unwrap();
    fs::set_permissions(root.join("gone"), Permissions::from_mode(0o2750)).unwrap();
    symlink("a", root.join("link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("dir", root.join("becomes_a_file")).unwrap();
    for name in ["one", "two", "three"] {
        drop(fs::remove_file(root.join(name)));
    }
    bench.file("one", "linked");
    fs::hard_link(root.join("one"), root.join("two")).unwrap();
    fs::hard_link(root.join("one"), root.join("dir/three")).unwrap();
    bench.file("single", "s");
    fs::hard_link(root.join("single"), root.join("copied_apart")).unwrap();
    fs::set_permissions(&root, Permissions::from_mode(0o2755)).unwrap();
    let before = whole(&root);
    let checkpoint = take(&bench, &store(&bench));
    fs::remove_dir(root.join("empty")).unwrap();
    fs::create_dir_all(root.join("made/inside")).unwrap();
    fs::remove_dir_all(root.join("gone")).unwrap();
    fs::remove_file(root.join("link")).unwrap();
    symlink("b", root.join("link")).unwrap();
    fs::remove_file(root.join("dangling")).unwrap();
    for name in ["becomes_a_link", "becomes_a_directory", "becomes_a_file"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    symlink("a", root.join("becomes_a_link")).unwrap();
    fs::create_dir(root.join("becomes_a_directory")).unwrap();
    bench.file("becomes_a_file", "now a file");
    bench.file("one", "changed through one name");
    fs::write(root.join("copied_apart"), "s").unwrap();
    fs::remove_file(root.join("copied_apart")).unwrap();
    bench.file("copied_apart", "s");
    bench.file("large", vec![b'y'; 41 << 20]);
    symlink("x", root.join("new_link")).unwrap();
    let pipe = rustix::fs::CWD;
    rustix::fs::mknodat(pipe, root.join("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    fs::set_permissions(root.join("mode"), Permissions::from_mode(0o400)).unwrap();
    fs::remove_dir_all(root.join("dir/deep")).unwrap();
    bench.file("dir/deep", "a file where a directory was");
    fs::set_permissions(root.join("dir"), Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(&root, Permissions::from_mode(0o500)).unwrap();
    let changed = changes(&bench, &checkpoint);
    assert_eq!(changed.not_covered, Vec::<String>::new());
    take_back(&bench, &changed);
    let after = whole(&root);
    for (path, was) in &before {
        let is = after.get(path);
        assert!(
            is == Some(was),
            "{}: {:?}",
            path.display(),
            is.map(|(mode, content, names)| (mode, content.len(), names))
        );
    }
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
}

fn git(root: &Path, arguments: &[&str]) {
    let command = Command::new("git")
        .current_dir(root)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(command.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&command.stderr));
}

#[test]
fn a_commit_and_all_that_git_keeps_of_it_is_taken_back() {
    let bench = Bench::new();
    let root = bench.root();
    bench.file(".gitignore", "secret.env\n");
    bench.file("secret.env", "ignored and precious");
    bench.file("src", "1");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "first"]);
    let before = whole(&root);
    let checkpoint = take(&bench, &store(&bench));
    bench.file("src", "2");
    bench.file("secret.env", "overwritten");
    git(&root, &["commit", "-qam", "second"]);
    git(&root, &["branch", "other"]);
    git(&root, &["gc", "-q"]);
    let changed = changes(&bench, &checkpoint);
    assert_eq!(changed.not_covered, Vec::<String>::new());
    take_back(&bench, &changed);
    assert_eq!(whole(&root), before);
    git(&root, &["fsck", "--strict"]);
}

#[test]
fn undo_takes_nothing_from_whoever_used_git_since() {
    let bench = Bench::new();
    let root = bench.root();
    bench.file("src", "1");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-qm", "first"]);
    let checkpoint = take(&bench, &store(&bench));
    bench.file("src", "2");
    git(&root, &["add", "src"]);
    let changed = changes(&bench, &checkpoint);
    std::thread::sleep(std::time::Duration::from_millis(20));
    // The object of `2` was made by the run, and the person's commit needs it.
    git(&root, &["commit", "-qm", "a person's"]);
    take_back(&bench, &changed);
    assert_eq!(bench.text("src").as_deref(), Some("1"));
    git(&root, &["fsck", "--strict"]);
    git(&root, &["show", "HEAD:src"]);
}

#[test]
fn what_reaches_outside_or_is_not_copied_speaks_against_being_contained() {
    let bench = Bench::new();
    let root = bench.root();
    let store = store(&bench);
    let survey = || store.survey(&bench.workspace, CheckpointLimits::default()).unwrap();
    bench.file("a", "1");
    bench.file("node_modules/x", "1");
    bench.file(".gitignore", "node_modules\n");
    fs::hard_link(root.join("a"), root.join("b")).unwrap();
    assert_eq!(survey(), [], "a name inside is no way out");
    let outside = bench.dir.path().join("outside");
    fs::write(&outside, "1").unwrap();
    fs::hard_link(&outside, root.join("node_modules/y")).unwrap();
    assert!(matches!(&survey()[..], [Reach::Outside(what)] if what.contains("`node_modules/y`")), "{:?}", survey());
    let few = CheckpointLimits { tree_entries: 0, ..CheckpointLimits::default() };
    let told = store.survey(&bench.workspace, few).unwrap();
    assert!(matches!(&told[..], [Reach::Outside(what)] if what.contains("`node_modules/y`")), "not copied: {told:?}");
    fs::remove_file(root.join("node_modules/y")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, root.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(matches!(&survey()[..], [Reach::Outside(what)] if what.contains("`pipe`, a named pipe")), "{:?}", survey());
    fs::remove_file(root.join("pipe")).unwrap();
    let small = CheckpointLimits { total_bytes: 10, ..CheckpointLimits::default() };
    bench.file("large", vec![b'x'; 20]);
    let told = store.survey(&bench.workspace, small).unwrap();
    assert!(matches!(&told[..], [Reach::Undo(what)] if what.contains("`large` with 20 bytes")), "{told:?}");
}

/// One thing that a program may do to a tree of few names.
#[derive(Debug, Clone)]
enum Deed {
    Write(u8, u8),
    Link(u8, u8),
    Name(u8, u8),
    Directory(u8),
    Move(u8, u8),
    Remove(u8),
    Mode(u8, u8),
}

fn deed() -> impl Strategy<Value = Deed> {
    let name = || 0..10_u8;
    prop_oneof![
        (name(), 0..4_u8).prop_map(|(path, content)| Deed::Write(path, content)),
        (name(), name()).prop_map(|(path, to)| Deed::Link(path, to)),
        (name(), name()).prop_map(|(path, to)| Deed::Name(path, to)),
        name().prop_map(Deed::Directory),
        (name(), name()).prop_map(|(path, to)| Deed::Move(path, to)),
        name().prop_map(Deed::Remove),
        (name(), 0..3_u8).prop_map(|(path, mode)| Deed::Mode(path, mode)),
    ]
}

fn place(root: &Path, number: u8) -> PathBuf {
    let names = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a", ".git/x"];
    root.join(names[usize::from(number) % names.len()])
}

fn act(root: &Path, deed: &Deed) {
    // Much of this fails, as programs do.
    match deed {
        Deed::Write(path, content) => drop(fs::write(place(root, *path), vec![b'a' + content; 5])),
        Deed::Link(path, to) => drop(symlink(place(root, *to), place(root, *path))),
        Deed::Name(path, to) => drop(fs::hard_link(place(root, *path), place(root, *to))),
        Deed::Directory(path) => drop(fs::create_dir_all(place(root, *path))),
        Deed::Move(path, to) => drop(fs::rename(place(root, *path), place(root, *to))),
        Deed::Remove(path) => {
            drop(fs::remove_file(place(root, *path)));
            drop(fs::remove_dir_all(place(root, *path)));
        }
        Deed::Mode(path, mode) => {
            let mode = [0o700, 0o755, 0o750][usize::from(*mode) % 3];
            if place(root, *path).symlink_metadata().is_ok_and(|it| !it.is_symlink()) {
                drop(fs::set_permissions(place(root, *path), Permissions::from_mode(mode)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn whatever_a_program_does_is_taken_back(first in proptest::collection::vec(deed(), 0..25), then in proptest::collection::vec(deed(), 1..25)) {
        let bench = Bench::new();
        let root = bench.root();
        first.iter().for_each(|deed| act(&root, deed));
        let before = whole(&root);
        let checkpoint = take(&bench, &store(&bench));
        then.iter().for_each(|deed| act(&root, deed));
        let changed = changes(&bench, &checkpoint);
        prop_assert_eq!(&changed.not_covered, &Vec::<String>::new());
        take_back(&bench, &changed);
        prop_assert_eq!(whole(&root), before, "{:?}", changed.changes);
    }
}
