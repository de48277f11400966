//! Owner, group, access control list and extended attributes of files that are replaced.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use palyra_tools::{EffectId, FileChange, UndoRequest, undo};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde_json::json;

use crate::support::Bench;

const ACCESS_LIST: &str = "system.posix_acl_access";
const DEFAULT_LIST: &str = "system.posix_acl_default";
const OWNER: (u32, u32) = (1234, 5678);

/// An access control list as the kernel stores it: owner `rw-`, user 77 `r--`, group `r--`, mask `r--`, others nothing.
fn access_list() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, NOBODY), (2, 4, 77), (4, 4, NOBODY), (0x10, 4, NOBODY), (0x20, 0, NOBODY)];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes().into_iter().chain(permissions.to_le_bytes()).chain(id.to_le_bytes()));
    }
    bytes
}

fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    match rustix::fs::fsetxattr(File::open(path).unwrap(), name, value, XattrFlags::empty()) {
        Err(Errno::NOTSUP) => false,
        result => {
            result.unwrap();
            true
        }
    }
}

fn get(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    let length = rustix::fs::fgetxattr(File::open(path).unwrap(), name, value.as_mut_slice()).ok()?;
    value.truncate(length);
    Some(value)
}

fn owner(path: &Path) -> (u32, u32) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.uid(), metadata.gid())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn take_back(bench: &Bench, changes: &[FileChange]) {
    let request = UndoRequest::all_or_nothing(changes);
    undo(&request, &bench.workspace, bench.artifacts.as_ref(), &bench.effects, &EffectId::new("undo")).unwrap();
}

#[test]
fn a_file_that_is_replaced_keeps_what_it_has() {
    let bench = Bench::new();
    bench.file("file", "one\n");
    let path = bench.root().join("file");
    let with_attributes = set(&path, "user.palyra", b"1");
    let with_lists = set(&path, ACCESS_LIST, &access_list());
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    if is_root() {
        chown(&path, Some(OWNER.0), Some(OWNER.1)).unwrap();
    }
    let expected = (owner(&path), fs::metadata(&path).unwrap().mode());
    let holds = |when: &str| {
        assert_eq!((owner(&path), fs::metadata(&path).unwrap().mode()), expected, "{when}");
        assert_eq!(get(&path, "user.palyra").is_some(), with_attributes, "{when}");
        assert_eq!(get(&path, ACCESS_LIST), with_lists.then(access_list), "{when}");
    };
    let mut changes = bench.call("fs.edit", json!({"path": "file", "old": "one", "new": "two"})).unwrap().changes;
    holds("edited");
    changes.extend(bench.call("fs.write", json!({"path": "file", "content": "three\n"})).unwrap().changes);
    holds("written");
    let patch = "*** Begin Patch\n*** Update File: file\n-three\n+four\n*** End Patch";
    changes.extend(bench.call("fs.apply_patch", json!({ "patch": patch })).unwrap().changes);
    holds("patched");
    take_back(&bench, &changes);
    assert_eq!(bench.text("file").unwrap(), "one\n");
    holds("taken back");
}

#[test]
fn a_file_without_an_access_control_list_gets_none_from_its_directory() {
    let bench = Bench::new();
    bench.file("file", "one\n");
    let path = bench.root().join("file");
    if !set(&bench.root(), DEFAULT_LIST, &access_list()) {
        println!("this file system has no access control lists");
        return;
    }
    bench.call("fs.write", json!({"path": "file", "content": "two\n"})).unwrap();
    assert_eq!(get(&path, ACCESS_LIST), None);
    bench.call("fs.write", json!({"path": "new", "content": "two\n"})).unwrap();
    assert!(get(&bench.root().join("new"), ACCESS_LIST).is_some(), "a new file does");
}

#[test]
fn what_makes_a_program_privileged_does_not_survive_another_content() {
    const CAPABILITY: &str = "security.capability";
    // Version 2, `CAP_NET_BIND_SERVICE` permitted and effective.
    let capability = [0x0200_0001_u32, 1 << 10, 0, 0, 0].map(u32::to_le_bytes).concat();
    let bench = Bench::new();
    bench.file("file", "one\n");
    let path = bench.root().join("file");
    if !is_root() || !set(&path, CAPABILITY, &capability) {
        println!("capabilities cannot be given here");
        return;
    }
    fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
    bench.call("fs.write", json!({"path": "file", "content": "two\n"})).unwrap();
    assert_eq!((get(&path, CAPABILITY), fs::metadata(&path).unwrap().mode() & 0o7777), (None, 0o755));
}

#[test]
fn what_root_makes_belongs_to_the_owner_of_the_directory() {
    if !is_root() {
        println!("only root can give files away");
        return;
    }
    let bench = Bench::new();
    bench.file("gone", "x\n");
    chown(bench.root(), Some(OWNER.0), Some(OWNER.1)).unwrap();
    chown(bench.root().join("gone"), Some(OWNER.0), Some(OWNER.1)).unwrap();
    let mut changes = bench.call("fs.write", json!({"path": "a/b/new", "content": "x\n"})).unwrap().changes;
    for made in ["a", "a/b", "a/b/new"] {
        assert_eq!(owner(&bench.root().join(made)), OWNER, "{made}");
    }
    let patch = "*** Begin Patch\n*** Delete File: gone\n*** End Patch";
    changes.extend(bench.call("fs.apply_patch", json!({ "patch": patch })).unwrap().changes);
    take_back(&bench, &changes);
    assert_eq!(owner(&bench.root().join("gone")), OWNER, "restored");
}
