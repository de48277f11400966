//! Which paths an archive may have.
//!
//! A path is judged as every system would understand it that the archive may ever be unpacked on: a name that is harmless here and a device, a drive or
//! another file's double elsewhere is refused. Nothing is ever "cleaned": a path is taken as it stands or not at all.

use std::collections::BTreeMap;

use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use crate::SkillError;

/// Longest path; every file system takes it.
const MAX_PATH: usize = 200;
/// Longest part of a path.
const MAX_PART: usize = 100;
/// Deepest nesting below `assets/`.
const MAX_DEPTH: usize = 8;

/// The manifest.
pub(crate) const MANIFEST: &str = "skill.toml";
/// The older name of the manifest, which is read too.
pub(crate) const MANIFEST_ALIAS: &str = "manifest.toml";
/// The list of parts.
pub(crate) const SBOM: &str = "sbom.cdx.json";
/// Where the modules came from.
pub(crate) const PROVENANCE: &str = "provenance.json";
/// The signature over everything else.
pub(crate) const SIGNATURE: &str = "signature.json";
/// Where modules are.
pub(crate) const MODULES: &str = "modules/";
/// Where assets are.
pub(crate) const ASSETS: &str = "assets/";

/// Names that are devices on Windows, with any ending.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];

/// Checks one path.
pub(crate) fn check(path: &str) -> Result<(), SkillError> {
    let refuse = |reason| Err(SkillError::path(path, reason));
    if path.is_empty() || path.len() > MAX_PATH {
        return refuse("it is empty or longer than 200 bytes");
    }
    if path.chars().any(|c| c.is_control() || is_invisible(c)) {
        return refuse("it contains a control or invisible character");
    }
    if path.contains('\\') {
        return refuse("it contains a backslash");
    }
    if path.starts_with('/') {
        return refuse("it is absolute");
    }
    if path.contains([':', '*', '?', '"', '<', '>', '|']) {
        return refuse("it contains a character that is reserved on some systems");
    }
    if !is_nfc(path) {
        return refuse("it is not in Unicode normal form C");
    }
    for part in path.split('/') {
        check_part(part).or_else(refuse)?;
    }
    let known = match path {
        MANIFEST | MANIFEST_ALIAS | SBOM | PROVENANCE | SIGNATURE => true,
        _ => is_module(path) || is_asset(path),
    };
    if known { Ok(()) } else { refuse("this path is not allowed in an archive; put extra files into `assets/`") }
}

fn check_part(part: &str) -> Result<(), &'static str> {
    if part.is_empty() {
        return Err("it has an empty component or is a directory");
    }
    if part == "." || part == ".." {
        return Err("it contains `.` or `..`");
    }
    if part.len() > MAX_PART {
        return Err("a component is longer than 100 bytes");
    }
    if part.starts_with(' ') || part.ends_with([' ', '.']) {
        return Err("a component starts with a space, or ends with a space or a dot");
    }
    let stem = part.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let numbered = ["com", "lpt"].iter().any(|device| {
        stem.strip_prefix(device).is_some_and(|number| {
            let mut letters = number.chars();
            matches!((letters.next(), letters.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
        })
    });
    if numbered || DEVICES.contains(&stem.as_str()) {
        return Err("it is a device name on some systems");
    }
    Ok(())
}

/// Characters that are not seen, or that turn what is seen around.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether this is `modules/NAME.wasm`.
pub(crate) fn is_module(path: &str) -> bool {
    path.strip_prefix(MODULES).and_then(|name| name.strip_suffix(".wasm")).is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    })
}

fn is_asset(path: &str) -> bool {
    path.strip_prefix(ASSETS).is_some_and(|rest| !rest.is_empty() && rest.split('/').count() <= MAX_DEPTH)
}

/// Finds two paths that some system would take for one, or one that is a file and a directory at once.
#[derive(Debug, Default)]
pub(crate) struct Taken(BTreeMap<String, Kind>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

impl Taken {
    /// Takes a path, or says what is in its way.
    pub(crate) fn take(&mut self, path: &str) -> Result<(), SkillError> {
        let folded = fold(path);
        for (at, _) in folded.match_indices('/') {
            let directory = folded.get(..at).unwrap_or_default().to_owned();
            if self.0.insert(directory, Kind::Directory) == Some(Kind::File) {
                return Err(SkillError::path(path, "one of its parent directories is a file"));
            }
        }
        match self.0.insert(folded, Kind::File) {
            None => Ok(()),
            Some(Kind::File) => Err(SkillError::path(
                path,
                "another file has the same name, or one that differs only in case or Unicode form",
            )),
            Some(Kind::Directory) => Err(SkillError::path(path, "it is used both as a file and as a directory")),
        }
    }
}

/// What a path looks like to a system that ignores case and spelling.
fn fold(path: &str) -> String {
    path.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_places_are_taken() {
        for good in
            ["skill.toml", "manifest.toml", "modules/a.wasm", "assets/a/b/c.txt", "assets/é.txt", "sbom.cdx.json"]
        {
            check(good).unwrap();
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for bad in [
            "",
            "/skill.toml",
            "../skill.toml",
            "assets/../../x",
            "assets/./x",
            "assets//x",
            "assets/",
            "assets",
            "modules/",
            "modules/.wasm",
            "modules/a/b.wasm",
            "modules/é.wasm",
            "other.txt",
            "assets/a\\b",
            "..\\x",
            "C:/x",
            "assets/C:x",
            "assets/con",
            "assets/CON.txt",
            "assets/nul .txt",
            "assets/com1",
            "assets/LPT9.log",
            "assets/a\0b",
            "assets/a\nb",
            "assets/x.",
            "assets/x ",
            "assets/ x",
            "assets/e\u{301}.txt",
            "assets/\u{202e}txt",
            "assets/a\u{200b}",
            "Skill.toml",
            "assets/a/b/c/d/e/f/g/h/i",
            "assets/a*b",
        ] {
            assert_eq!(check(bad).unwrap_err().code(), "skill_path_refused", "{bad:?}");
        }
        assert!(check(&format!("assets/{}", "a".repeat(101))).is_err());
    }

    #[test]
    fn doubles_are_found_across_case_spelling_and_kind() {
        for (first, second) in [
            ("assets/a", "assets/a"),
            ("assets/a", "assets/A"),
            ("assets/ﬁ", "assets/fi"),
            ("assets/K", "assets/\u{212a}"),
            ("assets/a", "assets/a/b"),
            ("assets/a/b", "assets/A"),
        ] {
            let mut taken = Taken::default();
            taken.take(first).unwrap();
            assert!(taken.take(second).is_err(), "{first} {second}");
        }
        let mut taken = Taken::default();
        for path in ["assets/a/b", "assets/a/c", "assets/b"] {
            taken.take(path).unwrap();
        }
    }
}
