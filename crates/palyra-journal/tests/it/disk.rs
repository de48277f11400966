//! A full disk, for real: a file system of a few megabytes in a mount namespace of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use palyra_common::Timestamp;
use palyra_journal::{Journal, NewRecord};

use crate::crash::child;
use crate::support::{check, code, note, options};

const MOUNT: &str = "PALYRA_JOURNAL_TEST_MOUNT";
const MIB: usize = 1024 * 1024;

fn large(n: usize) -> NewRecord {
    NewRecord::new("large", Timestamp(n as i64), format!("\"{}\"", "x".repeat(20_000)).into_bytes())
}

#[test]
#[ignore = "the process that `a_full_disk_refuses_and_loses_nothing` starts inside a small file system"]
fn filling_a_small_disk() {
    let mount = std::env::var_os(MOUNT).expect("started by another test");
    let mount = Path::new(&mount);
    let root = mount.join("state");
    let ballast = mount.join("ballast");
    let mut options = options(&root);
    options.min_free_bytes = MIB as u64;
    let journal = Journal::open(options).unwrap();
    journal.append_blocking(vec![note(0)]).unwrap();
    journal.admission().unwrap();
    fs::write(&ballast, vec![0_u8; 8 * MIB]).unwrap();

    // New work is refused while there is still room to record how running work ended.
    let mut accepted = 1;
    while journal.admission().is_ok() {
        journal.append_blocking(vec![large(accepted)]).unwrap();
        accepted += 1;
        assert!(accepted < 10_000, "the file system is not small");
    }
    assert_eq!(code(&journal.admission().unwrap_err()), "disk_full");
    journal.append_blocking(vec![note(1)]).unwrap();
    accepted += 1;

    // Then the disk is really full: a batch is refused whole.
    let refused = loop {
        match journal.append_blocking(vec![large(0), large(1)]) {
            Ok(_) => accepted += 2,
            Err(error) => break error,
        }
        assert!(accepted < 10_000, "the file system is not small");
    };
    assert_eq!(code(&refused), "disk_full", "{refused}");
    assert_eq!(journal.head().count, accepted as u64);
    let large_payload = vec![b' '; 3 * MIB].into_iter().chain(*b"0").collect();
    let artifact = journal.append_blocking(vec![NewRecord::new("artifact", Timestamp(0), large_payload)]);
    assert_eq!(code(&artifact.unwrap_err()), "disk_full");
    let readable = journal.read_blocking(|r| Ok(r.range(1, usize::MAX)?.len())).unwrap();
    assert_eq!(readable, accepted, "everything accepted can be read while the disk is full");

    // Space comes back, and so does the journal, without a restart.
    fs::remove_file(&ballast).unwrap();
    for n in 0..20 {
        journal.append_blocking(vec![large(n)]).unwrap();
        accepted += 1;
    }
    journal.close_blocking().unwrap();
    let report = check(&root);
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.records, accepted as u64);
    println!("done after {accepted} records");
}

#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let inner = child("disk::filling_a_small_disk");
    let mut command = Command::new("unshare");
    command.arg("--mount").args(["--user", "--map-root-user"]).arg("sh").arg("-c");
    command.arg("mount -t tmpfs -o size=32m palyra-test \"$0\" || exit 77; exec \"$@\"").arg(dir.path());
    command.arg(inner.get_program()).args(inner.get_args()).env(MOUNT, dir.path());
    let output = command.output().expect("`unshare` of util-linux is needed for this test");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(77), "mounting needs user namespaces or root: {text}");
    assert!(output.status.success() && text.contains("done after"), "{text}");
}
