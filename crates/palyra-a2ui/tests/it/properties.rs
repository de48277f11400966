//! Properties over made-up texts, documents and patches.

use palyra_a2ui::{Document, apply, apply_recorded, text};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::hostile::{PAYLOADS, check, everywhere};

/// Texts that look like markup more often than not.
fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(PAYLOADS.to_vec()).prop_map(str::to_owned),
        "[<>\"'`&=/!\\[\\]()#|*_~\\\\ a-z-]{0,24}",
        "\\PC{0,16}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat().chars().take(600).collect())
}

fn component() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        nasty().prop_map(|text| json!({"type": "text", "text": text})),
        nasty().prop_map(|text| json!({"type": "markdown", "text": text})),
        nasty().prop_map(|text| json!({"type": "code", "text": text})),
        (0.0..=1.0).prop_map(|value: f64| json!({"type": "progress", "value": value})),
        Just(json!({"type": "table", "columns": ["a"], "rows": [["x"]]})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(|items| json!({"type": "list", "items": items}))
    })
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("items".to_owned()),
        Just("text".to_owned()),
        Just("type".to_owned()),
        Just("-".to_owned()),
        (0..4_usize).prop_map(|index| index.to_string()),
    ];
    prop::collection::vec(part, 0..4)
        .prop_map(|parts| parts.iter().fold("/root".to_owned(), |path, part| format!("{path}/{part}")))
}

fn operation() -> impl Strategy<Value = Value> {
    let value = prop_oneof![component(), nasty().prop_map(Value::String), Just(json!(7)), Just(json!([]))];
    prop_oneof![
        (path(), value.clone()).prop_map(|(path, value)| json!({"op": "add", "path": path, "value": value})),
        (path(), value).prop_map(|(path, value)| json!({"op": "replace", "path": path, "value": value})),
        path().prop_map(|path| json!({"op": "remove", "path": path})),
        (path(), path()).prop_map(|(from, path)| json!({"op": "copy", "from": from, "path": path})),
        (path(), path()).prop_map(|(from, path)| json!({"op": "move", "from": from, "path": path})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_text_becomes_markup(text in nasty()) {
        prop_assert_eq!(check(&text), Ok(()));
    }

    #[test]
    fn no_text_controls_a_terminal(text in nasty()) {
        let lines = text::render(&Document::parse(&everywhere(&text)).unwrap());
        prop_assert!(!lines.chars().any(|c| c.is_control() && c != '\n'));
    }

    #[test]
    fn patches_never_leave_an_invalid_document(root in component(), patch in prop::collection::vec(operation(), 1..6)) {
        let before = Document::parse(&json!({"root": root})).unwrap();
        let patch = Value::Array(patch);
        if let Ok(after) = apply(&before, 1, &patch) {
            let value = after.to_value();
            prop_assert_eq!(Document::parse(&value).unwrap(), after);
            prop_assert_eq!(apply_recorded(&before.to_value(), &patch).unwrap(), value);
        }
    }

    #[test]
    fn anything_at_all_is_read_without_harm(value in any_json()) {
        let _ = Document::parse(&value);
        let _ = Document::parse(&json!({"root": value.clone()}));
        let before = Document::parse(&json!({"root": {"type": "text", "text": "x"}})).unwrap();
        let _ = apply(&before, 1, &value);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "type", "text", "list", "items", "form", "fields", "id", "op", "path", "/root", "add", "value", "table", "rows",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, move |inner| {
        let name = prop::sample::select(words.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
