//! Reading and applying patches: a table of good ones, a table of bad ones, and properties.

use std::fmt::Write as _;

use proptest::prelude::{Strategy, any, proptest};
use proptest::prop_assert_eq;

use super::*;
use crate::cancel::Cancel;
use crate::patch_apply::{CarriageReturns, apply};

/// Applies a patch of one file that exists to its content.
fn patched(original: &str, patch: &str) -> Result<String, String> {
    let files = parse(patch).map_err(|error| error.to_string())?;
    let [FilePatch { action: Action::Update { hunks, .. }, path, .. }] = files.as_slice() else {
        return Err(format!("not one update: {files:?}"));
    };
    let returns = if keeps_carriage_returns(patch) { CarriageReturns::AreContent } else { CarriageReturns::EndLines };
    apply(path, original.as_bytes(), hunks, returns, &Cancel::never())
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .map_err(|error| error.to_string())
}

fn envelope(body: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch\n")
}

fn unified(body: &str) -> String {
    format!("--- a/f\n+++ b/f\n{body}")
}

#[test]
fn patches_that_apply() {
    let table = [
        ("replace", "a\nb\nc\n", envelope("@@\n a\n-b\n+B\n c"), "a\nB\nc\n"),
        ("no @@ at all", "a\nb\nc\n", envelope("-b\n+B"), "a\nB\nc\n"),
        ("lost spaces on empty context", "a\n\nc\n", envelope(" a\n\n-c\n+C"), "a\n\nC\n"),
        ("anchor picks the second", "x\n1\ny\n1\n", envelope("@@ y\n-1\n+2"), "x\n1\ny\n2\n"),
        (
            "nested anchors",
            "class A\n f\n  1\nclass B\n f\n  1\n",
            envelope("@@ class B\n@@ f\n-  1\n+  2"),
            "class A\n f\n  1\nclass B\n f\n  2\n",
        ),
        ("anchor is the first context line", "x\n1\ny\n1\n", envelope("@@ y\n y\n-1\n+2"), "x\n1\ny\n2\n"),
        ("anchor is a part of a line", "fn main() {\n1\n", envelope("@@ main()\n-1\n+2"), "fn main() {\n2\n"),
        ("insert after anchor", "a\nb\n", envelope("@@ a\n+x"), "a\nx\nb\n"),
        ("append", "a\n", envelope("@@\n+x"), "a\nx\n"),
        ("end of file", "1\nx\n1\n", envelope("@@\n-1\n+2\n*** End of File"), "1\nx\n2\n"),
        ("several hunks", "a\nb\nc\nd\n", envelope("@@\n-a\n+A\n@@\n-d\n+D"), "A\nb\nc\nD\n"),
        ("unified numbers in an envelope", "1\nx\n1\n", envelope("@@ -3,1 +3,1 @@\n-1\n+2"), "1\nx\n2\n"),
        ("keeps CRLF", "a\r\nb\r\n", envelope("@@\n-b\n+B"), "a\r\nB\r\n"),
        ("mixed ends stay mixed", "a\r\nb\nc\n", envelope("@@\n-b\n+B"), "a\r\nB\nc\n"),
        ("patch with CRLF, file without", "a\nb\n", envelope("@@\n-b\n+B").replace('\n', "\r\n"), "a\nB\n"),
        ("keeps a missing newline", "a\nb", envelope("@@\n-a\n+A"), "A\nb"),
        ("code fence", "a\n", format!("```diff\n{}```\n", envelope("-a\n+A")), "A\n"),
        ("unified", "a\nb\nc\n", unified("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n"),
        ("wrong numbers", "a\nb\nc\n", unified("@@ -17,3 +17,3 @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n"),
        ("wrong counts", "a\nb\nc\n", unified("@@ -1,9 +1,2 @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n"),
        ("no numbers", "a\nb\nc\n", unified("@@ @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n"),
        ("number decides", "1\n1\n1\n", unified("@@ -2 +2 @@\n-1\n+2\n"), "1\n2\n1\n"),
        ("insert by number", "a\nb\n", unified("@@ -1,0 +2 @@\n+x\n"), "a\nx\nb\n"),
        ("insert at the top", "a\n", unified("@@ -0,0 +1 @@\n+x\n"), "x\na\n"),
        ("line that looks like a header", "-- x\ny\n", unified("@@ -1,2 +1,2 @@\n--- x\n+++ z\n y\n"), "++ z\ny\n"),
        ("newline added", "a", unified("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"), "a\n"),
        ("newline removed", "a\n", unified("@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"), "a"),
        (
            "mail",
            "a\n",
            format!("From: x\n\nSubject: y\n---\n f | 2 +-\n\n{}-- \n2.39.5\n\n", unified("@@ -1 +1 @@\n-a\n+b\n")),
            "b\n",
        ),
        ("carriage return as content", "a\r\nb\r\n", unified("@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n"), "a\nb\r\n"),
    ];
    for (name, original, patch, expected) in table {
        assert_eq!(patched(original, &patch), Ok(expected.to_owned()), "{name}");
    }
}

#[test]
fn patches_that_do_not() {
    let table = [
        (
            "missing line",
            "a\nb\n",
            envelope("@@\n a\n-x\n+y"),
            "hunk 1 of `f` does not apply: line 2 differs, expected `x`",
        ),
        ("nothing alike", "a\n", envelope("@@\n-x\n+y"), "the line `x` is not in the rest of the file"),
        ("ambiguous", "1\n1\n", envelope("@@\n-1\n+2"), "at line 1 and again at line 2"),
        ("out of order", "a\nb\n", envelope("@@\n-b\n+B\n@@\n-a\n+A"), "hunk 2 of `f`"),
        ("unknown anchor", "a\n", envelope("@@ zzz\n-a\n+b"), "the `@@` line `zzz` is not in"),
        ("not the end", "a\nb\n", envelope("@@\n-a\n+b\n*** End of File"), "not the end of the file"),
        ("whitespace differs", "\ta\n", envelope("@@\n-    a\n+b"), "is not in the rest"),
        ("past the end", "a\n", unified("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), "the file ends at line 1, expected `b`"),
        (
            "insert past the end",
            "a\n",
            unified("@@ -9,0 +10 @@\n+x\n"),
            "inserts after line 9, but the file has 1 lines",
        ),
        (
            "newline is there",
            "a\n",
            unified("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"),
            "ends without a newline",
        ),
        ("empty", "", "  \n".to_owned(), "it is empty"),
        ("prose", "", "please change it\n".to_owned(), "no `--- a/file`"),
        ("cut off", "a\n", "*** Begin Patch\n*** Update File: f\n-a\n+b\n".to_owned(), "seems to be cut off"),
        ("no file", "", "*** Begin Patch\n*** End Patch\n".to_owned(), "changes no file"),
        ("no name", "", "*** Begin Patch\n*** Delete File:  \n*** End Patch\n".to_owned(), "has no name"),
        ("no hunk", "", "*** Begin Patch\n*** Update File: f\n*** End Patch\n".to_owned(), "no hunk says how"),
        ("only context", "a\n", envelope("@@\n a"), "changes nothing"),
        (
            "unknown section",
            "",
            "*** Begin Patch\n*** Rename File: f\n*** End Patch\n".to_owned(),
            "expected `*** Add File:`",
        ),
        ("after the end", "a\n", format!("{}more\n", envelope("-a\n+b")), "nothing may follow"),
        ("bad line in hunk", "a\n", envelope("@@\n a\nb\n+c"), "line 5: a line of a hunk must begin"),
        ("stray line after hunk", "a\nb\n", unified("@@ -1,1 +1,1 @@\n-a\n+b\nb\n+c\n"), "`b` belongs to no hunk"),
        ("hunk without file", "", "@@ -1 +1 @@\n-a\n+b\n".to_owned(), "a hunk without"),
        ("binary", "", "diff --git a/f b/f\nGIT binary patch\n".to_owned(), "binary patches"),
    ];
    for (name, original, patch, expected) in table {
        let error = patched(original, &patch).expect_err(name);
        assert!(error.contains(expected), "{name}: {error}");
        assert!(!error.contains('\n'), "{name}: {error}");
    }
}

#[test]
fn git_headers_are_understood() {
    let text = "diff --git a/new.sh b/new.sh\nnew file mode 100755\nindex 000..111\n--- /dev/null\n+++ b/new.sh\n\
        @@ -0,0 +1 @@\n+run\ndiff --git a/empty b/empty\nnew file mode 100644\nindex 000..e69\ndiff --git a/old b/old\n\
        deleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n\
        diff --git a/from b/to\nsimilarity index 90%\nrename from from\nrename to to\n--- a/from\n+++ b/to\n@@ -1 +1 @@\n-a\n+b\n\
        diff --git a/tool b/tool\nold mode 100644\nnew mode 100755\ndiff --git a/x b/y\n\
        --- \"a/\\303\\244\\377\"\t2026-01-01\n+++ \"b/\\303\\244\\377\"\n@@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ a/x\n@@ -1 +1 @@\n-a\n+b\n";
    let files = parse(text).unwrap();
    let shown: Vec<_> = files
        .iter()
        .map(|file| match &file.action {
            Action::Add { content, mode } => format!("add {} {content:?} {mode:?}", file.path),
            Action::Delete { hunks } => format!("delete {} {}", file.path, hunks.len()),
            Action::Update { hunks, move_to, mode } => {
                format!("update {} {} {move_to:?} {mode:?}", file.path, hunks.len())
            }
        })
        .collect();
    assert_eq!(
        shown,
        [
            "add new.sh \"run\\n\" Some(493)",
            "add empty \"\" Some(420)",
            "delete old 1",
            "update from 1 Some(\"to\") None",
            "update tool 0 None Some(493)",
            "update ä\\xFF 1 None None",
            "update a/x 1 None None",
        ]
    );
}

/// Texts of few different lines, so that repeated lines are common, with or without a newline at the end.
fn document() -> impl Strategy<Value = String> {
    (proptest::collection::vec("(|a|b|c| x|-- d|\\+\\+ e|@@ f|\\*\\*\\* g|ü\r?)", 0..40), any::<bool>()).prop_map(
        |(lines, open)| {
            let mut text = lines.join("\n");
            if !open && !text.is_empty() {
                text.push('\n');
            }
            text
        },
    )
}

proptest! {
    #[test]
    fn a_diff_applied_gives_the_target(before in document(), after in document(), context in 0_usize..4) {
        let diff = diffy::DiffOptions::new().set_context_len(context).create_patch(&before, &after).to_string();
        // A file whose lines all end in CRLF keeps them, which a diff without carriage returns cannot say.
        let carriage = before.matches("\r\n").count();
        let keeps = carriage > 0 && carriage == before.matches('\n').count() && !diff.contains('\r');
        if before == after || keeps {
            return Ok(());
        }
        let body = diff.splitn(3, '\n').nth(2).unwrap();
        prop_assert_eq!(patched(&before, &unified(body)).unwrap(), after, "{}", body);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(\\*\\*\\* (Begin|End) Patch\n|\\*\\*\\* (Add|Update|Delete) File: f\n|@@( -1,2 \\+1 @@)?\n|[ +-]a\n|\\\\ No\n|--- a/f\n|\\+\\+\\+ b/f\n|\n|diff --git a/f b/f\n|```\n|.{0,6}\n){0,20}") {
        let mut document = String::new();
        for number in 0..4 {
            writeln!(document, "a{number}").unwrap();
        }
        let _ = patched(&document, &text);
    }
}
