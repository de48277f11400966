//! `palyra.fs.search`, against a naive scan and on its own.

use std::os::unix::fs::symlink;

use palyra_common::ToStableError;
use proptest::prelude::{ProptestConfig, Strategy, any, proptest};
use proptest::{prop_assert_eq, prop_oneof};
use serde_json::json;

use crate::support::Bench;

fn tree(bench: &Bench) {
    bench.file("src/a.rs", "fn main() {\n    needle();\n}\n");
    bench.file("src/b.txt", "Needle\nneedle needle\n");
    bench.file("top.rs", "one\ntwo\nneedle\nfour\nfive\n");
    bench.file("target/skip.rs", "needle\n");
    bench.file(".gitignore", "target\n");
    bench.file(".hidden/x.rs", "needle\n");
    bench.file("bin", b"needle\n\0needle\n");
    bench.file("crlf", "a\r\nneedle\r\n");
}

#[test]
fn matches_are_lines_with_their_place() {
    let bench = Bench::new();
    tree(&bench);
    symlink("/etc", bench.root().join("etc")).unwrap();
    let table = [
        (
            json!({"pattern": "needle"}),
            "crlf:2:needle\nsrc/a.rs:2:    needle();\nsrc/b.txt:2:needle needle\ntop.rs:3:needle\n",
        ),
        (json!({"pattern": "^needle"}), "crlf:2:needle\nsrc/b.txt:2:needle needle\ntop.rs:3:needle\n"),
        (json!({"pattern": "needle()", "literal": true}), "src/a.rs:2:    needle();\n"),
        (
            json!({"pattern": "NEEDLE", "ignore_case": true, "path": "src"}),
            "src/a.rs:2:    needle();\nsrc/b.txt:1:Needle\nsrc/b.txt:2:needle needle\n",
        ),
        (json!({"pattern": "needle", "glob": "*.rs"}), "src/a.rs:2:    needle();\ntop.rs:3:needle\n"),
        (json!({"pattern": "needle", "glob": "src/**/*.rs"}), "src/a.rs:2:    needle();\n"),
        (
            json!({"pattern": "needle", "path": "top.rs", "context": 1}),
            "top.rs-2-two\ntop.rs:3:needle\ntop.rs-4-four\n",
        ),
        (
            json!({"pattern": "needle", "limit": 2}),
            "crlf:2:needle\nsrc/a.rs:2:    needle();\n[2 of 4 matching lines shown; narrow the pattern or raise limit]\n",
        ),
        (json!({"pattern": "needle", "path": ".hidden"}), ".hidden/x.rs:1:needle\n"),
        (
            json!({"pattern": "needle", "path": "target"}),
            "[ignore files exclude `target`; search it with ignored true]\n",
        ),
        (json!({"pattern": "needle", "path": "target", "ignored": true}), "target/skip.rs:1:needle\n"),
        (json!({"pattern": "root:x"}), "[no match in 4 files]\n"),
    ];
    for (arguments, expected) in table {
        assert_eq!(bench.content("fs.search", arguments.clone()), expected, "{arguments}");
    }
    let data = bench.call("fs.search", json!({"pattern": "needle"})).unwrap().data.unwrap();
    assert_eq!((&data["matches"], &data["binary_files"], &data["complete"]), (&json!(4), &json!(1), &json!(true)));
}

#[test]
fn bad_patterns_are_one_line() {
    let bench = Bench::new();
    for arguments in [
        json!({"pattern": "(a"}),
        json!({"pattern": ""}),
        json!({"pattern": "a\nb"}),
        json!({"pattern": "x", "glob": "[a"}),
        json!({"pattern": "(((((a{100}){100}){100}){100}){100})"}),
    ] {
        assert_eq!(bench.refusal("fs.search", arguments.clone()), "invalid_pattern", "{arguments}");
    }
    let error = bench.call("fs.search", json!({"pattern": "(a"})).unwrap_err().to_stable();
    assert!(error.message.contains("unclosed group"), "{}", error.message);
    assert_eq!(bench.refusal("fs.search", json!({"pattern": "a", "path": "no"})), "path_not_found");
}

#[test]
fn long_lines_are_cut_and_many_files_are_no_problem() {
    let bench = Bench::new();
    bench.file("min.js", format!("{}needle{}\n", "x".repeat(10), "y".repeat(100_000)));
    for number in 0..500 {
        bench.file(format!("many/{number:03}.txt"), "needle\n");
    }
    let output = bench.call("fs.search", json!({"pattern": "needle", "limit": 5_000})).unwrap();
    assert_eq!(output.data.unwrap()["shown"], json!(501));
    assert!(output.content.lines().all(|line| line.len() < 600));
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    content: Vec<u8>,
}

fn entry() -> impl Strategy<Value = Entry> {
    let content = prop_oneof![
        9 => "((ab|ba|a|b|é|\\.)*\n?){0,12}".prop_map(String::into_bytes),
        1 => "(ab\n){1,4}".prop_map(|text| [text.as_bytes(), b"\0", text.as_bytes()].concat()),
    ];
    ("[abc](/[abc]){0,2}", any::<bool>(), content).prop_map(|(name, dot, content)| {
        let hidden = if dot && name.len() > 3 { "/." } else { "/" };
        Entry { name: format!("{}.txt", name.replacen('/', hidden, 1)), content }
    })
}

proptest! {
    // Each case makes files; more cases find no more.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_search_equals_a_naive_scan(entries in proptest::collection::vec(entry(), 0..20), pattern in "(a|b|ab|ba|é|\\.)", hidden in any::<bool>()) {
        let bench = Bench::new();
        let mut files = std::collections::BTreeMap::new();
        for entry in entries {
            bench.file(&entry.name, &entry.content);
            files.insert(std::path::PathBuf::from(entry.name), entry.content);
        }
        let mut expected = String::new();
        for (name, content) in &files {
            let seen = hidden || !name.iter().any(|part| part.as_encoded_bytes().starts_with(b"."));
            if !seen || content.contains(&0) {
                continue;
            }
            let text = std::str::from_utf8(content).unwrap();
            for (number, line) in text.split('\n').enumerate().filter(|(_, line)| line.contains(&pattern)) {
                expected.push_str(&format!("{}:{}:{line}\n", name.display(), number + 1));
            }
        }
        let found = bench.call("fs.search", json!({"pattern": pattern, "literal": true, "limit": 5_000, "hidden": hidden})).unwrap();
        let found: String = found.content.lines().filter(|line| !line.starts_with('[')).map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(found, expected);
    }
}
