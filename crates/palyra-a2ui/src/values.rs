//! What a person entered, held against the form it was entered into.
//!
//! Programs give typed JSON, browsers give texts; both become the same values here. A value that stands there as the document proposed it is told
//! apart: whoever drew the form wrote it, not the person.

use std::collections::BTreeMap;

use palyra_common::FieldError;
use serde_json::{Map, Value};

use crate::component::{Field, FieldKind, Form};
use crate::document::problem;
use crate::error::A2uiError;
use crate::limits::{MAX_NUMBER, MAX_PROBLEMS, MAX_VALUE};

/// Values that fit their form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckedValues {
    /// What the person entered or chose, by field.
    pub values: Map<String, Value>,
    /// Fields whose text or number the person left as the document proposed it; they are in `values` too.
    pub unchanged: Vec<String>,
    /// Fields in which the person chose an option that is shown under another text than its value, with the option's position from 1 on. What the person saw and
    /// what the document made of it are two things.
    pub relabelled: BTreeMap<String, usize>,
}

/// Holds values against a form.
///
/// # Errors
/// Every field that does not fit, and every value that no field asked for.
pub fn check_values(form: &Form, given: &Map<String, Value>) -> Result<CheckedValues, A2uiError> {
    let mut problems = Vec::new();
    for name in given.keys() {
        if !form.fields.iter().any(|field| field.name == *name) {
            let shown: String = name.chars().take(64).collect();
            problems.push(problem(shown, "unknown_field", "is not a field of this form"));
        }
    }
    let mut checked = CheckedValues::default();
    for field in &form.fields {
        match value(field, given.get(&field.name)) {
            Ok(None) => {}
            Ok(Some(value)) => {
                if is_proposed(field, &value) {
                    checked.unchanged.push(field.name.clone());
                }
                if let Some(position) = relabelled(field, &value) {
                    checked.relabelled.insert(field.name.clone(), position);
                }
                checked.values.insert(field.name.clone(), value);
            }
            Err(wrong) => problems.push(wrong),
        }
    }
    problems.truncate(MAX_PROBLEMS);
    if problems.is_empty() { Ok(checked) } else { Err(A2uiError::Values(problems)) }
}

/// Whether the document had put this very value there. Ticks are no words of the document's; for options see [`relabelled`].
fn is_proposed(field: &Field, value: &Value) -> bool {
    match &field.kind {
        FieldKind::Text { value: proposed, .. } | FieldKind::Email { value: proposed } => {
            proposed.as_deref().is_some_and(|proposed| value.as_str() == Some(&*one_spelling(proposed)))
        }
        FieldKind::Number { value: proposed, .. } => proposed.is_some() && value.as_f64() == *proposed,
        FieldKind::Select { .. } | FieldKind::Checkbox { .. } => false,
    }
}

/// Which option was chosen, if its value is not the text that stands on it.
fn relabelled(field: &Field, value: &Value) -> Option<usize> {
    let FieldKind::Select { options, .. } = &field.kind else { return None };
    let position = options.iter().position(|option| value.as_str() == Some(&option.value))?;
    options
        .get(position)
        .filter(|option| !option.label.trim().eq_ignore_ascii_case(option.value.trim()))
        .map(|_| position + 1)
}

fn value(field: &Field, given: Option<&Value>) -> Result<Option<Value>, FieldError> {
    let wrong = |code: &str, message: String| problem(field.name.clone(), code, message);
    // A browser sends an empty text for a field that was left empty.
    let given = given.filter(|value| !value.is_null() && value.as_str() != Some(""));
    if let FieldKind::Checkbox { .. } = field.kind {
        let ticked = match given {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(Value::String(text)) if text == "on" => true,
            Some(_) => return Err(wrong("not_a_flag", "must be true or false".to_owned())),
        };
        if field.required && !ticked {
            return Err(wrong("missing", "must be checked".to_owned()));
        }
        return Ok(Some(Value::Bool(ticked)));
    }
    let Some(given) = given else {
        let missing = || wrong("missing", "is required".to_owned());
        return if field.required { Err(missing()) } else { Ok(None) };
    };
    match &field.kind {
        FieldKind::Text { max_length, .. } => {
            let text = one_spelling(text(given).ok_or_else(|| wrong("not_a_text", "is not a string".to_owned()))?);
            let most = max_length.unwrap_or(MAX_VALUE);
            if text.len() > most {
                return Err(wrong("too_long", format!("has more than {most} bytes")));
            }
            Ok(Some(Value::String(text)))
        }
        FieldKind::Email { .. } => match text(given).map(str::trim).filter(|text| is_address(text)) {
            Some(address) => Ok(Some(address.into())),
            None => Err(wrong("not_an_address", "is not an email address".to_owned())),
        },
        FieldKind::Number { min, max, .. } => {
            let number = match given {
                Value::Number(number) => number.as_f64(),
                Value::String(text) => text.trim().parse().ok(),
                _ => None,
            };
            let number = number.filter(|number| number.is_finite() && number.abs() <= MAX_NUMBER);
            let number = number.ok_or_else(|| wrong("not_a_number", "is not a number".to_owned()))?;
            if min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
                return Err(wrong("out_of_range", "is outside the allowed range".to_owned()));
            }
            Ok(Some(plain_number(number)))
        }
        FieldKind::Select { options, .. } => {
            let chosen = text(given).filter(|text| options.iter().any(|option| option.value == *text));
            match chosen {
                Some(chosen) => Ok(Some(chosen.into())),
                None => Err(wrong("not_a_choice", "is not one of the options".to_owned())),
            }
        }
        FieldKind::Checkbox { .. } => Ok(None),
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

/// Browsers send line breaks as two characters; control characters are nobody's words.
fn one_spelling(text: &str) -> String {
    text.replace("\r\n", "\n").chars().map(crate::safe::shown).collect()
}

/// A whole number is written as one.
fn plain_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        // Whole and smaller than 2^53.
        return Value::from(number as i64);
    }
    Value::from(number)
}

/// Whether a text can be an address for mail: one `@`, something on both sides, nothing that ends a line or a header.
pub(crate) fn is_address(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace() && !"<>\",;:\\()[]".contains(c);
    text.len() <= 254
        && text.chars().all(plain)
        && text.split_once('@').is_some_and(|(local, host)| {
            !local.is_empty()
                && host.contains('.')
                && !host.contains('@')
                && !host.starts_with('.')
                && !host.ends_with('.')
        })
}
