//! `palyra.fs.apply_patch` on real files; reading and applying in memory is tested beside the parser.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use palyra_common::ToStableError;
use palyra_tools::Tool;
use serde_json::{Value, json};

use crate::support::{Bench, snapshot};

fn envelope(body: &str) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{body}\n*** End Patch\n") })
}

#[test]
fn adds_changes_moves_and_deletes_in_one_go() {
    let bench = Bench::new();
    bench.file("change", "a\nb\nc\n");
    bench.file("move", "x\ny\n");
    bench.file("delete", "gone\n");
    fs::set_permissions(bench.root().join("move"), Permissions::from_mode(0o755)).unwrap();
    let output = bench
        .call(
            "fs.apply_patch",
            envelope(
                "*** Update File: change\n@@\n a\n-b\n+B\n*** Update File: move\n*** Move to: there/moved\n@@\n-x\n+X\n\
                 *** Delete File: delete\n*** Add File: there/new\n+one\n+two",
            ),
        )
        .unwrap();
    assert_eq!(
        output.content,
        "changed `change`\ndeleted `delete`\ndeleted `move`\nadded `there/moved`\nadded `there/new`"
    );
    assert_eq!(bench.text("change").unwrap(), "a\nB\nc\n");
    assert_eq!(bench.text("there/moved").unwrap(), "X\ny\n");
    assert_eq!(bench.text("there/new").unwrap(), "one\ntwo\n");
    assert!(bench.text("move").is_none() && bench.text("delete").is_none());
    assert_eq!(fs::metadata(bench.root().join("there/moved")).unwrap().permissions().mode() & 0o777, 0o755);
    for change in &output.changes {
        assert_eq!(change.before.is_some(), ["change", "delete", "move"].contains(&change.path.as_str()));
    }
}

#[test]
fn a_git_diff_applies() {
    let bench = Bench::new();
    bench.file("a.txt", "one\ntwo\nthree\n");
    bench.file("old", "x");
    let patch = "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n\
        diff --git a/run.sh b/run.sh\nnew file mode 100755\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1,1 @@\n+#!/bin/sh\n\
        diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n";
    bench.call("fs.apply_patch", json!({ "patch": patch })).unwrap();
    assert_eq!(bench.text("a.txt").unwrap(), "one\n2\nthree\n");
    assert_eq!(fs::metadata(bench.root().join("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(bench.text("old").is_none());
}

#[test]
fn one_file_may_be_named_twice() {
    let bench = Bench::new();
    bench.file("f", "a\nb\n");
    bench
        .call("fs.apply_patch", envelope("*** Update File: f\n-a\n+A\n*** Update File: ./x/../f\n A\n-b\n+B"))
        .unwrap();
    assert_eq!(bench.text("f").unwrap(), "A\nB\n");
}

#[test]
fn nothing_is_half_done() {
    let mut bench = Bench::new();
    bench.limits.patch_files = 3;
    bench.limits.patch_bytes = 5_000;
    bench.file("good", "a\n");
    bench.file("exists", "x\n");
    bench.file("binary", b"a\n\0");
    bench.file("dir/file", "x\n");
    let before = snapshot(&bench.root());
    let good = "*** Update File: good\n-a\n+b\n";
    let table = [
        ("*** Update File: exists\n-y\n+z", "patch_does_not_apply"),
        ("*** Update File: missing\n-y\n+z", "path_not_found"),
        ("*** Add File: exists\n+z", "path_exists"),
        ("*** Delete File: missing", "path_not_found"),
        ("*** Delete File: dir", "path_is_directory"),
        ("*** Update File: good\n*** Move to: exists", "path_exists"),
        ("*** Update File: binary\n-a\n+b", "binary_file"),
        ("*** Add File: exists/below\n+z", "path_not_directory"),
        ("*** Add File: n\n+z\n*** Add File: n/m\n+z", "path_not_directory"),
        ("*** Add File: ../n\n+z", "path_outside_workspace"),
        ("*** Add File: 1\n*** Add File: 2\n*** Add File: 3", "patch_too_large"),
        ("garbage", "patch_malformed"),
    ];
    for (body, code) in table {
        assert_eq!(bench.refusal("fs.apply_patch", envelope(&format!("{good}{body}"))), code, "{body}");
        assert_eq!(snapshot(&bench.root()), before, "{body}");
    }
    let large = envelope(&format!("*** Add File: l\n+{}", "x".repeat(5_000)));
    assert_eq!(bench.refusal("fs.apply_patch", large), "patch_too_large");
    assert_eq!(snapshot(&bench.dir.path().join("state")).len(), 1, "no plan is left");
}

#[test]
fn the_error_tells_what_is_there() {
    let bench = Bench::new();
    bench.file("src/lib.rs", "fn a() {\n    1\n}\n");
    let patch = envelope("*** Update File: src/lib.rs\n@@\n fn a() {\n-    2\n+    3\n }");
    let error = bench.call("fs.apply_patch", patch).unwrap_err().to_stable();
    assert_eq!(error.message, "hunk 1 of `src/lib.rs` does not apply: line 2 differs, expected `    2`");
    assert_eq!(error.recovery_hint.unwrap(), "read the file again and copy its lines exactly");
}

#[test]
fn the_same_effect_is_not_applied_twice() {
    let bench = Bench::new();
    bench.file("f", "x\n");
    let patch = envelope("*** Update File: f\n x\n+more");
    let first = bench.call_as("e", "fs.apply_patch", patch.clone()).unwrap();
    assert_eq!(bench.call_as("e", "fs.apply_patch", patch).unwrap(), first);
    assert_eq!(bench.text("f").unwrap(), "x\nmore\n");
}

#[test]
fn resources_and_summaries_name_the_files() {
    let bench = Bench::new();
    let tool = bench.registry.get("palyra.fs.apply_patch").unwrap();
    let patch = envelope("*** Update File: ./b\n*** Move to: c\n*** Delete File: a//x");
    let resource =
        |tool: &dyn Tool, arguments: &Value| tool.resource(arguments, &bench.workspace).map(|found| found.to_string());
    assert_eq!(resource(tool.as_ref(), &patch).unwrap(), "files:a/x,b,c");
    assert_eq!(tool.summarise(&patch), "patch `a/x`, `b`, `c`");
    assert!(resource(tool.as_ref(), &json!({"patch": "garbage"})).is_err(), "nobody can tell what it touches");
    let write = bench.registry.get("palyra.fs.write").unwrap();
    assert_eq!(resource(write.as_ref(), &json!({"path": "./a/../b"})).unwrap(), "file:b");
}
