//! RFC 6902 patches, applied to a version they were made for and checked as if what they lead to were new.
//!
//! A patch reaches the tree alone: every path begins with `/root`, so that neither the version nor the surface changes under a viewer. A copy can
//! double a document, and 512 of them could fill the memory of anything; so the size is looked at after each one. What would nest too deeply is
//! refused before it does, because everything that walks the result recurses.

use json_patch::{Patch, PatchOperation};
use palyra_common::FieldError;
use serde_json::{Map, Value};

use crate::document::{Document, problem};
use crate::error::A2uiError;
use crate::limits::{MAX_DOCUMENT_BYTES, MAX_NESTING, MAX_OPERATIONS, MAX_PATCH_BYTES};

/// The document after the patch, one version on.
///
/// # Errors
/// When the document is at another version, the patch is none, it does not apply, or what it leads to is no document.
pub fn apply(document: &Document, base_version: u64, patch: &Value) -> Result<Document, A2uiError> {
    if base_version != document.version() {
        return Err(A2uiError::Version { expected: base_version, actual: document.version() });
    }
    let mut value = document.patchable();
    run(&mut value, patch)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("surface".to_owned(), document.surface().into());
        fields.insert("version".to_owned(), base_version.saturating_add(1).into());
    }
    Document::parse(&value).map_err(|error| match error {
        A2uiError::Document(problems) => A2uiError::Patch(problems),
        other => other,
    })
}

/// What a patch that was checked and recorded before makes of a document that was, without checking either again: rules that became stricter
/// since then do not change what happened.
///
/// # Errors
/// When it does not apply, which a recorded patch never does.
pub fn apply_recorded(document: &Value, patch: &Value) -> Result<Value, A2uiError> {
    let mut value =
        Value::Object(Map::from_iter([("root".to_owned(), document.get("root").cloned().unwrap_or_default())]));
    run(&mut value, patch)?;
    let mut after = document.clone();
    if let Value::Object(fields) = &mut after {
        let version = fields.get("version").and_then(Value::as_u64).unwrap_or_default();
        fields.insert("version".to_owned(), version.saturating_add(1).into());
        fields.insert("root".to_owned(), value.get("root").cloned().unwrap_or_default());
    }
    Ok(after)
}

fn run(value: &mut Value, patch: &Value) -> Result<(), A2uiError> {
    for (index, operation) in operations(patch)?.into_iter().enumerate() {
        let grows = matches!(operation, PatchOperation::Copy(_));
        if nests_too_deeply(value, &operation) {
            let message = format!("nests the document more than {MAX_NESTING} levels deep");
            return Err(one(format!("/{index}"), "too_deep", message));
        }
        json_patch::patch(value, &Patch(vec![operation]))
            .map_err(|error| one(format!("/{index}"), "does_not_apply", error.kind.to_string()))?;
        if grows && value.to_string().len() > MAX_DOCUMENT_BYTES {
            let message = format!("makes the document larger than {} KiB", MAX_DOCUMENT_BYTES / 1024);
            return Err(one(format!("/{index}"), "too_large", message));
        }
    }
    Ok(())
}

/// Whether what an operation puts somewhere reaches below the deepest level there may be.
fn nests_too_deeply(value: &Value, operation: &PatchOperation) -> bool {
    let (path, put) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Copy(copy) => (&copy.path, value.pointer(copy.from.as_str())),
        PatchOperation::Move(moved) => (&moved.path, value.pointer(moved.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return false,
    };
    put.is_some_and(|put| deeper_than(put, MAX_NESTING.saturating_sub(path.count())))
}

/// Whether a value has more levels than so many. Looks no deeper than that.
fn deeper_than(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| deeper_than(item, below)),
        Value::Object(fields) => fields.values().any(|field| deeper_than(field, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn operations(patch: &Value) -> Result<Vec<PatchOperation>, A2uiError> {
    let Value::Array(given) = patch else { return Err(one("", "not_a_list", "is not a list of operations")) };
    if given.is_empty() || given.len() > MAX_OPERATIONS {
        return Err(one("", "too_many", format!("has {} operations, not 1 to {MAX_OPERATIONS}", given.len())));
    }
    if patch.to_string().len() > MAX_PATCH_BYTES {
        return Err(one("", "too_large", format!("has more than {} KiB", MAX_PATCH_BYTES / 1024)));
    }
    let mut problems = Vec::new();
    let mut read = Vec::with_capacity(given.len());
    for (index, operation) in given.iter().enumerate() {
        match one_operation(operation, index) {
            Ok(operation) => read.push(operation),
            Err(problem) => problems.push(problem),
        }
    }
    problems.truncate(crate::limits::MAX_PROBLEMS);
    if problems.is_empty() { Ok(read) } else { Err(A2uiError::Patch(problems)) }
}

fn one_operation(operation: &Value, index: usize) -> Result<PatchOperation, FieldError> {
    let at = |field: &str| format!("/{index}/{field}");
    let Value::Object(fields) = operation else {
        return Err(problem(format!("/{index}"), "not_an_object", "is not an object"));
    };
    let takes: &[&str] = match fields.get("op").and_then(Value::as_str) {
        Some("add" | "replace" | "test") => &["op", "path", "value"],
        Some("remove") => &["op", "path"],
        Some("move" | "copy") => &["op", "path", "from"],
        _ => {
            return Err(problem(at("op"), "unknown_operation", "is not one of add, remove, replace, move, copy, test"));
        }
    };
    if let Some(unknown) = fields.keys().find(|name| !takes.contains(&name.as_str())) {
        let shown: String = unknown.chars().take(64).collect();
        return Err(problem(at(&shown), "unknown_field", "is not a known field"));
    }
    for name in takes.iter().filter(|name| matches!(**name, "path" | "from")) {
        let path = fields.get(*name).and_then(Value::as_str).unwrap_or_default();
        if path != "/root" && !path.starts_with("/root/") {
            return Err(problem(at(name), "outside_the_tree", "does not begin with `/root`"));
        }
    }
    if takes.contains(&"value") && !fields.contains_key("value") {
        return Err(problem(at("value"), "missing", "is missing"));
    }
    serde_json::from_value(operation.clone())
        .map_err(|error| problem(format!("/{index}"), "not_an_operation", error.to_string()))
}

fn one(field: impl Into<String>, code: &str, message: impl Into<String>) -> A2uiError {
    A2uiError::Patch(vec![problem(field, code, message)])
}
