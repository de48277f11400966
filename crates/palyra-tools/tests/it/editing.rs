//! `palyra.fs.edit`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use palyra_common::{Digest, ToStableError as _};
use palyra_tools::Artifacts;
use serde_json::json;

use crate::support::{Bench, snapshot};

#[test]
fn an_exact_text_is_replaced_once() {
    let bench = Bench::new();
    bench.file("src/a.rs", "fn one() {}\nfn two() {}\n");
    fs::set_permissions(bench.root().join("src/a.rs"), Permissions::from_mode(0o750)).unwrap();
    let edited = bench.call("fs.edit", json!({"path": "src/a.rs", "old": "two()", "new": "three()"})).unwrap();
    assert_eq!(edited.content, "edited `src/a.rs` at line 2");
    assert_eq!(bench.text("src/a.rs").unwrap(), "fn one() {}\nfn three() {}\n");
    let change = &edited.changes[0];
    assert_eq!(change.before, Some(Digest::of(b"fn one() {}\nfn two() {}\n")));
    assert_eq!(bench.artifacts.get_range(&change.before.unwrap(), 0, 99).unwrap(), b"fn one() {}\nfn two() {}\n");
    let mode = fs::metadata(bench.root().join("src/a.rs")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
    assert_eq!(snapshot(&bench.root().join("src")).len(), 1, "nothing is left lying about");
}

#[test]
fn what_is_not_there_changes_nothing_and_says_what_is() {
    let bench = Bench::new();
    bench.file("a.rs", "fn main() {\n    let total = add(1, 2);\n}\n");
    let missing = json!({"path": "a.rs", "old": "  let total = add(1,2);", "new": "x"});
    let error = bench.call("fs.edit", missing).unwrap_err().to_stable();
    assert_eq!(error.code, "edit_text_not_found");
    assert_eq!(error.message, "the text to replace is not in `a.rs`; line 2 is the most similar");
    let unlike = bench.call("fs.edit", json!({"path": "a.rs", "old": "zzzz", "new": "x"})).unwrap_err();
    assert_eq!(unlike.to_stable().message, "the text to replace is not in `a.rs`");
    assert_eq!(bench.text("a.rs").unwrap(), "fn main() {\n    let total = add(1, 2);\n}\n");
}

#[test]
fn several_places_are_named_unless_all_are_meant() {
    let bench = Bench::new();
    let text = "a = 1\nb = 1\na = 1\n";
    bench.file("f", text);
    let error = bench.call("fs.edit", json!({"path": "f", "old": "a = 1", "new": "a = 2"})).unwrap_err().to_stable();
    assert_eq!(error.code, "edit_text_ambiguous");
    assert_eq!(error.message, "the text to replace occurs 2 times in `f`, at lines 1, 3");
    assert!(error.recovery_hint.unwrap().contains("`all`"));
    assert_eq!(bench.text("f").unwrap(), text);
    bench.file("overlapping", "xaaax");
    assert_eq!(
        bench.refusal("fs.edit", json!({"path": "overlapping", "old": "aa", "new": "b"})),
        "edit_text_ambiguous"
    );
    let all = bench.call("fs.edit", json!({"path": "f", "old": "a = 1", "new": "a = 2", "all": true})).unwrap();
    assert_eq!(all.content, "edited `f` in 2 places");
    assert_eq!(bench.text("f").unwrap(), "a = 2\nb = 1\na = 2\n");
}

#[test]
fn line_ends_and_the_byte_order_mark_are_kept() {
    let bench = Bench::new();
    bench.file("dos.txt", "\u{feff}one\r\ntwo\r\nthree\r\n");
    bench.call("fs.edit", json!({"path": "dos.txt", "old": "one\ntwo\n", "new": "1\n2\n2b\n"})).unwrap();
    assert_eq!(bench.text("dos.txt").unwrap(), "\u{feff}1\r\n2\r\n2b\r\nthree\r\n");
    bench.file("mixed.txt", "one\r\ntwo\nthree");
    bench.call("fs.edit", json!({"path": "mixed.txt", "old": "two\nthree", "new": "2\n3"})).unwrap();
    assert_eq!(bench.text("mixed.txt").unwrap(), "one\r\n2\n3");
}

#[test]
fn wrong_calls_and_files_are_refused() {
    let bench = Bench::new();
    bench.file("f", "x");
    bench.file("binary", b"a\0b");
    bench.file("latin1", b"caf\xe9");
    for (arguments, code) in [
        (json!({"path": "f", "old": "", "new": "y"}), "invalid_arguments"),
        (json!({"path": "f", "old": "x", "new": "x"}), "invalid_arguments"),
        (json!({"path": "f", "old": "x"}), "invalid_arguments"),
        (json!({"path": "f", "old": "x", "new": "y", "count": 2}), "invalid_arguments"),
        (json!({"path": "gone", "old": "x", "new": "y"}), "path_not_found"),
        (json!({"path": "../f", "old": "x", "new": "y"}), "path_outside_workspace"),
        (json!({"path": ".", "old": "x", "new": "y"}), "path_is_directory"),
        (json!({"path": "binary", "old": "a", "new": "y"}), "binary_file"),
        (json!({"path": "latin1", "old": "caf", "new": "y"}), "not_utf8"),
    ] {
        assert_eq!(bench.refusal("fs.edit", arguments.clone()), code, "{arguments}");
    }
    assert_eq!(bench.text("f").unwrap(), "x");
}

#[test]
fn the_same_effect_happens_once() {
    let bench = Bench::new();
    bench.file("f", "old text");
    let arguments = json!({"path": "f", "old": "old", "new": "new"});
    let first = bench.call_as("e", "fs.edit", arguments.clone()).unwrap();
    bench.file("f", "old text by a person, later");
    assert_eq!(bench.call_as("e", "fs.edit", arguments).unwrap(), first);
    assert_eq!(bench.text("f").unwrap(), "old text by a person, later");
}

/// Errors are trusted; what a file says is as trustworthy as the file.
#[test]
fn errors_repeat_nothing_that_a_file_says() {
    let bench = Bench::new();
    bench.file("f", "let total = 1; // MARKER\nlet total = 1; // MARKER\nlet sum = 2; // MARKER\n");
    let patch = |old: &str, end: &str| json!({ "patch": format!("*** Begin Patch\n*** Update File: f\n@@\n{old}{end}*** End Patch\n") });
    let unified = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n let total = 2;\n-x\n+y\n";
    for (tool, arguments) in [
        ("fs.edit", json!({"path": "f", "old": "let total = 1; // ARKER", "new": "x"})),
        ("fs.edit", json!({"path": "f", "old": "let sum = 2; //\nMARKE", "new": "x"})),
        ("fs.edit", json!({"path": "f", "old": "let total = 1;", "new": "x"})),
        ("fs.apply_patch", patch("-let total = 1;\n+x\n", "")),
        ("fs.apply_patch", patch("-let total = 1;\n+x\n", "*** End of File\n")),
        ("fs.apply_patch", json!({ "patch": unified })),
        ("fs.apply_patch", json!({ "patch": "*** Begin Patch\n*** Update File: f\n@@ let\n-x\n+y\n*** End Patch\n" })),
    ] {
        let error = bench.call(tool, arguments.clone()).unwrap_err().to_stable();
        let told = serde_json::to_string(&error).unwrap();
        assert!(!told.contains("MARKER"), "{arguments}: {told}");
        assert!(error.message.contains('`'), "{arguments}: {told}");
    }
}
