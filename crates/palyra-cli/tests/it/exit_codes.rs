//! Exit codes, as `docs/errors` documents them: one rule from an error to its code, and each error made with what its page says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use palyra_common::{ErrorCategory, Retry, StableErrorEnvelope};

/// What the page of a code says.
struct Page {
    category: ErrorCategory,
    exit_code: u8,
    retry: Retry,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads "Category `not_found`, exit code 8. Retrying without a change fails again.".
fn page(text: &str) -> Option<Page> {
    let line = text.lines().find(|line| line.starts_with("Category `"))?;
    let (category, rest) = line.strip_prefix("Category `")?.split_once("`, exit code ")?;
    let retry = if line.contains("fails again") { Retry::Pointless } else { Retry::MayHelp };
    Some(Page { category: category.parse().ok()?, exit_code: rest.get(..1)?.parse().ok()?, retry })
}

fn pages() -> BTreeMap<String, Page> {
    let entries = std::fs::read_dir(workspace().join("docs/errors")).unwrap();
    let pages: BTreeMap<String, Page> = entries
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| {
            let code = path.file_stem()?.to_str()?.to_owned();
            Some((code, page(&std::fs::read_to_string(&path).unwrap())?))
        })
        .collect();
    assert!(pages.len() > 300, "the pages are not read: {}", pages.len());
    pages
}

#[test]
fn each_documented_exit_code_follows_from_its_category() {
    for (code, page) in pages() {
        let envelope = StableErrorEnvelope::new(&code, page.category, "x").retryable(page.retry);
        assert_eq!(envelope.exit_code() as u8, page.exit_code, "docs/errors/{code}.md");
    }
}

/// Wherever a code and a category are written side by side, the page of the code names the same category.
#[test]
fn each_error_is_made_with_the_category_that_its_page_names() {
    let pages = pages();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace().join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    let mut checked = 0;
    let mut wrong = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (code, category) in pairs(&text) {
            let Some(page) = pages.get(code) else { continue };
            checked += 1;
            if page.category != category {
                wrong.push(format!("{}: `{code}` is {category}, its page says {}", file.display(), page.category));
            }
        }
    }
    assert!(checked > 200, "the sources are not read: {checked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, files);
        } else if name.ends_with(".rs") && !name.contains("tests") {
            files.push(path);
        }
    }
}

/// Each `"some_code", Category` of a source text.
fn pairs(text: &str) -> Vec<(&str, ErrorCategory)> {
    let is_code = |text: &str| {
        !text.is_empty() && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
    };
    let parts: Vec<&str> = text.split('"').collect();
    let beside = parts.windows(2).filter_map(|pair| match pair {
        [code, after] if is_code(code) => {
            let after = after.strip_prefix(',')?.trim_start();
            let after = after.strip_prefix("ErrorCategory::").unwrap_or(after);
            let name: String = after.chars().take_while(char::is_ascii_alphabetic).collect();
            ErrorCategory::ALL.iter().find(|known| format!("{known:?}") == name).map(|category| (*code, *category))
        }
        _ => None,
    });
    beside.collect()
}
