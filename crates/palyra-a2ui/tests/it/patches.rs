//! Patches: the version, the bounds, and what they lead to.

use palyra_a2ui::{A2uiError, Document, apply, apply_recorded};
use palyra_common::ToStableError as _;
use serde_json::{Value, json};

fn document() -> Document {
    Document::parse(&json!({"root": {"type": "list", "items": [
        {"type": "text", "id": "a", "text": "one"},
        {"type": "progress", "value": 0.1},
    ]}}))
    .unwrap()
}

fn code(patch: &Value) -> String {
    match apply(&document(), 1, patch).unwrap_err() {
        A2uiError::Patch(problems) => problems[0].code.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn a_patch_leads_one_version_on() {
    let patch = json!([
        {"op": "test", "path": "/root/items/0/text", "value": "one"},
        {"op": "replace", "path": "/root/items/0/text", "value": "two"},
        {"op": "add", "path": "/root/items/-", "value": {"type": "code", "text": "x"}},
        {"op": "remove", "path": "/root/items/1"},
        {"op": "copy", "from": "/root/items/1", "path": "/root/items/-"},
        {"op": "move", "from": "/root/items/2", "path": "/root/items/0"},
    ]);
    let before = document();
    let after = apply(&before, 1, &patch).unwrap();
    assert_eq!(after.version(), 2);
    let texts: Vec<_> =
        after.to_value()["root"]["items"].as_array().unwrap().iter().map(|item| item["text"].clone()).collect();
    assert_eq!(texts, ["x", "two", "x"]);
    assert_eq!(
        apply_recorded(&before.to_value(), &patch).unwrap(),
        after.to_value(),
        "what is recorded gives the same"
    );
}

#[test]
fn another_version_is_a_conflict() {
    let patch = json!([{"op": "remove", "path": "/root/items/1"}]);
    for base in [0, 2, u64::MAX] {
        assert_eq!(apply(&document(), base, &patch), Err(A2uiError::Version { expected: base, actual: 1 }));
    }
}

#[test]
fn what_is_no_patch_is_refused() {
    let many: Vec<_> = (0..513).map(|_| json!({"op": "test", "path": "/root/items/0/text", "value": "one"})).collect();
    let large = json!([{"op": "add", "path": "/root/items/-", "value": {"type": "text", "text": "x".repeat(300_000)}}]);
    for (patch, expected) in [
        (json!({}), "not_a_list"),
        (json!([]), "too_many"),
        (json!(many), "too_many"),
        (large, "too_large"),
        (json!([7]), "not_an_object"),
        (json!([{"op": "merge", "path": "/root"}]), "unknown_operation"),
        (json!([{"op": "remove", "path": "/version"}]), "outside_the_tree"),
        (json!([{"op": "replace", "path": "", "value": {}}]), "outside_the_tree"),
        (json!([{"op": "replace", "path": "/surface", "value": "x"}]), "outside_the_tree"),
        (json!([{"op": "add", "path": "/rooted", "value": 1}]), "outside_the_tree"),
        (json!([{"op": "copy", "from": "/version", "path": "/root/items/0"}]), "outside_the_tree"),
        (json!([{"op": "move", "path": "/root/items/0"}]), "outside_the_tree"),
        (json!([{"op": "remove", "path": "/root/items/0", "value": 1}]), "unknown_field"),
        (json!([{"op": "add", "path": "/root/items/-"}]), "missing"),
        (json!([{"op": "remove", "path": "/root/items/9"}]), "does_not_apply"),
        (json!([{"op": "test", "path": "/root/items/0/text", "value": "no"}]), "does_not_apply"),
        (json!([{"op": "replace", "path": "/root/items/0/~2", "value": 1}]), "not_an_operation"),
    ] {
        assert_eq!(code(&patch), expected, "{patch}");
    }
}

#[test]
fn what_is_no_document_afterwards_is_refused() {
    for (patch, expected) in [
        (json!([{"op": "remove", "path": "/root"}]), "missing"),
        (json!([{"op": "replace", "path": "/root/type", "value": "html"}]), "unknown_type"),
        (json!([{"op": "add", "path": "/root/items/0/onclick", "value": "x"}]), "unknown_field"),
        (json!([{"op": "copy", "from": "/root/items/0", "path": "/root/items/-"}]), "duplicate_id"),
        (json!([{"op": "replace", "path": "/root/items/1/value", "value": 7}]), "out_of_range"),
        (json!([{"op": "copy", "from": "/root", "path": "/root/items/-"}]), "duplicate_id"),
    ] {
        assert_eq!(code(&patch), expected, "{patch}");
    }
}

#[test]
fn copies_of_copies_end_early() {
    let operations: Vec<_> =
        (0..512).map(|_| json!({"op": "copy", "from": "/root", "path": "/root/items/-"})).collect();
    assert_eq!(code(&json!(operations)), "too_large");
}

/// Each copy puts the whole tree below its own deepest list, which doubles its depth and keeps it small: thirteen of them are some 8,000 lists.
#[test]
fn copies_below_copies_do_not_exhaust_the_stack() {
    let mut deepest = String::new();
    let mut operations = Vec::new();
    for _ in 0..13 {
        operations.push(json!({"op": "copy", "from": "/root", "path": format!("/root{deepest}/items/-")}));
        deepest = format!("{deepest}/items/0{deepest}");
    }
    let root = Document::parse(&json!({"root": {"type": "list", "items": []}})).unwrap();
    let refused = apply(&root, 1, &json!(operations)).unwrap_err().to_stable();
    assert_eq!(refused.validation_errors[0].code, "too_deep", "{refused:?}");
    // The same with values that are put in, each as deep as JSON may be.
    let deep = (0..50).fold(json!([]), |inner, _| json!({"items": [inner]}));
    let mut path = "/root".to_owned();
    let operations: Vec<_> = (0..20)
        .map(|_| {
            path.push_str(&"/items/0".repeat(50));
            json!({"op": "replace", "path": path, "value": deep})
        })
        .collect();
    assert!(apply(&root, 1, &json!(operations)).is_err());
    let fits = json!([{"op": "copy", "from": "/root", "path": "/root/items/-"}]);
    assert_eq!(apply(&root, 1, &fits).unwrap().version(), 2);
    let last = root.at_version(u64::MAX);
    assert!(apply(&last, u64::MAX, &fits).is_ok(), "the last version there can be");
}
