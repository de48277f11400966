//! Reading JSON records field by field, with the path of each for errors. Fields that nobody took are refused by name.

use palyra_common::{ErrorCategory, FieldError, StableErrorEnvelope};
use serde_json::{Map, Value};

use super::unsupported;
use crate::dispatch::{Refusal, Result};

/// A record that is being read. A field that is `null` counts as absent, as OpenAI's clients mean it.
#[derive(Debug)]
pub(super) struct Fields {
    at: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The record that a body is.
    pub(super) fn of_body(body: &[u8]) -> Result<Self> {
        match serde_json::from_slice(body) {
            Ok(value) => Self::of(value, String::new()),
            Err(error) => Err(malformed(&error)),
        }
    }

    /// A record within a record.
    pub(super) fn of(value: Value, at: String) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self { at, map }),
            _ => Err(Refusal::field(if at.is_empty() { "body" } else { &at }, "it must be an object")),
        }
    }

    /// Where a field of it is.
    pub(super) fn path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    /// Takes a field out.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a text out.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Refusal::field(&self.path(name), "it must be a string")),
        }
    }

    /// Takes out a text that has to be there.
    pub(super) fn needed_text(&mut self, name: &str) -> Result<String> {
        match self.text(name)? {
            Some(text) => Ok(text),
            None => Err(Refusal::field(&self.path(name), "it is missing")),
        }
    }

    /// Takes out a yes or no; absent means no.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(Refusal::field(&self.path(name), "it must be true or false")),
        }
    }

    /// Takes out a count.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64().and_then(|number| u32::try_from(number).ok()) {
                Some(number) => Ok(Some(number)),
                None => Err(Refusal::field(&self.path(name), "expected a whole number ≥ 0")),
            },
        }
    }

    /// Takes a record out.
    pub(super) fn record(&mut self, name: &str) -> Result<Option<Self>> {
        let at = self.path(name);
        self.take(name).map(|value| Self::of(value, at)).transpose()
    }

    /// Takes a list out; absent means empty.
    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Value>> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(Refusal::field(&self.path(name), "it must be a list")),
        }
    }

    /// Takes fields out that change nothing here.
    pub(super) fn pass_over(&mut self, names: &[&str]) {
        for name in names {
            self.map.remove(*name);
        }
    }

    /// Refuses a field unless what it says is what happens anyway.
    pub(super) fn only_if(&mut self, name: &str, harmless: impl Fn(&Value) -> bool, why: &str) -> Result<()> {
        match self.take(name) {
            Some(value) if !harmless(&value) => Err(unsupported(&self.path(name), why)),
            _ => Ok(()),
        }
    }

    /// Refuses whatever nobody took.
    pub(super) fn end(self) -> Result<()> {
        match self.map.iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, _)) => {
                let shown: String = name.chars().take(64).collect();
                Err(unsupported(&self.path(&shown), "unknown parameter"))
            }
        }
    }
}

fn malformed(error: &serde_json::Error) -> Refusal {
    let message = format!("the body is not a valid JSON document: {error}");
    let mut envelope = StableErrorEnvelope::new("body_malformed", ErrorCategory::Validation, message)
        .hint("send one JSON object; nothing was done");
    envelope.validation_errors.push(FieldError {
        field: "body".to_owned(),
        code: "malformed".to_owned(),
        message: error.to_string(),
    });
    envelope.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
        let envelope = result.unwrap_err().into_envelope();
        format!("{} {}", envelope.code, envelope.validation_errors[0].field)
    }

    #[test]
    fn what_is_left_over_is_refused_and_null_is_nothing() {
        let mut fields = Fields::of(json!({"a": null, "b": 1, "c": null}), "x".to_owned()).unwrap();
        assert_eq!(fields.text("a").unwrap(), None);
        assert_eq!(refused(fields.text("b")), "request_invalid x.b");
        fields.end().unwrap();
        let fields = Fields::of(json!({"d": 1}), String::new()).unwrap();
        assert_eq!(refused(fields.end()), "unsupported_parameter d");
        assert_eq!(refused(Fields::of_body(b"{")), "body_malformed body");
        assert_eq!(refused(Fields::of_body(b"[]")), "request_invalid body");
        let mut fields = Fields::of(json!({"n": 2}), String::new()).unwrap();
        assert_eq!(refused(fields.only_if("n", |n| *n == json!(1), "one")), "unsupported_parameter n");
    }
}
