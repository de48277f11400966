//! `palyra.fs.read`, `palyra.artifact.read` and `palyra.time.now`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

use palyra_common::{Confidentiality, Digest, Integrity, ToStableError};
use palyra_tools::Artifacts;
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::{prop_assert, prop_assert_eq};
use serde_json::json;

use crate::support::Bench;

#[test]
fn lines_and_ranges() {
    let bench = Bench::new();
    bench.file("f", "one\ntwo\nthree\n");
    let table = [
        (json!({"path": "f"}), "one\ntwo\nthree\n"),
        (json!({"path": "f", "offset": 2}), "two\nthree\n"),
        (
            json!({"path": "f", "offset": 2, "limit": 1}),
            "two\n[4 of 14 bytes shown; continue with offset 3 or byte_offset 8]",
        ),
        (json!({"path": "f", "offset": 9}), "[the file ends after 3 lines]"),
        (json!({"path": "f", "byte_offset": 8}), "three\n"),
        (json!({"path": "f", "byte_offset": 99}), "[the file ends at byte 14]"),
        (
            json!({"path": "f", "line_numbers": true, "limit": 2}),
            "     1\tone\n     2\ttwo\n[8 of 14 bytes shown; continue with offset 3 or byte_offset 8]",
        ),
    ];
    for (arguments, expected) in table {
        assert_eq!(bench.content("fs.read", arguments.clone()), expected, "{arguments}");
    }
    bench.file("open", "a\nb");
    assert_eq!(bench.content("fs.read", json!({"path": "open"})), "a\nb");
    bench.file("empty", "");
    assert_eq!(bench.content("fs.read", json!({"path": "empty"})), "[the file is empty]");
    let output = bench.call("fs.read", json!({"path": "f", "digest": true})).unwrap();
    assert_eq!(output.data.unwrap()["digest"], json!(Digest::of(b"one\ntwo\nthree\n")));
}

#[test]
fn what_cannot_be_read_has_its_own_code() {
    let bench = Bench::new();
    bench.file("binary", b"\x7fELF\0\0");
    bench.file("late_binary", [vec![b'a'; 20_000], vec![0], vec![b'b'; 10]].concat());
    bench.file("latin1", b"caf\xe9\n");
    fs::create_dir(bench.root().join("dir")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, bench.root().join("fifo"), rustix::fs::FileType::Fifo, 0o644.into(), 0)
        .unwrap();
    let _listener = UnixListener::bind(bench.root().join("socket")).unwrap();
    for (path, code) in [
        ("binary", "binary_file"),
        ("late_binary", "binary_file"),
        ("latin1", "not_utf8"),
        ("dir", "path_is_directory"),
        ("missing", "path_not_found"),
        ("latin1/x", "path_not_directory"),
        ("fifo", "special_file"),
        ("socket", "special_file"),
        (&"x".repeat(300), "invalid_path"),
    ] {
        assert_eq!(bench.refusal("fs.read", json!({"path": path})), code, "{path}");
    }
    for path in ["fifo", "socket", "dir"] {
        bench.refusal("fs.write", json!({"path": path, "content": "x"}));
    }
    // None of these hang on the named pipe, even when it stands where an ignore file is looked for.
    fs::rename(bench.root().join("fifo"), bench.root().join(".gitignore")).unwrap();
    assert!(bench.content("fs.search", json!({"pattern": "caf", "hidden": true})).contains("latin1:1:"));
    assert!(bench.content("fs.list", json!({"hidden": true})).contains(".gitignore  (named pipe)"));
    for arguments in [
        json!({"path": "latin1", "offset": 1, "byte_offset": 1}),
        json!({"path": "latin1", "byte_offset": 1, "line_numbers": true}),
    ] {
        assert_eq!(bench.refusal("fs.read", arguments), "invalid_arguments");
    }
}

#[test]
fn a_misspelt_name_is_suggested() {
    let bench = Bench::new();
    bench.file("src/main.rs", "x");
    let error = bench.call("fs.read", json!({"path": "src/mian.rs"})).unwrap_err().to_stable();
    assert_eq!(error.recovery_hint.unwrap(), "did you mean `src/main.rs`?");
}

#[test]
fn names_that_are_not_utf8_can_be_read_back_as_listed() {
    let bench = Bench::new();
    for name in [&b"caf\xe9.txt"[..], b"new\nline", b"back\\slash", b"tab\t", "\u{1b}[31m".as_bytes()] {
        fs::write(bench.root().join(OsStr::from_bytes(name)), name).unwrap_or_default();
    }
    let listing = bench.content("fs.list", json!({}));
    let names: Vec<_> = listing.lines().map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(names.len(), 5, "{listing}");
    assert!(names.contains(&"caf\\xE9.txt"));
    for name in names {
        let code = bench.call("fs.read", json!({"path": name})).map(|_| "read").unwrap_or_else(|_| "refused");
        // The one whose content is not UTF-8 is found as well, and refused for what it holds.
        assert_eq!(code, if name.contains("xE9") { "refused" } else { "read" }, "{name}");
    }
    assert_eq!(bench.refusal("fs.read", json!({"path": "caf\\xE9.txt"})), "not_utf8");
}

