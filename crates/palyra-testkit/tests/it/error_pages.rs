//! Every stable error code has a page in `docs/errors/`, and every page still has its code.
//!
//! Codes are found in the sources by the ways in which they are written: as the first argument of `StableErrorEnvelope::new`,
//! before their `ErrorCategory`, first in the tuple that an arm of a `match` gives, and in the body of a `fn code(&self)`. An
//! envelope built in any other way fails the test, because its code would go unnoticed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const CONSTRUCTOR: &str = "StableErrorEnvelope::new(";
const CODE_METHODS: [&str; 2] = ["fn code(&self)", "fn code(self)"];

/// Where each code was first seen.
type Codes = BTreeMap<String, PathBuf>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// Product sources: what lies in a `src` folder and is not a module of tests.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The text before the file's own test module.
fn product_part(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

/// The literal at the start of `text`, if it reads like a code: lower-case words joined by `_`.
fn leading_code(text: &str) -> Option<&str> {
    let (literal, _) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    let is_code = literal.starts_with(|letter: char| letter.is_ascii_lowercase())
        && literal.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    is_code.then_some(literal)
}

/// The codes of one file, and whether it also builds an envelope whose code this scan cannot see.
fn scan(text: &str) -> (Vec<String>, bool) {
    let from_methods: Vec<&str> = CODE_METHODS.iter().flat_map(|method| codes_in_bodies(text, method)).collect();
    let chosen = chosen_codes(text);
    let mut codes = [from_methods.clone(), chosen.clone()].concat();
    let mut unseen = false;
    for (at, found) in text.match_indices(CONSTRUCTOR) {
        let after = &text[at + found.len()..];
        if let Some(code) = leading_code(after) {
            codes.push(code);
            continue;
        }
        let argument = after.split(',').next().unwrap().trim();
        let function = text[..at].rfind("fn ").map_or("", |start| &text[start..at]);
        let chosen_here = function.contains("let (code") || function.contains(&format!("let {argument} "));
        unseen |= match argument.ends_with(".code()") {
            true => from_methods.is_empty(),
            false => !chosen_here || chosen.is_empty(),
        };
    }
    (codes.into_iter().map(str::to_owned).collect(), unseen)
}

/// The codes in the body of a method. A method of an `impl` ends at the first closing brace with the indentation of `fn`.
fn codes_in_bodies<'a>(text: &'a str, method: &str) -> Vec<&'a str> {
    let bodies = text.match_indices(method).map(|(at, _)| text[at..].split("\n    }\n").next().unwrap());
    bodies.flat_map(|body| body.match_indices('"').filter_map(|(quote, _)| leading_code(&body[quote..]))).collect()
}

/// The codes that stand before their category, or first in what an arm of a `match` gives.
fn chosen_codes(text: &str) -> Vec<&str> {
    let quotes = text.match_indices('"').map(|(quote, _)| quote);
    quotes
        .filter_map(|quote| {
            let code = leading_code(&text[quote..])?;
            let rest = text[quote + code.len() + 2..].trim_start().strip_prefix(',')?;
            let arm = text[..quote].trim_end().strip_suffix('(').map(str::trim_end);
            let opens_arm = arm.is_some_and(|before| before.ends_with("=>") || before.ends_with("=> {"));
            (opens_arm || rest.trim_start().starts_with("ErrorCategory::")).then_some(code)
        })
        .collect()
}

/// The sources of every crate; some lie in a folder that they share.
fn crates_below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.join("Cargo.toml").is_file() {
            sources(&path.join("src"), files);
            crates_below(&path, files);
        }
    }
}

fn codes_of_the_workspace() -> Codes {
    let mut files = Vec::new();
    crates_below(&workspace().join("crates"), &mut files);
    let mut found = Codes::new();
    let mut unseen = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (codes, computed) = scan(product_part(&text));
        if computed {
            unseen.push(file.display().to_string());
        }
        for code in codes {
            found.entry(code).or_insert_with(|| file.clone());
        }
    }
    assert!(unseen.is_empty(), "envelopes with a code that is not written out, in:\n  {}", unseen.join("\n  "));
    assert!(!found.is_empty(), "found no error code at all: nothing was checked");
    found
}

/// The codes that have a page.
fn pages() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(workspace().join("docs/errors"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".md").map(str::to_owned))
        .filter(|name| name != "README")
        .collect();
    names.sort();
    names
}

#[test]
fn every_code_has_a_page_that_helps() {
    let mut missing = Vec::new();
    for (code, file) in codes_of_the_workspace() {
        let page = workspace().join("docs/errors").join(format!("{code}.md"));
        match fs::read_to_string(&page) {
            Err(_) => missing.push(format!("{code} (used in {}) has no docs/errors/{code}.md", file.display())),
            Ok(text) => {
                if !text.starts_with(&format!("# `{code}`\n")) || !text.contains("\n## What to do\n") {
                    missing.push(format!("docs/errors/{code}.md needs the title `# `{code}`` and `## What to do`"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} pages to write:\n  {}", missing.len(), missing.join("\n  "));
}

#[test]
fn every_page_has_a_code() {
    let codes = codes_of_the_workspace();
    let stale: Vec<String> = pages().into_iter().filter(|page| !codes.contains_key(page)).collect();
    assert!(stale.is_empty(), "pages in docs/errors/ for codes that no source uses: {}", stale.join(", "));
}

#[test]
fn the_index_lists_every_page() {
    let index = fs::read_to_string(workspace().join("docs/errors/README.md")).unwrap();
    let unlisted: Vec<String> =
        pages().into_iter().filter(|page| !index.contains(&format!("[`{page}`]({page}.md)"))).collect();
    assert!(unlisted.is_empty(), "run `make reference`; the index lacks {}", unlisted.join(", "));
}

#[test]
fn the_scan_sees_each_way_of_writing_a_code() {
    let table = [
        (r#"fn f() { StableErrorEnvelope::new("plain_code", c, m) }"#, "plain_code", false),
        ("fn f() { StableErrorEnvelope::new(\n    \"wrapped_code\",\n    c, m) }", "wrapped_code", false),
        (
            r#"fn f() { let (code, category) = ("paired_code", ErrorCategory::Policy); StableErrorEnvelope::new(code, c) }"#,
            "paired_code",
            false,
        ),
        (
            "fn f() { let (code, hint) = match e { A => (\"arm_code\", \"a hint\"), B => {\n (\"second_arm\", \"x\") } };
             StableErrorEnvelope::new(code, c, m) }",
            "arm_code second_arm",
            false,
        ),
        (
            "impl E {\n    fn code(&self) -> &'static str {\n        \"from_method\"\n    }\n    fn g() { \"not_a_code\" }\n}\n
             fn f() { StableErrorEnvelope::new(self.code(), c, m) }",
            "from_method",
            false,
        ),
        ("fn f(code: &str) { StableErrorEnvelope::new(code, c, m) }", "", true),
        ("fn f() { StableErrorEnvelope::new(self.code(), c, m) }", "", true),
        ("fn f() { let code = elsewhere(); StableErrorEnvelope::new(code, c, m) }", "", true),
        (r#"fn f() { log("some_words", 3) }"#, "", false),
    ];
    for (text, codes, unseen) in table {
        assert_eq!(scan(text), (codes.split_whitespace().map(str::to_owned).collect(), unseen), "{text}");
    }
    assert_eq!(product_part("code\n#[cfg(test)]\nmod tests {\n\"other\"").trim(), "code");
}
