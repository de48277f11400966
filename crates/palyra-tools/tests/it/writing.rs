//! `palyra.fs.write`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use palyra_common::Digest;
use palyra_tools::Artifacts;
use serde_json::json;

use crate::support::{Bench, snapshot};

#[test]
fn creates_replaces_and_keeps_what_was() {
    let bench = Bench::new();
    let made = bench.call("fs.write", json!({"path": "a/b/c.txt", "content": "one"})).unwrap();
    assert_eq!(made.content, format!("created `a/b/c.txt` (3 bytes, {})", Digest::of(b"one")));
    assert_eq!(made.changes[0].before, None);
    assert_eq!(made.changes[0].directories, ["a", "a/b"]);
    fs::set_permissions(bench.root().join("a/b/c.txt"), Permissions::from_mode(0o750)).unwrap();
    let replaced = bench.call("fs.write", json!({"path": "a/b/c.txt", "content": "two"})).unwrap();
    let change = &replaced.changes[0];
    assert_eq!((change.before, change.after), (Some(Digest::of(b"one")), Some(Digest::of(b"two"))));
    assert_eq!(bench.artifacts.get_range(&change.before.unwrap(), 0, 9).unwrap(), b"one");
    let mode = fs::metadata(bench.root().join("a/b/c.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
    let same = bench.call("fs.write", json!({"path": "a/b/c.txt", "content": "two"})).unwrap();
    assert!(same.changes.is_empty() && same.content.starts_with("unchanged"));
    assert_eq!(snapshot(&bench.root()).len(), 3, "nothing is left lying about");
}

#[test]
fn preconditions_hold_or_nothing_happens() {
    let bench = Bench::new();
    bench.file("f", "now");
    let write = |more: serde_json::Value| {
        let mut arguments = json!({"path": "f", "content": "new"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    assert_eq!(bench.refusal("fs.write", write(json!({"expected_digest": Digest::of(b"then")}))), "digest_mismatch");
    assert_eq!(bench.refusal("fs.write", write(json!({"if_exists": "refuse"}))), "path_exists");
    assert_eq!(bench.refusal("fs.write", write(json!({"if_exists": "maybe"}))), "invalid_arguments");
    assert_eq!(bench.text("f").unwrap(), "now");
    bench.call("fs.write", write(json!({"expected_digest": Digest::of(b"now")}))).unwrap();
    assert_eq!(bench.text("f").unwrap(), "new");
    let absent = json!({"path": "g", "content": "x", "expected_digest": Digest::of(b"x")});
    assert_eq!(bench.refusal("fs.write", absent), "digest_mismatch");
}

#[test]
fn places_that_cannot_be_written_are_refused() {
    let mut bench = Bench::new();
    bench.limits.file_bytes = 10;
    bench.file("file", "x");
    for (path, code) in
        [("file/below", "path_not_directory"), (".", "path_is_directory"), ("a/..", "path_is_directory")]
    {
        assert_eq!(bench.refusal("fs.write", json!({"path": path, "content": "x"})), code, "{path}");
    }
    assert_eq!(bench.refusal("fs.write", json!({"path": "new", "content": "12345678901"})), "file_too_large");
    assert_eq!(snapshot(&bench.root()).len(), 1);
}

#[test]
fn the_same_effect_happens_once() {
    let bench = Bench::new();
    let arguments = json!({"path": "f", "content": "by the run"});
    let first = bench.call_as("e", "fs.write", arguments.clone()).unwrap();
    bench.file("f", "by a person, later");
    assert_eq!(bench.call_as("e", "fs.write", arguments).unwrap(), first);
    assert_eq!(bench.text("f").unwrap(), "by a person, later");
    let other = bench.call_as("e", "fs.write", json!({"path": "f", "content": "else"})).unwrap_err();
    assert_eq!(other.code(), "effect_mismatch");
}
