//! What is refused, and where.

use palyra_a2ui::{A2uiError, Component, Document, MAX_DEPTH};
use palyra_common::ToStableError as _;
use serde_json::{Value, json};

/// The place and code of every problem.
fn problems(value: &Value) -> Vec<(String, String)> {
    match Document::parse(value) {
        Err(A2uiError::Document(problems)) => {
            problems.into_iter().map(|problem| (problem.field, problem.code)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn root(component: Value) -> Value {
    Value::Object([("root".to_owned(), component)].into_iter().collect())
}

#[test]
fn what_is_not_known_is_refused_where_it_stands() {
    let cases = [
        (json!(7), "/", "not_an_object"),
        (json!({}), "/root", "missing"),
        (json!({"root": {"type": "text", "text": "x"}, "extra": 1}), "/extra", "unknown_field"),
        (json!({"surface": "A B", "root": {"type": "text", "text": "x"}}), "/surface", "not_a_name"),
        (json!({"version": 0, "root": {"type": "text", "text": "x"}}), "/version", "not_a_version"),
        (root(json!({"type": "html", "html": "<b>"})), "/root/type", "unknown_type"),
        (root(json!({"text": "x"})), "/root/type", "missing"),
        (root(json!({"type": "text"})), "/root/text", "missing"),
        (root(json!({"type": "text", "text": 1})), "/root/text", "not_a_text"),
        (root(json!({"type": "text", "text": "x", "onclick": "y"})), "/root/onclick", "unknown_field"),
        (root(json!({"type": "text", "text": "x", "style": "blink"})), "/root/style", "not_a_choice"),
        (root(json!({"type": "text", "text": "x".repeat(70_000)})), "/root/text", "too_long"),
        (root(json!({"type": "text", "text": "x", "id": "A"})), "/root/id", "not_a_name"),
        (
            root(json!({"type": "list", "items": [{"type": "text", "text": "x"}, {"type": "b"}]})),
            "/root/items/1/type",
            "unknown_type",
        ),
        (root(json!({"type": "table", "columns": ["a"], "rows": [["x", "y"]]})), "/root/rows/0", "wrong_width"),
        (root(json!({"type": "table", "columns": ["a"], "rows": [[{}]]})), "/root/rows/0/0", "not_a_cell"),
        (root(json!({"type": "table", "columns": [], "rows": []})), "/root/columns", "empty"),
        (
            root(json!({"type": "chart", "labels": ["a"], "series": [{"name": "s", "values": [1, 2]}]})),
            "/root/series/0/values",
            "wrong_width",
        ),
        (
            root(json!({"type": "chart", "labels": ["a"], "series": [{"name": "s", "values": [1e300]}]})),
            "/root/series/0/values/0",
            "not_a_number",
        ),
        (root(json!({"type": "image", "alt": "x", "src": "https://example.org/a.png"})), "/root/src", "not_a_picture"),
        (
            root(json!({"type": "image", "alt": "x", "src": "data:image/svg+xml;base64,PHN2Zz4="})),
            "/root/src",
            "not_a_picture",
        ),
        (root(json!({"type": "progress", "value": 2})), "/root/value", "out_of_range"),
        (root(json!({"type": "approval", "id": "a", "approval_id": "x"})), "/root/approval_id", "not_an_id"),
        (root(json!({"type": "approval"})), "/root/id", "missing"),
        (root(json!({"type": "form", "id": "f", "fields": []})), "/root/fields", "empty"),
        (root(json!({"type": "form", "fields": [{"type": "text", "name": "a", "label": "A"}]})), "/root/id", "missing"),
        (
            root(json!({"type": "form", "id": "f", "fields": [{"type": "file", "name": "a", "label": "A"}]})),
            "/root/fields/0/type",
            "unknown_type",
        ),
        (
            root(json!({"type": "form", "id": "f", "fields": [{"type": "password", "name": "a", "label": "A"}]})),
            "/root/fields/0/type",
            "unknown_type",
        ),
        (
            root(
                json!({"type": "form", "id": "f", "fields": [{"type": "select", "name": "a", "label": "A", "options": [{"value": "two words", "label": "x"}]}]}),
            ),
            "/root/fields/0/options/0/value",
            "not_a_name",
        ),
        (
            root(
                json!({"type": "form", "id": "f", "fields": [{"type": "text", "name": "a", "label": "A"}, {"type": "text", "name": "a", "label": "B"}]}),
            ),
            "/root/fields/1/name",
            "duplicate_name",
        ),
        (
            root(
                json!({"type": "form", "id": "f", "fields": [{"type": "number", "name": "a", "label": "A", "min": 2, "max": 1}]}),
            ),
            "/root/fields/0/min",
            "out_of_range",
        ),
    ];
    for (value, field, code) in cases {
        let found = problems(&value);
        assert!(found.contains(&(field.to_owned(), code.to_owned())), "{value}: {found:?}");
    }
}

#[test]
fn ids_stand_once() {
    let twice = root(
        json!({"type": "list", "items": [{"type": "text", "id": "a", "text": "x"}, {"type": "code", "id": "a", "text": "y"}]}),
    );
    assert_eq!(problems(&twice), [("/root/items/1/id".to_owned(), "duplicate_id".to_owned())]);
}

fn nested(depth: usize) -> Value {
    (1..depth).fold(json!({"type": "text", "text": "x"}), |inner, _| json!({"type": "list", "items": [inner]}))
}

#[test]
fn depth_count_and_size_are_bounded() {
    Document::parse(&root(nested(MAX_DEPTH))).unwrap();
    assert_eq!(problems(&root(nested(MAX_DEPTH + 1)))[0].1, "too_deep");
    assert_eq!(problems(&root(nested(100)))[0].1, "too_deep");
    let many: Vec<_> = (0..2_100).map(|_| json!({"type": "text", "text": ""})).collect();
    assert_eq!(problems(&root(json!({"type": "list", "items": many})))[0].1, "too_many");
    let large: Vec<_> = (0..6).map(|_| json!({"type": "text", "text": "x".repeat(60_000)})).collect();
    assert_eq!(problems(&root(json!({"type": "list", "items": large}))), [("/".to_owned(), "too_large".to_owned())]);
    let wrong: Vec<_> = (0..100).map(|_| json!({"type": "b"})).collect();
    assert!(problems(&root(json!({"type": "list", "items": wrong}))).len() <= 16, "nobody reads a hundred problems");
}

#[test]
fn a_document_reads_as_it_is_written() {
    let value = json!({"surface": "side", "version": 4, "root": {"type": "list", "items": [
        {"type": "form", "id": "f", "fields": [{"type": "checkbox", "name": "ok", "label": "Ok"}]},
        {"type": "approval", "id": "card"},
    ]}});
    let document = Document::parse(&value).unwrap();
    assert_eq!((document.surface(), document.version()), ("side", 4));
    assert_eq!(document.to_value(), value);
    assert_eq!(document.form("f").unwrap().fields.len(), 1);
    assert!(document.form("card").is_none() && document.form("none").is_none());
    assert!(matches!(document.component("card"), Some(Component::Approval(_))));
    assert_eq!(document.approvals().len(), 1);
}

#[test]
fn an_error_names_its_fields() {
    let error = Document::parse(&root(json!({"type": "text", "text": "x", "b": 1}))).unwrap_err().to_stable();
    assert_eq!((error.code.as_str(), error.validation_errors[0].field.as_str()), ("a2ui_document_invalid", "/root/b"));
}