#[test]
fn a_gigabyte_is_read_by_ranges() {
    const SIZE: u64 = 1 << 30;
    let bench = Bench::new();
    let path = bench.root().join("huge");
    let mut file = File::create(&path).unwrap();
    file.set_len(SIZE).unwrap();
    // Sparse, so it holds NUL bytes in the middle; text at the beginning and at the end.
    file.write_all("text line\n".repeat(10_000).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(SIZE - 9)).unwrap();
    file.write_all(b"\nthe end\n").unwrap();
    let output = bench.call("fs.read", json!({"path": "huge"})).unwrap();
    assert!(output.truncated && output.content.len() <= 64 << 10);
    assert_eq!(output.data.unwrap()["next_offset"], json!(2_001));
    let tail = bench.content("fs.read", json!({"path": "huge", "byte_offset": SIZE - 8}));
    assert_eq!(tail, "the end\n");
    assert_eq!(bench.refusal("fs.read", json!({"path": "huge", "byte_offset": SIZE / 2})), "binary_file");
    assert_eq!(bench.refusal("fs.write", json!({"path": "huge", "content": "x"})), "file_too_large");
}

#[test]
fn one_endless_line_is_cut_and_continued() {
    let bench = Bench::new();
    let line = "ä".repeat(100_000);
    bench.file("line", &line);
    let mut read = String::new();
    let mut next = json!(0);
    let mut calls = 0;
    while !next.is_null() {
        let output = bench.call("fs.read", json!({"path": "line", "byte_offset": next})).unwrap();
        assert!(output.content.len() <= 64 << 10);
        read.push_str(output.content.split("\n[").next().unwrap());
        next = output.data.unwrap()["next_byte_offset"].clone();
        calls += 1;
    }
    assert_eq!(read, line);
    assert_eq!(calls, 4);
}

#[test]
fn labels_say_where_content_came_from() {
    let bench = Bench::new();
    bench.file("a/b", "x\n");
    let label = bench.call("fs.read", json!({"path": "./a//b"})).unwrap().label;
    assert_eq!((label.integrity, label.confidentiality), (Integrity::ToolTrusted, Confidentiality::Private));
    assert!(label.sources.contains("file:a/b"));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(bench.root().join("a/b"), Some(12_345), None).unwrap();
        for (tool, arguments) in [("fs.read", json!({"path": "a/b"})), ("fs.search", json!({"pattern": "x"}))] {
            assert_eq!(bench.call(tool, arguments).unwrap().label.integrity, Integrity::Untrusted, "a stranger's file");
        }
    }
}

#[test]
fn artifacts_are_read_by_range() {
    let bench = Bench::new();
    let digest = bench.artifacts.put("zero, größer, end".as_bytes()).unwrap();
    let call = |arguments| bench.content("artifact.read", arguments);
    assert_eq!(call(json!({"digest": digest})), "zero, größer, end");
    assert_eq!(
        call(json!({"digest": digest, "offset": 6, "limit": 3})),
        "grö\n[bytes 6 to 10 of 19 shown; read on with offset 10]"
    );
    assert_eq!(call(json!({"digest": digest, "offset": 99})), "[the artifact ends at byte 19]");
    let output = bench.call("artifact.read", json!({"digest": digest})).unwrap();
    assert_eq!(output.label.integrity, Integrity::Untrusted);
    assert_eq!(bench.refusal("artifact.read", json!({"digest": Digest::of(b"?")})), "artifact_not_found");
    assert_eq!(bench.refusal("artifact.read", json!({"digest": "sha256:12"})), "invalid_arguments");
    let binary = bench.artifacts.put(b"\0\x01").unwrap();
    assert_eq!(bench.refusal("artifact.read", json!({"digest": binary})), "binary_file");
}

#[test]
fn the_time_is_the_injected_one() {
    let bench = Bench::new();
    assert_eq!(bench.content("time.now", json!({})), "2026-11-14T23:46:40.123Z (unix_ms 1794700000123)");
    let shifted = bench.call("time.now", json!({"offset": "+05:30"})).unwrap().data.unwrap();
    assert_eq!(shifted, json!({"rfc3339": "2026-11-15T05:16:40.123+05:30", "unix_ms": 1_794_700_000_123_i64}));
    for offset in ["", "5", "+5:30", "+24:00", "+01:60", "CET", "+1ä:00"] {
        assert_eq!(bench.refusal("time.now", json!({"offset": offset})), "invalid_arguments", "{offset}");
    }
}

proptest! {
    // Each case makes files; more cases find no more.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reading_on_gives_the_whole_file(
        lines in proptest::collection::vec("[a-zäß ]{0,30}", 0..60),
        open in any::<bool>(),
        limit in 1_u64..20,
        cap in 600_usize..2_000,
        by_line in any::<bool>(),
    ) {
        let mut bench = Bench::new();
        bench.limits.inline_bytes = cap;
        let mut text = lines.join("\n");
        if !open && !text.is_empty() {
            text.push('\n');
        }
        bench.file("f", &text);
        let mut read = String::new();
        let (mut start, key) = if by_line { (json!(1), "offset") } else { (json!(0), "byte_offset") };
        while !start.is_null() {
            let output = bench.call("fs.read", json!({"path": "f", "limit": limit, key: start})).unwrap();
            prop_assert!(output.content.len() <= cap);
            let data = output.data.unwrap();
            // The text alone, without the note.
            let text = output.content.rsplit_once('[').map_or(output.content.as_str(), |(text, _)| text);
            read.push_str(text);
            start = data[format!("next_{key}")].clone();
        }
        prop_assert_eq!(read, text);
    }
}
