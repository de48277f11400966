//! What a person enters, as programs and as browsers send it.

use palyra_a2ui::{A2uiError, Document, check_values};
use serde_json::{Value, json};

fn document() -> Document {
    Document::parse(&json!({"root": {"type": "form", "id": "f", "fields": [
        {"type": "text", "name": "name", "label": "Name", "required": true, "max_length": 10},
        {"type": "email", "name": "mail", "label": "Mail"},
        {"type": "number", "name": "age", "label": "Age", "min": 0, "max": 150, "value": 30},
        {"type": "select", "name": "plan", "label": "Plan", "options": [{"value": "basic", "label": "Basic"}, {"value": "pro", "label": "Pro"}]},
        {"type": "checkbox", "name": "terms", "label": "Terms", "required": true},
        {"type": "text", "name": "note", "label": "Note", "value": "as proposed"},
    ]}}))
    .unwrap()
}

/// The place and code of every problem.
type Wrong = Vec<(String, String)>;

fn check(given: &Value) -> Result<(Value, Vec<String>), Wrong> {
    match check_values(document().form("f").unwrap(), given.as_object().unwrap()) {
        Ok(checked) => Ok((Value::Object(checked.values), checked.unchanged)),
        Err(A2uiError::Values(problems)) => {
            Err(problems.into_iter().map(|problem| (problem.field, problem.code)).collect())
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn programs_and_browsers_mean_the_same() {
    let typed = json!({"name": "Ada", "mail": "ada@example.org", "age": 36, "plan": "pro", "terms": true});
    let sent =
        json!({"name": "Ada", "mail": " ada@example.org ", "age": "36", "plan": "pro", "terms": "on", "note": ""});
    let expected = json!({"name": "Ada", "mail": "ada@example.org", "age": 36, "plan": "pro", "terms": true});
    assert_eq!(check(&typed), Ok((expected.clone(), Vec::new())));
    assert_eq!(check(&sent), Ok((expected, Vec::new())));
}

#[test]
fn what_the_document_proposed_is_told_apart() {
    let given = json!({"name": "Ada", "terms": true, "age": "30", "note": "as proposed"});
    let (values, unchanged) = check(&given).unwrap();
    assert_eq!((values["age"].clone(), unchanged), (json!(30), vec!["age".to_owned(), "note".to_owned()]));
    let (_, unchanged) = check(&json!({"name": "Ada", "terms": true, "note": "mine"})).unwrap();
    assert!(unchanged.is_empty());
}

#[test]
fn what_does_not_fit_is_named() {
    for (given, field, code) in [
        (json!({"terms": true}), "name", "missing"),
        (json!({"name": "", "terms": true}), "name", "missing"),
        (json!({"name": "Ada"}), "terms", "missing"),
        (json!({"name": "Ada", "terms": "maybe"}), "terms", "not_a_flag"),
        (json!({"name": "much too long", "terms": true}), "name", "too_long"),
        (json!({"name": 7, "terms": true}), "name", "not_a_text"),
        (json!({"name": "Ada", "terms": true, "mail": "no"}), "mail", "not_an_address"),
        (json!({"name": "Ada", "terms": true, "mail": "a@b.example\r\nBcc: x@y.example"}), "mail", "not_an_address"),
        (json!({"name": "Ada", "terms": true, "age": 151}), "age", "out_of_range"),
        (json!({"name": "Ada", "terms": true, "age": "NaN"}), "age", "not_a_number"),
        (json!({"name": "Ada", "terms": true, "age": "1e999"}), "age", "not_a_number"),
        (json!({"name": "Ada", "terms": true, "plan": "free"}), "plan", "not_a_choice"),
        (json!({"name": "Ada", "terms": true, "admin": true}), "admin", "unknown_field"),
    ] {
        let found = check(&given).unwrap_err();
        assert_eq!(found, [(field.to_owned(), code.to_owned())], "{given}");
    }
}
