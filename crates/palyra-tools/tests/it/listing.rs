//! `palyra.fs.list`.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::Bench;

#[test]
fn a_tree_with_sizes() {
    let bench = Bench::new();
    bench.file("b.txt", "12345");
    bench.file("a/x.txt", "1");
    bench.file("a/deep/er/y.txt", "1");
    bench.file(".hidden/z", "1");
    bench.file(".git/config", "1");
    symlink("/etc/passwd", bench.root().join("link")).unwrap();
    assert_eq!(
        bench.content("fs.list", json!({})),
        "a/\na/deep/\na/x.txt  1 bytes\nb.txt  5 bytes\nlink -> /etc/passwd\n"
    );
    assert_eq!(bench.content("fs.list", json!({"depth": 1})), "a/\nb.txt  5 bytes\nlink -> /etc/passwd\n");
    assert_eq!(bench.content("fs.list", json!({"path": "a/deep"})), "a/deep/er/\na/deep/er/y.txt  1 bytes\n");
    let all = bench.content("fs.list", json!({"hidden": true, "depth": 9}));
    assert!(all.contains(".hidden/z") && !all.contains(".git"), "{all}");
    assert_eq!(bench.content("fs.list", json!({"path": ".hidden"})), ".hidden/z  1 bytes\n");
    assert_eq!(bench.refusal("fs.list", json!({"path": "b.txt"})), "path_not_directory");
    assert_eq!(bench.refusal("fs.list", json!({"path": "zzz"})), "path_not_found");
    fs::create_dir(bench.root().join("nothing")).unwrap();
    assert_eq!(bench.content("fs.list", json!({"path": "nothing"})), "[`nothing` has nothing to show]\n");
}

#[test]
fn ignore_files_count() {
    let bench = Bench::new();
    bench.file(".gitignore", "target/\n*.log\n!keep.log\n/only_here\n");
    bench.file(".ignore", "private*\n!forced.log\n");
    bench.file("target/out", "1");
    bench.file("a.log", "1");
    bench.file("keep.log", "1");
    bench.file("forced.log", "1");
    bench.file("private.txt", "1");
    bench.file("only_here", "1");
    bench.file("sub/only_here", "1");
    bench.file("sub/.gitignore", "!b.log\nlocal\n");
    bench.file("sub/b.log", "1");
    bench.file("sub/c.log", "1");
    bench.file("sub/local", "1");
    // A repository of its own does not inherit `*.log`.
    bench.file("nested/.git/HEAD", "1");
    bench.file("nested/.git/info/exclude", "secret\n");
    bench.file("nested/d.log", "1");
    bench.file("nested/secret", "1");
    let names = |arguments| -> Vec<String> {
        let listing = bench.content("fs.list", arguments);
        listing
            .lines()
            .filter(|line| !line.ends_with('/'))
            .map(|line| line.split("  ").next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(json!({})), ["forced.log", "keep.log", "nested/d.log", "sub/b.log", "sub/only_here"]);
    assert_eq!(names(json!({"path": "sub"})), ["sub/b.log", "sub/only_here"], "rules from above hold below");
    assert_eq!(names(json!({"ignored": true})).len(), 12);
    let excluded = bench.content("fs.list", json!({"path": "target"}));
    assert_eq!(excluded, "[ignore files exclude `target`; list it with ignored true]\n");
    assert_eq!(names(json!({"path": "target", "ignored": true})), ["target/out"]);
}

#[test]
fn what_is_not_shown_is_counted() {
    let bench = Bench::new();
    for number in 0..40 {
        bench.file(format!("f{number:02}"), "");
    }
    let output = bench.call("fs.list", json!({"limit": 10})).unwrap();
    assert!(output.truncated);
    assert!(output.content.contains("f09") && !output.content.contains("f10"));
    assert!(output.content.ends_with("[30 more entries not shown; list a subdirectory or raise limit]\n"));
}

#[test]
fn a_long_listing_goes_to_an_artifact() {
    let mut bench = Bench::new();
    bench.limits.inline_bytes = 2_000;
    for number in 0..300 {
        bench.file(format!("file-with-a-rather-long-name-{number:03}"), "");
    }
    let output = bench.call("fs.list", json!({})).unwrap();
    assert!(output.truncated && output.content.len() <= 2_000);
    let artifact = output.artifact.unwrap();
    let shown = output.content.split('[').next().unwrap();
    let mut whole = shown.to_owned();
    let mut next = json!(shown.len());
    while !next.is_null() {
        let part = bench.call("artifact.read", json!({"digest": artifact.digest, "offset": next})).unwrap();
        whole.push_str(part.content.split("\n[").next().unwrap());
        next = part.data.unwrap()["next_offset"].clone();
        if !next.is_null() && !whole.ends_with('\n') && part.content.contains("\n\n[") {
            whole.push('\n');
        }
    }
    assert_eq!(whole.lines().filter(|line| line.starts_with("file-with")).count(), 300);
    assert_eq!(artifact.bytes as usize, bench_len(&whole));
}

/// Length of the listing put together again; every line of it ends in a newline.
fn bench_len(whole: &str) -> usize {
    whole.lines().map(|line| line.len() + 1).sum()
}
