//! Answers of a given shape, as the input of a tool.
//!
//! Newer models take a JSON Schema for their answer where it can be closed. For any other schema, and for models that take none, there is a
//! tool that takes the answer as its input.

use serde_json::{Value, json};

use crate::message::ToolSpec;
use crate::schema::{SchemaDialect, tool_input};

/// The tool that takes an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerTool {
    /// Its name on the wire.
    pub(super) name: String,
    /// How the answer lies in its input.
    pub(super) holds: Holds,
}

/// How an answer lies in a tool's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The input is the answer.
    Answer,
    /// The input is an object whose field `answer` is it: tools take objects only.
    Wrapped,
}

impl AnswerTool {
    /// A tool for an answer of this name and shape, with a name that no other tool has.
    pub(super) fn new(name: &str, schema: &Value, taken: &[String]) -> Self {
        let clean: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(48).collect();
        let wanted = format!("give_{clean}");
        let others = (2_usize..).map(|n| format!("{wanted}_{n}"));
        let free = std::iter::once(wanted.clone()).chain(others).find(|name| !taken.contains(name));
        let holds =
            if schema.get("type").is_some_and(|kind| kind == "object") { Holds::Answer } else { Holds::Wrapped };
        Self { name: free.unwrap_or(wanted), holds }
    }

    /// The tool as it is declared.
    pub(super) fn declaration(&self, schema: &Value, dialect: SchemaDialect) -> Value {
        let input = match self.holds {
            Holds::Answer => schema.clone(),
            Holds::Wrapped => json!({ "type": "object", "properties": { "answer": schema }, "required": ["answer"] }),
        };
        let description = "Give the answer. Call this once, when the answer is complete; its input is the answer.";
        let tool =
            ToolSpec { name: self.name.clone(), description: description.to_owned(), input_schema: input.into() };
        json!({ "name": tool.name, "description": tool.description, "input_schema": tool_input(&tool, dialect).schema })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_has_a_name_of_its_own_and_takes_an_object() {
        let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(AnswerTool::new("judge ment", &object, &[]).name, "give_judge_ment");
        let tool = AnswerTool::new("x", &object, &["give_x".into(), "give_x_2".into()]);
        assert_eq!((tool.name.as_str(), tool.holds), ("give_x_3", Holds::Answer));
        assert_eq!(tool.declaration(&object, SchemaDialect::Portable)["input_schema"], object);
        let list = json!({"type": "array", "items": {"type": "string"}});
        let tool = AnswerTool::new("x", &list, &[]);
        assert_eq!(tool.holds, Holds::Wrapped);
        assert_eq!(tool.declaration(&list, SchemaDialect::Portable)["input_schema"]["properties"]["answer"], list);
    }
}
