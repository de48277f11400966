//! The set in force is replaced whole or not at all.

use std::fs;
use std::sync::Arc;

use palyra_common::{ToStableError as _, ToolVerdict};
use palyra_policy::{PolicySource, PolicySources, PolicyStore};

use crate::support::{execute, read};

const FORBID: &str = "@id(\"stop\") forbid (principal, action, resource);";

#[test]
fn a_reload_takes_effect_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let store = PolicyStore::open(PolicySources::shipped().with_directory(directory.path())).unwrap();
    assert_eq!(store.decide(&read()).verdict, ToolVerdict::Permit);
    let held = store.current();

    fs::write(directory.path().join("site.cedar"), FORBID).unwrap();
    assert_eq!(store.decide(&read()).verdict, ToolVerdict::Permit, "nothing changes by itself");
    let difference = store.reload().unwrap();
    assert_eq!(difference.changes.iter().map(|change| change.id()).collect::<Vec<_>>(), ["site.stop"]);
    assert_eq!(store.decide(&read()).verdict, ToolVerdict::Deny);
    assert_eq!(held.decide(&read()).verdict, ToolVerdict::Permit, "who holds a set decides with it to the end");
    assert_ne!(held.digest(), store.current().digest());
}

#[test]
fn a_bad_file_keeps_the_old_set_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("site.cedar");
    fs::write(&file, FORBID).unwrap();
    let sources = PolicySources::shipped().with_directory(directory.path());
    let store = PolicyStore::open(sources.clone()).unwrap();
    let before = store.current();

    fs::write(&file, "permit (").unwrap();
    let error = store.reload().unwrap_err();
    assert_eq!(error.to_stable().code, "policy_malformed");
    assert!(error.to_string().contains("site.cedar:1"), "{error}");
    assert!(Arc::ptr_eq(&before, &store.current()), "the old set stays in force");
    assert_eq!(store.decide(&read()).verdict, ToolVerdict::Deny);
    assert_eq!(store.last_error().unwrap().to_stable().code, "policy_malformed");
    assert!(PolicyStore::open(sources).is_err(), "at start there is no old set");

    fs::remove_dir_all(directory.path()).unwrap();
    assert_eq!(store.reload().unwrap_err().to_stable().code, "policy_not_found");
    assert_eq!(store.decide(&read()).verdict, ToolVerdict::Deny);

    fs::create_dir(directory.path()).unwrap();
    store.reload().unwrap();
    assert!(store.last_error().is_none());
    assert_eq!(store.decide(&read()).verdict, ToolVerdict::Permit);
}

#[test]
fn approved_patterns_are_put_in_force_and_revoked() {
    let store = PolicyStore::open(PolicySources::shipped()).unwrap();
    let shipped = PolicySources::shipped().texts;
    let mut texts = shipped.clone();
    let pattern =
        "@id(\"once\") permit (principal, action == Action::\"tool.execute\", resource == Tool::\"some.tool\");";
    texts.push(PolicySource::new("approved", pattern));
    store.replace(texts, Vec::new()).unwrap();
    assert_eq!(store.decide(&execute()).verdict, ToolVerdict::Permit);

    let mut bad = shipped.clone();
    bad.push(PolicySource::new("approved", "permit ("));
    assert!(store.replace(bad, Vec::new()).is_err());
    assert!(store.reload().unwrap().is_empty(), "a refused replacement is forgotten");
    assert_eq!(store.decide(&execute()).verdict, ToolVerdict::Permit);

    store.replace(shipped, Vec::new()).unwrap();
    assert_eq!(store.decide(&execute()).verdict, ToolVerdict::Deny);
}
