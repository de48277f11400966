//! People and programs that change a place while something is put there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::*;
use crate::Roots;

const TEMPORARY: &str = ".palyra-test.tmp";

fn bench() -> (TempDir, Workspace) {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("w")).unwrap();
    let anywhere = Roots::Anywhere { except: Vec::new(), granted: Vec::new() };
    let workspace = Workspace::open(dir.path().join("w"), &anywhere, &[]).unwrap();
    (dir, workspace)
}

/// What somebody does to a file.
type Deed = fn(&Path);

/// Longer than the clocks of file systems take to tick.
fn pause() {
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
fn what_somebody_saved_since_is_not_replaced() {
    let deeds: [(&str, Deed); 4] = [
        ("written", |file| fs::write(file, "a person's").unwrap()),
        ("replaced", |file| {
            let beside = file.with_extension("new");
            fs::write(&beside, "a person's").unwrap();
            fs::rename(beside, file).unwrap();
        }),
        ("removed", |file| fs::remove_file(file).unwrap()),
        ("made executable", |file| fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap()),
    ];
    for (what, deed) in deeds {
        let (dir, workspace) = bench();
        let file = dir.path().join("w/file");
        fs::write(&file, "before").unwrap();
        let path = workspace.path("file").unwrap();
        let place = Place::find(&workspace, &path).unwrap().unwrap();
        let found = place.standing().unwrap();
        pause();
        deed(&file);
        let expected = fs::read(&file).ok();
        let error = place.replace(b"ours", None, TEMPORARY, found).unwrap_err();
        assert_eq!(error.code(), "effect_conflict", "{what}");
        assert_eq!(fs::read(&file).ok(), expected, "{what}");
        assert!(!dir.path().join("w").join(TEMPORARY).exists(), "{what}");
    }
}

#[test]
fn a_file_that_somebody_made_since_is_not_replaced() {
    let (dir, workspace) = bench();
    let path = workspace.path("file").unwrap();
    let place = Place::find(&workspace, &path).unwrap().unwrap();
    let found = place.standing().unwrap();
    fs::write(dir.path().join("w/file"), "a person's").unwrap();
    assert_eq!(place.replace(b"ours", None, TEMPORARY, found).unwrap_err().code(), "effect_conflict");
    assert_eq!(fs::read(dir.path().join("w/file")).unwrap(), b"a person's");
    fs::remove_file(dir.path().join("w/file")).unwrap();
    place.replace(b"ours", None, TEMPORARY, found).unwrap();
    assert_eq!(fs::read(dir.path().join("w/file")).unwrap(), b"ours");
}

#[test]
fn the_mode_of_a_directory_is_never_set_through_a_link() {
    let (dir, workspace) = bench();
    let (directory, link, outside) = (dir.path().join("w/d"), dir.path().join("w/l"), dir.path().join("outside"));
    fs::create_dir(&directory).unwrap();
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
    let path = workspace.path("d").unwrap();
    let place = Place::find(&workspace, &path).unwrap().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..20_000 {
            // It fails whenever the link is there.
            let _ = place.set_directory_mode(0o777);
            if mode(&outside) != 0o700 {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(mode(&outside), 0o700);
    assert!([&directory, &link].iter().any(|path| path.symlink_metadata().unwrap().is_dir() && mode(path) == 0o777));
}
