//! Reading a command's parameters from whichever form a transport has: one JSON record, or an address with a query or a body.
//!
//! Whatever is wrong is named by field, in the same words on every transport.

use palyra_common::{ErrorCategory, FieldError, StableErrorEnvelope};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::about::{About, TargetId};

/// Parameters from one JSON record; none at all count as a record without fields.
pub(super) fn value<P: DeserializeOwned>(value: Value) -> Result<P, StableErrorEnvelope> {
    let value = if value.is_null() { Value::Object(Map::new()) } else { value };
    serde_path_to_error::deserialize(value).map_err(|error| named(&error.path().to_string(), &error.into_inner()))
}

/// Parameters from a query string.
pub(super) fn query<P: DeserializeOwned>(query: &str) -> Result<P, StableErrorEnvelope> {
    let deserializer = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(deserializer)
        .map_err(|error| named(&error.path().to_string(), &error.into_inner()))
}

/// Parameters from a JSON body; an empty one counts as `{}`.
pub(super) fn body<P: DeserializeOwned>(body: &[u8]) -> Result<P, StableErrorEnvelope> {
    let body = if body.is_empty() { b"{}" } else { body };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if inner.is_data() { named(&path, &inner) } else { malformed(&inner) }
    })?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

/// The same with the one thing that the command is about, taken out of the record.
pub(super) fn about_value<T: TargetId, P: DeserializeOwned>(given: Value) -> Result<About<T, P>, StableErrorEnvelope> {
    let Value::Object(mut fields) = given else {
        return Err(invalid_field("params", "they must be a record"));
    };
    let text = match fields.remove(T::FIELD) {
        Some(Value::String(text)) => text,
        // Positions are numbers in JSON and texts in an address.
        Some(Value::Number(number)) => number.to_string(),
        Some(_) => return Err(invalid_field(T::FIELD, "it is not an id")),
        None => return Err(invalid_field(T::FIELD, "it is missing")),
    };
    Ok(About { target: target(Some(&text))?, params: value(Value::Object(fields))? })
}

/// The id of an address.
pub(super) fn target<T: TargetId>(text: Option<&str>) -> Result<T, StableErrorEnvelope> {
    let text = text.ok_or_else(|| invalid_field(T::FIELD, "it is missing"))?;
    text.parse().map_err(|error: T::Err| invalid_field(T::FIELD, error.to_string()))
}

fn named(path: &str, error: &impl ToString) -> StableErrorEnvelope {
    let message = error.to_string();
    invalid_field(&field_of(path, &message), message)
}

/// What is not even JSON.
fn malformed(error: &serde_json::Error) -> StableErrorEnvelope {
    let mut envelope = StableErrorEnvelope::new(
        "body_malformed",
        ErrorCategory::Validation,
        format!("the body is not one JSON document: {error}"),
    )
    .hint("send one JSON record; nothing was done");
    envelope.validation_errors.push(FieldError {
        field: "body".to_owned(),
        code: "malformed".to_owned(),
        message: error.to_string(),
    });
    envelope
}

/// A request that is wrong in one field.
#[must_use]
pub fn invalid_field(field: &str, message: impl Into<String>) -> StableErrorEnvelope {
    let message = message.into();
    let mut envelope =
        StableErrorEnvelope::new("request_invalid", ErrorCategory::Validation, format!("`{field}`: {message}"))
            .hint("correct the named field; nothing was done");
    envelope.validation_errors.push(FieldError { field: field.to_owned(), code: "invalid".to_owned(), message });
    envelope
}

/// The field that a message of serde is about. The path leads to the record; an unknown or missing field of it is named in
/// the message alone.
fn field_of(path: &str, message: &str) -> String {
    let named = ["unknown field `", "missing field `"]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix))
        .and_then(|rest| rest.split_once('`'))
        .map(|(name, _)| name);
    match (path, named) {
        ("." | "", None) => "params".to_owned(),
        ("." | "", Some(name)) => name.to_owned(),
        (path, Some(name)) if !path.ends_with(name) => format!("{path}.{name}"),
        (path, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::api::{AbortRunParams, CreateRunParams, ListRunsParams};
    use palyra_common::RunId;

    use super::*;

    fn refused<T: std::fmt::Debug>(result: Result<T, StableErrorEnvelope>) -> String {
        let envelope = result.unwrap_err();
        format!("{} {}", envelope.code, envelope.validation_errors[0].field)
    }

    fn bad(text: &str) -> String {
        refused(body::<CreateRunParams>(text.as_bytes()))
    }

    #[test]
    fn a_wrong_body_is_refused_by_field() {
        let good = r#"{"prompt":"p","workspace":"/w"}"#;
        assert_eq!(body::<CreateRunParams>(good.as_bytes()).unwrap().prompt, "p");
        assert_eq!(bad("{"), "body_malformed body");
        assert_eq!(bad(&format!("{good} x")), "body_malformed body");
        assert_eq!(bad(r#"{"workspace":"/w"}"#), "request_invalid prompt");
        assert_eq!(bad(r#"{"prompt":"p","workspace":"/w","max_turns":3}"#), "request_invalid max_turns");
        assert_eq!(bad(r#"{"prompt":"p","workspace":7}"#), "request_invalid workspace");
        let nested = r#"{"prompt":"p","workspace":"/w","limits":{"max_turns":-1}}"#;
        assert_eq!(bad(nested), "request_invalid limits.max_turns");
        let nested = r#"{"prompt":"p","workspace":"/w","limits":{"turns":1}}"#;
        assert_eq!(bad(nested), "request_invalid limits.turns");
    }

    #[test]
    fn a_wrong_query_is_refused_by_field() {
        assert_eq!(query::<ListRunsParams>("limit=7&phase=running").unwrap().limit, Some(7));
        assert_eq!(query::<ListRunsParams>("").unwrap(), ListRunsParams::default());
        for (text, field) in [
            ("limit=x", "limit"),
            ("phase=dancing", "phase"),
            ("limits=7", "limits"),
            ("session_id=short", "session_id"),
        ] {
            assert_eq!(refused(query::<ListRunsParams>(text)), format!("request_invalid {field}"), "{text}");
        }
    }

    #[test]
    fn a_record_names_what_it_is_about() {
        let id = RunId::generate();
        let read = about_value::<RunId, AbortRunParams>;
        let whole = read(serde_json::json!({"run_id": id, "reason": "enough"})).unwrap();
        assert_eq!((whole.target, whole.params.reason.as_deref()), (id, Some("enough")));
        assert_eq!(serde_json::to_value(&whole).unwrap(), serde_json::json!({"run_id": id, "reason": "enough"}));
        assert_eq!(refused(read(serde_json::json!({"reason": "enough"}))), "request_invalid run_id");
        assert_eq!(refused(read(serde_json::json!({"run_id": "short"}))), "request_invalid run_id");
        assert_eq!(refused(read(serde_json::json!({"run_id": id, "why": "x"}))), "request_invalid why");
        assert_eq!(refused(read(serde_json::json!([]))), "request_invalid params");
    }
}
