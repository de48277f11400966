//! User-visible texts contain none of the phrases on a list of banned ones.
//!
//! Scans string literals in product sources, reasons in the shipped policies, error pages and the generated reference, which contains all help
//! texts and descriptions of settings. The list names clear offenders only; style is left to reviews.

use std::fs;
use std::path::{Path, PathBuf};

/// A turn, what to write instead, and words that make it harmless when they follow it.
struct Turn {
    text: &'static str,
    instead: &'static str,
    unless_followed_by: &'static [&'static str],
    unless_preceded_by: &'static [&'static str],
}

const fn turn(text: &'static str, instead: &'static str) -> Turn {
    Turn { text, instead, unless_followed_by: &[], unless_preceded_by: &[] }
}

const TURNS: &[Turn] = &[
    Turn {
        text: "is no",
        instead: "is not a …",
        unless_followed_by: &["longer", "more", "such", "other", "different", "better", "worse"],
        unless_preceded_by: &["there"],
    },
    Turn {
        text: "are no",
        instead: "are not …",
        unless_followed_by: &["longer", "more"],
        unless_preceded_by: &["there"],
    },
    Turn {
        text: "does not fit",
        instead: "is invalid, does not match",
        unless_followed_by: &["in", "into", "the", "its", "a"],
        unless_preceded_by: &[],
    },
    turn("agree to", "allow, accept"),
    turn("agreed to", "allowed, accepted"),
    turn("agrees to", "allows, accepts"),
    turn("anew", "again"),
    turn("at work", "running, active"),
    turn("begun", "started, created"),
    turn("entity not found", "no such file"),
    turn("goes on", "continues"),
    turn("goes round in circles", "repeats"),
    turn("handed over", "uploaded, passed"),
    turn("handing over", "uploading"),
    turn("has run out", "has expired"),
    turn("if it stays", "if the error persists"),
    turn("in good order", "cleanly"),
    turn("is none of", "is not one of"),
    turn("it holds no", "it contains no"),
    turn("made up by the model", "chosen by the model"),
    turn("makes no sense", "is invalid"),
    turn("mend", "fix"),
    turn("mended", "fixed"),
    turn("nobody knows", "is not known"),
    turn("of its own accord", "automatically"),
    turn("outside server", "MCP server"),
    turn("outside servers", "MCP servers"),
    turn("put right", "fixed"),
    turn("set out to", "declared"),
    turn("small letters", "lower-case letters"),
    turn("somebody", "someone, or the passive voice"),
    turn("stands in", "is in"),
    turn("stands twice", "is used twice"),
    turn("take back", "undo, revoke"),
    turn("taken back", "undone, revoked"),
    turn("takes back", "undoes, revokes"),
    turn("there is nothing to", "nothing to"),
    turn("under way", "in progress"),
    turn("what is told", "name it"),
    turn("whoever", "anyone who"),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// The words of a text in lower case, with the byte at which each begins. Quoted code is the user's or ours, not prose.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    let mut quoted = false;
    for (at, letter) in text.char_indices() {
        quoted ^= letter == '`';
        if (letter.is_alphanumeric() || letter == '_') && !quoted {
            if !inside {
                words.push((at, String::new()));
            }
            if let Some((_, word)) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
            inside = true;
        } else {
            // An apostrophe and a hyphen do not end a word.
            inside &= matches!(letter, '\'' | '-') && !quoted;
        }
    }
    words
}

/// The turns in a text, each with the byte at which it begins.
fn offenders(text: &str) -> Vec<(usize, &'static Turn)> {
    let words = words(text);
    let mut found = Vec::new();
    for turn in TURNS {
        let wanted: Vec<&str> = turn.text.split(' ').collect();
        for (index, window) in words.windows(wanted.len()).enumerate() {
            let here = window.iter().map(|(_, word)| word.as_str()).eq(wanted.iter().copied());
            let next = words
                .get(index + wanted.len())
                .is_some_and(|(_, word)| turn.unless_followed_by.contains(&word.as_str()));
            let before = index.checked_sub(1).and_then(|index| words.get(index));
            let previous = before.is_some_and(|(_, word)| turn.unless_preceded_by.contains(&word.as_str()));
            if here && !next && !previous {
                found.push((window[0].0, turn));
            }
        }
    }
    found
}

