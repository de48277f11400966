//! The JSON Schema of each kind's answer. It is sent to the model and is what the answer is checked against.

use palyra_models::OutputShape;
use serde_json::{Value, json};

use super::input::AuxiliaryInput;

/// Most characters of an explanation.
const MAX_GROUNDS: usize = 1_200;
/// Most characters of one observation, quotation or missing thing.
const MAX_LINE: usize = 400;
/// Most observations or missing things.
const MAX_LINES: usize = 16;

impl AuxiliaryInput {
    /// What the answer has to look like.
    #[must_use]
    pub fn output_shape(&self) -> OutputShape {
        match self.schema() {
            Some(schema) => OutputShape::Json { name: self.kind().contract().output.as_str().to_owned(), schema },
            None => OutputShape::Text,
        }
    }

    /// The schema of the answer, if it is JSON.
    pub(super) fn schema(&self) -> Option<Value> {
        match self {
            Self::Summary(_) => None,
            Self::RecallSearch(input) => {
                let ids: Vec<String> = input.named().map(|(name, _)| name).collect();
                let entry = closed(&json!({
                    "id": {"type": "string", "enum": ids},
                    "score": unit(),
                    "why": text(0, MAX_LINE),
                }));
                let list = json!({"type": "array", "items": entry, "maxItems": input.candidates.len()});
                Some(closed(&json!({"evidence": list})))
            }
            Self::Classification(input) => Some(closed(&json!({"label": {"type": "string", "enum": input.labels}}))),
            Self::Extraction(input) => Some(close(input.schema.clone())),
            Self::ObjectiveJudge(_) => Some(closed(&json!({
                "verdict": {"type": "string", "enum": ["met", "not_met", "unclear"]},
                "confidence": unit(),
                "grounds": text(1, MAX_GROUNDS),
                "missing": lines(),
            }))),
            Self::Vision(_) => Some(closed(&json!({
                "observations": lines(),
                "answer": text(1, MAX_GROUNDS),
                "confidence": unit(),
            }))),
        }
    }
}

/// An object with exactly these properties.
fn closed(properties: &Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(|map| map.keys()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// The same schema, with every object in it closed in so many words.
fn close(mut schema: Value) -> Value {
    if let Value::Object(rules) = &mut schema {
        for (keyword, value) in rules.iter_mut() {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for property in properties.values_mut() {
                        *property = close(property.take());
                    }
                }
                ("items", items) => *items = close(items.take()),
                ("anyOf", Value::Array(options)) => {
                    for option in options {
                        *option = close(option.take());
                    }
                }
                _ => {}
            }
        }
        if rules.contains_key("properties") {
            rules.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    schema
}

fn unit() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1})
}

fn text(least: usize, most: usize) -> Value {
    json!({"type": "string", "minLength": least, "maxLength": most})
}

fn lines() -> Value {
    json!({"type": "array", "items": text(1, MAX_LINE), "maxItems": MAX_LINES})
}
