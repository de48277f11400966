//! Documents: a surface, a version and one tree of components.

use palyra_common::FieldError;
use serde_json::{Map, Value, json};

use crate::component::{Approval, Component, Form};
use crate::error::A2uiError;
use crate::limits::MAX_DOCUMENT_BYTES;
use crate::read::{Reader, Record};
use crate::safe::is_plain_name;

/// Where a document is shown if it does not say so.
const MAIN: &str = "main";

/// A document that was checked.
///
/// INVARIANT: `root` is what `tree` reads as; both are only set together, by [`Document::parse`].
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    surface: String,
    version: u64,
    tree: Value,
    root: Component,
}

impl Document {
    /// Reads `{"surface": …, "version": …, "root": …}`. The surface may be left out; so may the version, which is then 1.
    ///
    /// # Errors
    /// Every problem with its place in the document, up to a bound.
    pub fn parse(value: &Value) -> Result<Self, A2uiError> {
        let mut reader = Reader::default();
        let read = Self::read(value, &mut reader);
        match (read, reader.finish()) {
            (Some(document), problems) if problems.is_empty() => Ok(document),
            (_, problems) => Err(A2uiError::Document(problems)),
        }
    }

    fn read(value: &Value, reader: &mut Reader) -> Option<Self> {
        // Before anything is walked: what is too large is not looked at.
        if value.to_string().len() > MAX_DOCUMENT_BYTES {
            reader.problem("", "too_large", format!("has more than {} KiB", MAX_DOCUMENT_BYTES / 1024));
            return None;
        }
        let mut record = Record::open(value, "", reader)?;
        let surface = match record.take("surface") {
            None => MAIN.to_owned(),
            Some(Value::String(name)) if is_plain_name(name) => name.clone(),
            Some(_) => {
                reader.problem("/surface", "not_a_name", "is not a plain name");
                return None;
            }
        };
        let version = match record.take("version") {
            None => 1,
            Some(value) => match value.as_u64().filter(|version| *version > 0) {
                Some(version) => version,
                None => {
                    reader.problem("/version", "not_a_version", "is not a whole number of at least 1");
                    return None;
                }
            },
        };
        let tree = record.take("root").cloned();
        record.close(reader);
        let Some(tree) = tree else {
            reader.problem("/root", "missing", "is missing");
            return None;
        };
        let root = reader.component(&tree, "/root", 1)?;
        Some(Self { surface, version, tree, root })
    }

    /// The same as another version.
    #[must_use]
    pub fn at_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// The place it is shown at.
    #[must_use]
    pub fn surface(&self) -> &str {
        &self.surface
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The tree.
    #[must_use]
    pub fn root(&self) -> &Component {
        &self.root
    }

    /// The document as JSON.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({"surface": self.surface, "version": self.version, "root": self.tree})
    }

    /// What patches are applied to.
    pub(crate) fn patchable(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("root".to_owned(), self.tree.clone());
        Value::Object(fields)
    }

    /// The form of this id.
    #[must_use]
    pub fn form(&self, id: &str) -> Option<&Form> {
        match self.component(id) {
            Some(Component::Form(form)) => Some(form),
            _ => None,
        }
    }

    /// The component of this id.
    #[must_use]
    pub fn component(&self, id: &str) -> Option<&Component> {
        let mut found = None;
        self.root.each(&mut |component| {
            if component.id() == Some(id) {
                found = Some(component);
            }
        });
        found
    }

    /// The cards that show questions.
    #[must_use]
    pub fn approvals(&self) -> Vec<&Approval> {
        let mut found = Vec::new();
        self.root.each(&mut |component| {
            if let Component::Approval(approval) = component {
                found.push(approval);
            }
        });
        found
    }
}

/// One problem.
pub(crate) fn problem(field: impl Into<String>, code: &str, message: impl Into<String>) -> FieldError {
    let field = field.into();
    let field = if field.is_empty() { "/".to_owned() } else { field };
    FieldError { field, code: code.to_owned(), message: message.into() }
}
