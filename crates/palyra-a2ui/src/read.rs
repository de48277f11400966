//! Reading components out of JSON, strictly: what is not known is a problem, and each problem says where it is.
//!
//! `components` has one function for each type; here is what they share: records whose unknown fields are found, lists with bounds, ids that
//! stand once, and the counts over the whole document.

mod components;
mod fields;

use std::collections::BTreeSet;

use palyra_common::FieldError;
use serde_json::{Map, Value};

use crate::document::problem;
use crate::limits::{MAX_LINE, MAX_NUMBER, MAX_PROBLEMS};
use crate::safe::is_plain_name;

/// What is kept while one document is read.
#[derive(Default)]
pub(crate) struct Reader {
    problems: Vec<FieldError>,
    ids: BTreeSet<String>,
    components: usize,
    cells: usize,
}

impl Reader {
    /// Notes a problem; after some, nobody needs more.
    pub(crate) fn problem(&mut self, path: &str, code: &str, message: impl Into<String>) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem(path, code, message));
        }
    }

    /// Everything that is wrong.
    pub(crate) fn finish(self) -> Vec<FieldError> {
        self.problems
    }

    /// Notes an id of a component; each stands once.
    fn note_id(&mut self, id: &str, path: &str) {
        if !self.ids.insert(id.to_owned()) {
            self.problem(&format!("{path}/id"), "duplicate_id", format!("is `{id}`, which is used twice"));
        }
    }
}

/// A JSON object that is being read.
pub(crate) struct Record<'a> {
    fields: &'a Map<String, Value>,
    path: &'a str,
    known: Vec<&'static str>,
}

impl<'a> Record<'a> {
    /// Opens an object.
    pub(crate) fn open(value: &'a Value, path: &'a str, reader: &mut Reader) -> Option<Self> {
        match value {
            Value::Object(fields) => Some(Self { fields, path, known: Vec::new() }),
            _ => {
                reader.problem(path, "not_an_object", "is not an object");
                None
            }
        }
    }

    /// A field, if it is there. `null` is not there.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// Complains about fields that nobody took.
    pub(crate) fn close(self, reader: &mut Reader) {
        for name in self.fields.keys() {
            if !self.known.contains(&name.as_str()) {
                reader.problem(
                    &format!("{}/{}", self.path, pointer_part(name)),
                    "unknown_field",
                    "is not a known field",
                );
            }
        }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// A text of at most so many bytes.
    fn text(&mut self, name: &'static str, most: usize, reader: &mut Reader) -> Option<String> {
        let found = self.optional_text(name, most, reader);
        if found.is_none() && self.fields.get(name).is_none_or(Value::is_null) {
            reader.problem(&self.at(name), "missing", "is missing");
        }
        found
    }

    fn optional_text(&mut self, name: &'static str, most: usize, reader: &mut Reader) -> Option<String> {
        let value = self.take(name)?;
        bounded(value, &self.at(name), most, reader)
    }

    fn optional_line(&mut self, name: &'static str, reader: &mut Reader) -> Option<String> {
        self.optional_text(name, MAX_LINE, reader)
    }

    fn line(&mut self, name: &'static str, reader: &mut Reader) -> Option<String> {
        self.text(name, MAX_LINE, reader)
    }

    /// A plain name.
    fn name(&mut self, name: &'static str, reader: &mut Reader) -> Option<String> {
        let found = self.text(name, MAX_LINE, reader)?;
        if is_plain_name(&found) {
            return Some(found);
        }
        let message = "must be 1 to 64 lower-case letters, digits, `_` and `-`";
        reader.problem(&self.at(name), "not_a_name", message);
        None
    }

    /// The id of a component that need not have one.
    fn optional_id(&mut self, reader: &mut Reader) -> Option<String> {
        if self.fields.get("id").is_none_or(Value::is_null) {
            self.known.push("id");
            return None;
        }
        self.id(reader)
    }

    /// The id of a component that has to have one.
    fn id(&mut self, reader: &mut Reader) -> Option<String> {
        let id = self.name("id", reader)?;
        reader.note_id(&id, self.path);
        Some(id)
    }

    /// One of several words; absent means the first.
    fn choice<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)], reader: &mut Reader) -> Option<T> {
        let Some(value) = self.take(name) else { return words.first().map(|(_, meaning)| *meaning) };
        let found = words.iter().find(|(word, _)| value.as_str() == Some(*word)).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            reader.problem(&self.at(name), "not_a_choice", format!("is not one of {}", known.join(", ")));
        }
        found
    }

    fn flag(&mut self, name: &'static str, reader: &mut Reader) -> Option<bool> {
        match self.take(name) {
            None => Some(false),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(_) => {
                reader.problem(&self.at(name), "not_a_flag", "must be true or false");
                None
            }
        }
    }

    fn optional_number(&mut self, name: &'static str, reader: &mut Reader) -> Option<f64> {
        let value = self.take(name)?;
        number(value, &self.at(name), reader)
    }

    /// A list of at most so many.
    fn list(&mut self, name: &'static str, most: usize, reader: &mut Reader) -> Option<&'a [Value]> {
        match self.take(name) {
            Some(Value::Array(items)) if items.len() <= most => Some(items),
            Some(Value::Array(_)) => {
                reader.problem(&self.at(name), "too_many", format!("has more than {most} entries"));
                None
            }
            Some(_) => {
                reader.problem(&self.at(name), "not_a_list", "is not a list");
                None
            }
            None => {
                reader.problem(&self.at(name), "missing", "is missing");
                None
            }
        }
    }
}

/// A text of at most so many bytes.
fn bounded(value: &Value, path: &str, most: usize, reader: &mut Reader) -> Option<String> {
    match value {
        Value::String(text) if text.len() <= most => Some(text.clone()),
        Value::String(_) => {
            reader.problem(path, "too_long", format!("has more than {most} bytes"));
            None
        }
        _ => {
            reader.problem(path, "not_a_text", "is not a string");
            None
        }
    }
}

fn number(value: &Value, path: &str, reader: &mut Reader) -> Option<f64> {
    let found = value.as_f64().filter(|number| number.is_finite() && number.abs() <= MAX_NUMBER);
    if found.is_none() {
        reader.problem(path, "not_a_number", "is not a number, or is out of range");
    }
    found
}

/// A field's name inside a JSON pointer. Names come from the document, so they are cut short.
fn pointer_part(name: &str) -> String {
    name.chars().take(64).collect::<String>().replace('~', "~0").replace('/', "~1")
}