/// The string literals of Rust source, each with the byte at which it begins. Reasons of lint attributes are for programmers.
fn literals(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = source[at..].chars().next() {
        let rest = &source[at..];
        let word_before =
            source[..at].chars().next_back().is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if !word_before && let Some(hashes) = raw_string(rest) {
            let opening = rest.find('"').unwrap() + 1;
            let length = rest[opening..].find(&format!("\"{hashes}")).unwrap();
            found.push((at + opening, &rest[opening..opening + length]));
            at += opening + length + 1 + hashes.len();
        } else if letter == '"' {
            let length = end_of_literal(&rest[1..]);
            if !source[..at].trim_end().ends_with("reason =") {
                found.push((at + 1, &rest[1..1 + length]));
            }
            at += length + 2;
        } else if letter == '\'' {
            at += character_literal(rest).unwrap_or(1);
        } else {
            at += letter.len_utf8();
        }
    }
    found
}

/// The number signs of a raw string that begins here.
fn raw_string(text: &str) -> Option<&str> {
    let text = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = text.find(|letter| letter != '#')?;
    text[hashes..].starts_with('"').then(|| &text[..hashes])
}

fn end_of_literal(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => return at,
            _ => escaped = letter == '\\' && !escaped,
        }
    }
    text.len()
}

/// The length of a character literal, or nothing if this is a lifetime.
fn character_literal(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    let (_, first) = letters.next()?;
    if first == '\\' {
        letters.next();
        return letters.find(|(_, letter)| *letter == '\'').map(|(end, _)| end + 1);
    }
    letters.next().filter(|(_, letter)| *letter == '\'').map(|(end, _)| end + 1)
}

/// The text before the file's own test module.
fn product_part(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

fn files(directory: &Path, wanted: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, wanted, found);
        } else if wanted(&path) {
            found.push(path);
        }
    }
}

fn is_product_source(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let name = path.file_name().unwrap().to_string_lossy();
    text.contains("/src/")
        && !text.contains("/tests/")
        && !text.contains("palyra-testkit")
        && !text.contains("palyra-figures")
        && !text.contains("palyra-attack-search")
        && name.ends_with(".rs")
        && !name.ends_with("_tests.rs")
        && !name.ends_with("_properties.rs")
        && name != "tests.rs"
}

/// `file:line: …` for every turn in what people read in a file.
fn complaints(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let shown = path.strip_prefix(workspace()).unwrap().display().to_string();
    let parts = match path.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => literals(product_part(&text)),
        Some("cedar") => literals(&text),
        _ => text
            .split_inclusive('\n')
            .scan(0, |at, line| {
                let begins = *at;
                *at += line.len();
                Some((begins, line))
            })
            .collect(),
    };
    let mut found = Vec::new();
    for (begins, part) in parts {
        for (offset, turn) in offenders(part) {
            let line = text[..begins + offset].matches('\n').count() + 1;
            found.push(format!("{shown}:{line}: \"{}\"; write: {}", turn.text, turn.instead));
        }
    }
    found
}

#[test]
fn texts_for_people_have_none_of_the_banned_turns() {
    let root = workspace();
    let mut looked_at = Vec::new();
    files(&root.join("crates"), &is_product_source, &mut looked_at);
    for folder in ["docs/errors", "docs/reference"] {
        files(&root.join(folder), &|path| path.extension().is_some_and(|end| end == "md"), &mut looked_at);
    }
    files(&root.join("policies"), &|path| path.extension().is_some_and(|end| end == "cedar"), &mut looked_at);
    assert!(looked_at.len() > 500, "only {} files: nothing was checked", looked_at.len());
    looked_at.sort();
    let found: Vec<String> = looked_at.iter().flat_map(|path| complaints(path)).collect();
    assert!(found.is_empty(), "{} turns to edit:\n  {}", found.len(), found.join("\n  "));
}

#[test]
fn turns_are_found_in_prose_only() {
    let found = |text: &str| offenders(text).iter().map(|(_, turn)| turn.text).collect::<Vec<_>>();
    assert_eq!(found("the input is no JSON: {error}"), ["is no"]);
    assert_eq!(found("Mend the line; it Stands Twice"), ["mend", "stands twice"]);
    assert_eq!(found("there is no run `{id}`; the token is no longer valid"), [] as [&str; 0]);
    assert_eq!(found("recommend; amended; runs_at_work; `is no` is what was typed"), [] as [&str; 0]);
    assert_eq!(found("it does not fit into memory"), [] as [&str; 0]);
}

#[test]
fn literals_are_found_where_they_stand() {
    let source = "/// \"a comment\"\n#[expect(lint, reason = \"for programmers\")]\nfn f<'a>(x: &'a str) { say(\"one \\\" two\"); let q = '\"'; r#\"raw \"text\"\"# }";
    let found: Vec<&str> = literals(source).into_iter().map(|(_, text)| text).collect();
    assert_eq!(found, ["one \\\" two", "raw \"text\""]);
}
