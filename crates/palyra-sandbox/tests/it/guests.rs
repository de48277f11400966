//! The hostile guests: compiled once, kept by the digest of their sources.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Compiles every guest and returns the directory of the programs; each source is compiled once.
pub(crate) fn compiled() -> PathBuf {
    if let Some(published) = std::env::var_os("PALYRA_SANDBOX_TEST_GUESTS") {
        return PathBuf::from(published);
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sandbox-guests");
    fs::create_dir_all(&directory).unwrap();
    let header = fs::read(sources().join("guest.h")).unwrap();
    let mut names: Vec<_> = fs::read_dir(sources()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for source in names {
        let language = source.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_owned();
        if language != "c" && language != "rs" {
            continue;
        }
        let digest = Digest::of_parts(&[&fs::read(&source).unwrap(), &header]).to_hex();
        let name = source.file_stem().unwrap().to_string_lossy().into_owned();
        let kept = directory.join(format!("{name}-{}", &digest[..16]));
        if !kept.exists() {
            compile(&language, &source, &kept);
        }
        let program = directory.join(&name);
        if fs::read_link(&program).ok().as_ref() != Some(&kept) {
            let _ = fs::remove_file(&program);
            // Another test process may have made it meanwhile.
            let _ = std::os::unix::fs::symlink(&kept, &program);
        }
    }
    directory
}

fn compile(language: &str, source: &Path, target: &Path) {
    let fresh = target.with_extension(format!("new{}", std::process::id()));
    let mut command = if language == "c" {
        let mut command = Command::new("cc");
        command.args(["-O1", "-Wall", "-Werror", "-Wno-unused-result", "-pthread"]);
        command
    } else {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        command.args(["--edition", "2024", "-C", "debuginfo=0", "-C", "opt-level=1"]);
        command
    };
    let output = command.arg("-o").arg(&fresh).arg(source).output().unwrap();
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    fs::rename(&fresh, target).unwrap();
}

/// Copies every program to a directory that any user can read.
pub(crate) fn publish(to: &Path) {
    let from = compiled();
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_symlink() {
            let copy = to.join(entry.file_name());
            fs::copy(entry.path(), &copy).unwrap();
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}
