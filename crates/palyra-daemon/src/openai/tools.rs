//! Reading the client's own tools. Palyra's are always there; whether the model calls any is its own choice, so nothing can be forced.

use palyra_client::api::ClientToolParams;
use serde_json::{Value, json};

use super::fields::Fields;
use super::unsupported;
use crate::dispatch::{Refusal, Result};

/// How a function is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// In a record of its own, as chats do.
    Nested,
    /// Beside its type, as responses do.
    Flat,
}

/// Takes the tools of a request out of it.
pub(super) fn read(fields: &mut Fields, style: Style) -> Result<Vec<ClientToolParams>> {
    let mut tools = Vec::new();
    for (index, value) in fields.list("tools")?.into_iter().enumerate() {
        let mut tool = Fields::of(value, format!("tools[{index}]"))?;
        if tool.needed_text("type")? != "function" {
            return Err(unsupported(&tool.path("type"), "only functions are supported"));
        }
        tools.push(match style {
            Style::Flat => function(tool)?,
            Style::Nested => {
                let Some(inner) = tool.record("function")? else {
                    return Err(Refusal::field(&tool.path("function"), "it is missing"));
                };
                tool.end()?;
                function(inner)?
            }
        });
    }
    let has_tools = !tools.is_empty();
    let together = |value: &Value| !has_tools || *value == json!(true);
    fields.only_if("parallel_tool_calls", together, "the model may always make several calls in one turn")?;
    match fields.take("tool_choice") {
        None => {}
        Some(choice) if choice == json!("auto") => {}
        Some(choice) if choice == json!("none") => tools.clear(),
        Some(_) => return Err(unsupported("tool_choice", "only `auto` and `none` are supported")),
    }
    Ok(tools)
}

fn function(mut fields: Fields) -> Result<ClientToolParams> {
    let name = fields.needed_text("name")?;
    let description = fields.text("description")?.unwrap_or_default();
    let input_schema = match fields.take("parameters") {
        None => json!({ "type": "object", "properties": {} }),
        Some(schema) if schema.is_object() => schema,
        Some(_) => return Err(Refusal::field(&fields.path("parameters"), "it must be an object")),
    };
    // The schema is told to the model; nobody can promise that what it writes always fits.
    fields.pass_over(&["strict"]);
    fields.end()?;
    Ok(ClientToolParams { name, description, input_schema })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(value: Value, style: Style) -> std::result::Result<Vec<String>, String> {
        let mut fields = Fields::of(value, String::new()).unwrap();
        match read(&mut fields, style) {
            Ok(tools) => Ok(tools.into_iter().map(|tool| tool.name).collect()),
            Err(error) => Err(error.into_envelope().validation_errors[0].field.clone()),
        }
    }

    #[test]
    fn functions_are_taken_in_either_form_and_choices_are_kept_or_refused() {
        let nested = json!([{"type": "function", "function": {"name": "f", "strict": true, "parameters": {}}}]);
        let flat = json!([{"type": "function", "name": "g", "parameters": null}]);
        assert_eq!(tools(json!({"tools": nested}), Style::Nested), Ok(vec!["f".to_owned()]));
        assert_eq!(tools(json!({"tools": flat, "tool_choice": "auto"}), Style::Flat), Ok(vec!["g".to_owned()]));
        assert_eq!(tools(json!({"tools": flat, "tool_choice": "none"}), Style::Flat), Ok(vec![]));
        assert_eq!(tools(json!({"parallel_tool_calls": false}), Style::Flat), Ok(vec![]));
        for (value, field) in [
            (json!({"tools": flat, "tool_choice": "required"}), "tool_choice"),
            (json!({"tools": flat, "parallel_tool_calls": false}), "parallel_tool_calls"),
            (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
            (json!({"tools": [{"type": "function"}]}), "tools[0].name"),
            (json!({"tools": [{"type": "function", "name": "g", "parameters": 7}]}), "tools[0].parameters"),
            (json!({"tools": 7}), "tools"),
        ] {
            assert_eq!(tools(value.clone(), Style::Flat), Err(field.to_owned()), "{value}");
        }
    }
}
