//! Every example builds, and imports exactly what it is about.

use palyra_plugins_build::{Language, Reuse, SkillCases};

use crate::support::{available, build, copy, examples, host};

/// Each example with its language, its exports and its imports.
fn expected() -> Vec<(&'static str, Language, &'static str, Vec<String>)> {
    let tool = "palyra:plugin/tool@1.0.0";
    let hook = "palyra:plugin/hook@1.0.0";
    vec![
        ("echo-http", Language::C, tool, host(&["capabilities", "failures", "http"])),
        ("kv-notes", Language::Rust, tool, host(&["capabilities", "failures", "storage"])),
        ("markdown-table", Language::Rust, tool, host(&[])),
        ("policy-guard", Language::C, hook, host(&["config"])),
        ("secret-webhook", Language::Rust, tool, host(&["capabilities", "failures", "http"])),
        ("word-count", Language::JavaScript, tool, host(&["log"])),
    ]
}

fn check(name: &str) {
    let all = expected();
    let (_, language, export, imports) = all.iter().find(|(known, ..)| *known == name).unwrap();
    let source = examples().join(name);
    assert_eq!(Language::of(&source).unwrap(), *language);
    let cases: usize = SkillCases::read_all(&source).unwrap().iter().map(|file| file.cases.len()).sum();
    assert!(cases >= 2, "{name} has {cases} cases");
    if !available(*language) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&source, folder.path());
    let built = build(folder.path(), Reuse::Cached);
    assert_eq!(built.modules.len(), 1);
    eprintln!("{name}: {} bytes, {:?}", built.modules[0].bytes.len(), built.origin);
    assert_eq!(built.modules[0].shape.exports, [*export]);
    assert_eq!(built.modules[0].shape.imports, *imports);
}

#[test]
fn echo_http_builds() {
    check("echo-http");
}

#[test]
fn kv_notes_builds() {
    check("kv-notes");
}

#[test]
fn markdown_table_builds() {
    check("markdown-table");
}

#[test]
fn policy_guard_builds() {
    check("policy-guard");
}

#[test]
fn secret_webhook_builds() {
    check("secret-webhook");
}

#[test]
fn word_count_builds() {
    check("word-count");
}

#[test]
fn every_example_is_checked_and_none_holds_what_was_built() {
    let mut there: Vec<String> = examples()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    there.sort();
    let known: Vec<&str> = expected().iter().map(|(name, ..)| *name).collect();
    assert_eq!(there, known);
}
