//! Paths as values: what is refused, what is the same, and that every name has a text form.

use proptest::prelude::{any, proptest};
use proptest::{prop_assert, prop_assert_eq};

use super::*;

fn parse(text: &str) -> Result<String, String> {
    WorkspacePath::parse(text, &[Path::new("/home/me/project"), Path::new("/link")])
        .map(|path| path.to_string())
        .map_err(|error| error.code().to_owned())
}

#[test]
fn paths_are_made_normal_or_refused() {
    let outside = Err("path_outside_workspace".to_owned());
    let table = [
        ("a/b", Ok("a/b")),
        ("./a//b/", Ok("a/b")),
        ("a/../b", Ok("b")),
        ("a/..", Ok(".")),
        (".", Ok(".")),
        ("/home/me/project/a", Ok("a")),
        ("/home/me/project", Ok(".")),
        ("/home/me/other/../project/a", Ok("a")),
        ("/link/x", Ok("x")),
        ("a\\xFFb", Ok("a\\xFFb")),
        ("a\\b", Ok("a\\\\b")),
    ];
    for (text, expected) in table {
        assert_eq!(parse(text), expected.map(str::to_owned), "{text}");
    }
    for text in
        ["..", "a/../..", "/", "/home/me/projectile", "/home/me/project/../x", "/proc/self/root/home", "/etc/passwd"]
    {
        assert_eq!(parse(text), outside, "{text}");
    }
    for text in ["", "a\0b", "a\\x00b", &"x/".repeat(3_000)] {
        assert_eq!(parse(text), Err("invalid_path".to_owned()), "{text}");
    }
}

#[test]
fn one_resource_has_one_text() {
    for text in ["a/b", "./a/b", "a//b", "a/c/../b"] {
        assert_eq!(normal_text(text), "a/b");
    }
    assert_eq!(normal_text("../x"), "../x");
}

proptest! {
    #[test]
    fn every_name_has_a_text_that_leads_back(bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
        let name = OsStr::from_bytes(&bytes);
        prop_assert_eq!(unescape(&escape(name)), bytes);
    }

    #[test]
    fn no_text_leaves_the_workspace(text in "[a./\\\\x0]{0,24}") {
        if let Ok(path) = WorkspacePath::parse(&text, &[Path::new("/root")]) {
            prop_assert!(path.as_path().is_relative());
            prop_assert!(!path.as_path().components().any(|part| part == Component::ParentDir));
        }
    }
}
