//! Reading a command's parameters from whichever form a transport has: one JSON record, or an address with a query or a body.
//!
//! Whatever is wrong is named by field, in the same words on every transport.

use palyra_common::{ErrorCategory, FieldError, StableErrorEnvelope};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::about::{About, TargetId};

/// What is said of a text, a number or a list where a record belongs.
const NO_RECORD: &str = "it must be a JSON object, such as {}";

/// Parameters from one JSON record; none at all count as a record without fields.
pub(super) fn value<P: DeserializeOwned>(value: Value) -> Result<P, StableErrorEnvelope> {
    let value = if value.is_null() { Value::Object(Map::new()) } else { value };
    // A list would be taken for the fields of a record in their order.
    if !value.is_object() {
        return Err(invalid_field("params", NO_RECORD));
    }
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
    if body.trim_ascii_start().first() == Some(&b'[') {
        serde_json::from_slice::<serde::de::IgnoredAny>(body).map_err(|error| malformed(&error))?;
        return Err(invalid_field("body", NO_RECORD));
    }
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
        return Err(invalid_field("params", NO_RECORD));
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
    let message = in_our_words(&error.to_string());
    invalid_field(&field_of(path, &message), message)
}

/// What a decoder says, without what only it knows: the field says where, and a caller has no digits and target types.
fn in_our_words(message: &str) -> String {
    let place = message.rfind(" at line ").filter(|at| {
        let rest = message.get(at + " at line ".len()..).unwrap_or_default();
        rest.bytes().all(|byte| byte.is_ascii_digit() || b" column".contains(&byte))
    });
    let message = place.and_then(|at| message.get(..at)).unwrap_or(message);
    match message {
        "invalid digit found in string"
        | "cannot parse integer from empty string"
        | "number too large to fit in target type"
        | "number too small to fit in target type" => "expected a whole number in range".to_owned(),
        "provided string was not `true` or `false`" => "it must be true or false".to_owned(),
        other => other.to_owned(),
    }
}

/// What is not even JSON.
fn malformed(error: &serde_json::Error) -> StableErrorEnvelope {
    let mut envelope = StableErrorEnvelope::new(
        "body_malformed",
        ErrorCategory::Validation,
        format!("the body is not a valid JSON document: {error}"),
    )
    .hint("send one JSON object; nothing was done");
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
            .hint("fix the named field; nothing was done");
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
    fn a_decoder_is_not_quoted() {
        let told = |result: Result<ListRunsParams, StableErrorEnvelope>| result.unwrap_err().message;
        let id = "`session_id`: `x` is not a session id; expected 26 characters such as 01JC0Q6F7Z8G9H0J1K2M3N4P5Q";
        assert_eq!(told(query("session_id=x")), id);
        assert_eq!(told(body(br#"{"session_id":"x"}"#)), id);
        assert_eq!(told(value(serde_json::json!({"session_id": "x"}))), id);
        for number in ["x", "", "-1", "99999999999999999999"] {
            assert_eq!(told(query(&format!("limit={number}"))), "`limit`: expected a whole number in range");
        }
        for list in [told(body(b" []")), told(body(b"[7, null]"))] {
            assert_eq!(list, "`body`: it must be a JSON object, such as {}");
        }
        assert_eq!(told(value(serde_json::json!([]))), "`params`: it must be a JSON object, such as {}");
        assert_eq!(body::<ListRunsParams>(b"[").unwrap_err().code, "body_malformed");
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
