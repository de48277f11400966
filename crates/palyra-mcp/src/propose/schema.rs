//! Looking into JSON Schemas that somebody else wrote: references, alternatives, optional values, all to a bounded depth.

use serde_json::Value;

/// How deep references and alternatives are followed. A schema that goes deeper is treated as unknown.
const MAX_DEPTH: usize = 8;

/// How many alternatives are told apart. Alternatives of alternatives multiply; the rest is treated as unknown.
const MAX_SHAPES: usize = 64;

/// What a schema allows, as far as the rules care.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shape<'a> {
    /// One of a fixed list of values.
    Closed,
    /// True or false, or nothing.
    Boolean,
    /// A number.
    Number,
    /// A text, with its format if it has one.
    Text(Option<&'a str>),
    /// A list of what this schema allows.
    List(&'a Value),
    /// An object with these named fields.
    Record(&'a serde_json::Map<String, Value>),
    /// An object whose fields are not named; each is what this schema allows.
    Dictionary(&'a Value),
    /// Anything.
    Unknown,
}

/// Everything that a schema allows, alternatives side by side.
pub(super) fn shapes<'a>(schema: &'a Value, root: &'a Value) -> Vec<Shape<'a>> {
    let mut found = Vec::new();
    collect(schema, root, 0, &mut found);
    found
}

fn collect<'a>(schema: &'a Value, root: &'a Value, depth: usize, found: &mut Vec<Shape<'a>>) {
    if depth > MAX_DEPTH || found.len() >= MAX_SHAPES {
        found.push(Shape::Unknown);
        return;
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        match reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)) {
            Some(target) => collect(target, root, depth + 1, found),
            None => found.push(Shape::Unknown),
        }
        return;
    }
    let alternatives = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)?.as_array());
    let mut has_alternatives = false;
    for alternative in alternatives.flatten() {
        has_alternatives = true;
        if found.len() > MAX_SHAPES {
            return;
        }
        collect(alternative, root, depth + 1, found);
    }
    if has_alternatives {
        return;
    }
    if schema.get("enum").is_some() || schema.get("const").is_some() {
        found.push(Shape::Closed);
        return;
    }
    match schema.get("type") {
        Some(Value::String(kind)) => found.push(shape(kind, schema)),
        Some(Value::Array(kinds)) => {
            found.extend(kinds.iter().filter_map(Value::as_str).map(|kind| shape(kind, schema)));
        }
        _ if schema.get("properties").is_some() => found.push(shape("object", schema)),
        _ if schema.get("items").is_some() => found.push(shape("array", schema)),
        _ => found.push(Shape::Unknown),
    }
}

fn shape<'a>(kind: &str, schema: &'a Value) -> Shape<'a> {
    match kind {
        "boolean" | "null" => Shape::Boolean,
        "integer" | "number" => Shape::Number,
        "string" => Shape::Text(schema.get("format").and_then(Value::as_str)),
        "array" => schema.get("items").map_or(Shape::Unknown, Shape::List),
        "object" => match schema.get("properties").and_then(Value::as_object) {
            Some(fields) if !fields.is_empty() => Shape::Record(fields),
            _ => schema
                .get("additionalProperties")
                .filter(|inner| inner.is_object())
                .map_or(Shape::Unknown, Shape::Dictionary),
        },
        _ => Shape::Unknown,
    }
}
