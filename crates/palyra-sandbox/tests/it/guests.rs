//! The hostile guests: compiled once, kept by the digest of their sources.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use palyra_common::Digest;

/// What the table says of a guest in a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Denied,
    ByDesign,
    ByDesignAsUser,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests")
}

/// The table, by guest: tier B and tier C.
pub(crate) fn table() -> BTreeMap<String, (Expected, Expected)> {
    let parse = |text: &str| match text {
        "denied" => Expected::Denied,
        "by_design" => Expected::ByDesign,
        "by_design_as_user" => Expected::ByDesignAsUser,
        other => panic!("the table knows no `{other}`"),
    };
    let text = fs::read_to_string(sources().join("table.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let parts: Vec<_> = line.split('|').map(str::trim).collect();
            (parts[0].to_owned(), (parse(parts[1]), parse(parts[2])))
        })
        .collect()
}

/// One guest: its source, its language, and the name under which its program is kept, which holds a digest of the source.
struct Guest {
    name: String,
    source: PathBuf,
    language: &'static str,
    kept: String,
}

fn guests() -> Vec<Guest> {
    let header = fs::read(sources().join("guest.h")).unwrap();
    let mut paths: Vec<_> = fs::read_dir(sources()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let guest = |source: PathBuf| {
        let language = match source.extension().and_then(|ending| ending.to_str()) {
            Some("c") => "c",
            Some("rs") => "rs",
            _ => return None,
        };
        let digest = Digest::of_parts(&[&fs::read(&source).unwrap(), &header]).to_hex();
        let name = source.file_stem().unwrap().to_string_lossy().into_owned();
        Some(Guest { kept: format!("{name}-{}", &digest[..16]), name, source, language })
    };
    paths.into_iter().filter_map(guest).collect()
}

/// Compiles every guest and returns the directory of the programs; each source is compiled once.
///
/// Test processes share the directory, and so do test runs of different users. A program therefore appears under its name only when it is whole, one
/// process compiles at a time, and a directory in which nothing is missing is not written to.
pub(crate) fn compiled() -> PathBuf {
    if let Some(published) = std::env::var_os("PALYRA_SANDBOX_TEST_GUESTS") {
        return PathBuf::from(published);
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sandbox-guests");
    compile_missing(&guests(), &directory);
    directory
}

fn compile_missing(guests: &[Guest], directory: &Path) {
    let is_missing = |guest: &&Guest| {
        fs::read_link(directory.join(&guest.name)).ok().as_deref() != Some(Path::new(&guest.kept))
            || !directory.join(&guest.kept).exists()
    };
    if guests.iter().any(|guest| is_missing(&guest)) {
        fs::create_dir_all(directory).unwrap();
        let lock = fs::File::create(directory.join(".lock")).unwrap();
        lock.lock().unwrap();
        for guest in guests.iter().filter(is_missing) {
            compile(guest, directory);
        }
    }
}

/// Compiles one guest. Compilers leave intermediate files beside their output, so each compilation has a directory of its own.
fn compile(guest: &Guest, directory: &Path) {
    let own = tempfile::tempdir_in(directory).unwrap();
    let program = own.path().join("program");
    let mut command = if guest.language == "c" {
        let mut command = Command::new("cc");
        command.args(["-O1", "-Wall", "-Werror", "-Wno-unused-result", "-pthread"]);
        command
    } else {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        command.args(["--edition", "2024", "-C", "debuginfo=0", "-C", "opt-level=1"]);
        command
    };
    let output = command.arg("-o").arg(&program).arg(&guest.source).output().unwrap();
    assert!(output.status.success(), "{}: {}", guest.source.display(), String::from_utf8_lossy(&output.stderr));
    fs::rename(&program, directory.join(&guest.kept)).unwrap();
    let link = own.path().join("link");
    std::os::unix::fs::symlink(&guest.kept, &link).unwrap();
    fs::rename(&link, directory.join(&guest.name)).unwrap();
}

/// Copies every program to a directory that any user can read.
pub(crate) fn publish(to: &Path) {
    let from = compiled();
    fs::create_dir_all(to).unwrap();
    for Guest { name, .. } in guests() {
        let copy = to.join(&name);
        fs::copy(from.join(&name), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn each_guest_is_in_the_table_or_belongs_to_another_test() {
    // Guests that exhaust a limit, that do not go away, and the program that a guest borrows rights from.
    let elsewhere = ["greedy_", "stubborn_", "helper_"];
    let escapes = guests().into_iter().map(|guest| guest.name);
    let escapes: Vec<_> = escapes.filter(|name| !elsewhere.iter().any(|family| name.starts_with(family))).collect();
    assert_eq!(escapes, table().into_keys().collect::<Vec<_>>());
}

#[test]
fn many_tests_compile_the_same_guest_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    let guests: Vec<_> = guests().into_iter().filter(|guest| guest.name == "host_name").collect();
    let [guest] = guests.as_slice() else { panic!("the guest has another name now") };
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                compile_missing(&guests, directory.path());
                let output = Command::new(directory.path().join("host_name")).output().unwrap();
                assert!(output.status.code().is_some(), "{output:?}");
            });
        }
    });
    let mut left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".lock", &guest.name, &guest.kept]);
}
