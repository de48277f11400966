//! The reference page of the built-in tools, written from their declarations so that it cannot drift from them.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{Registry, ToolDeclaration, ToolError};

/// The reference page as Markdown: the tools of this crate and others that are shipped with them, by name.
pub fn tool_reference(others: &[ToolDeclaration]) -> Result<String, ToolError> {
    let registry = Registry::builtin()?;
    let mut page = String::from("# Built-in tools\n\nGenerated from their declarations; do not edit.\n");
    let mut tools: Vec<&ToolDeclaration> = registry.declarations().chain(others).collect();
    tools.sort_by(|one, other| one.name.as_str().cmp(other.name.as_str()));
    for tool in tools {
        section(tool, &mut page);
    }
    Ok(page)
}

fn section(tool: &ToolDeclaration, page: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## `{}`\n\n{}\n\n", tool.name, in_markdown(&tool.description));
    let _ = writeln!(
        page,
        "Effect: {}. Concurrency: {}. After a crash: {}. Risk: {}. Output: {}, {}. Time limit: {} s.\n",
        tool.scope,
        tool.concurrency,
        tool.repeatability,
        tool.risk,
        tool.output.integrity,
        tool.output.confidentiality,
        tool.timeout.as_secs()
    );
    page.push_str("| argument | type | required | sink | meaning |\n|---|---|---|---|---|\n");
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let required = tool.input_schema.get("required").and_then(Value::as_array);
        let required = required.is_some_and(|names| names.iter().any(|required| required == name));
        let sinks: Vec<_> =
            tool.sinks.iter().filter(|sink| sink.argument == *name).map(|sink| sink.kind.as_str()).collect();
        let meaning = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} | {} | {} |",
            type_name(property),
            if required { "yes" } else { "no" },
            if sinks.is_empty() { "–".to_owned() } else { sinks.join(", ") },
            meaning.replace('\n', " ").replace('|', "\\|")
        );
    }
}

/// Prose as it is; the lines of a notation (those from the first `***` on) as a code block.
fn in_markdown(description: &str) -> String {
    match description.find("\n***") {
        Some(at) => {
            let (prose, notation) = description.split_at(at);
            format!("{prose}\n\n```text{notation}\n```")
        }
        None => description.to_owned(),
    }
}

fn type_name(property: &Value) -> String {
    if let Some(values) = enumeration(property) {
        return values.join(" or ");
    }
    match property.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect::<Vec<_>>().join(" or ")
        }
        _ => {
            let options = property.get("anyOf").and_then(Value::as_array);
            let names = options.into_iter().flatten().map(type_name).filter(|name| name != "null");
            names.collect::<Vec<_>>().join(" or ")
        }
    }
}

fn enumeration(property: &Value) -> Option<Vec<String>> {
    let values = property.get("enum")?.as_array()?;
    Some(values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`")).collect())
}
