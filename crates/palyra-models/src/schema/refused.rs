//! Which tool a server means when it refuses a request over a schema.
//!
//! Vendors name the function, or its place in the list; llama.cpp gives a pointer into a schema and leaves open whose. Whatever the message
//! holds is looked up in what was sent.

use serde_json::Value;

use super::SchemaDialect;
use super::declared::{DeclaredTool, declared};
use crate::error::ModelError;
use crate::request::ModelRequest;
use crate::wire::ToolNames;

/// Most tools that are named where the message fits several.
const MOST_NAMED: usize = 3;
/// What is said before the number of a tool in the list.
const PLACES: &[&str] = &["tools.", "tools[", "function_declarations[", "functionDeclarations["];

/// The refusal with the tools that it is about, if it is about a tool.
pub(crate) fn name_refused_tools(
    refusal: ModelError,
    request: &ModelRequest,
    names: &ToolNames,
    dialect: SchemaDialect,
) -> ModelError {
    if !matches!(refusal.status, Some(400 | 422)) || request.tools.is_empty() {
        return refusal;
    }
    let lower = refusal.message.to_ascii_lowercase();
    if !["schema", "function", "tool", "grammar", "parameters"].iter().any(|word| lower.contains(word)) {
        return refusal;
    }
    let sent = declared(request, names, dialect);
    let found = by_name(&refusal.message, &sent)
        .or_else(|| by_place(&refusal.message, &sent))
        .or_else(|| by_pointer(&refusal.message, &sent))
        .unwrap_or_default();
    let tools: Vec<String> =
        found.into_iter().filter_map(|at| request.tools.get(at)).map(|tool| tool.name.clone()).collect();
    if tools.len() > MOST_NAMED { refusal } else { refusal.about_tools(tools) }
}

/// The tools whose names stand in the message; of one that is part of another, the longer.
fn by_name(message: &str, sent: &[DeclaredTool<'_>]) -> Option<Vec<usize>> {
    let mut named: Vec<(usize, &str)> = sent
        .iter()
        .enumerate()
        .map(|(at, tool)| (at, tool.name.as_str()))
        .filter(|(_, name)| whole_word(message, name))
        .collect();
    let longer: Vec<&str> = named.iter().map(|(_, name)| *name).collect();
    named.retain(|(_, name)| !longer.iter().any(|other| other.len() > name.len() && other.contains(name)));
    (!named.is_empty()).then(|| named.into_iter().map(|(at, _)| at).collect())
}

fn whole_word(text: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

/// The tool at a place in the list, such as `tools.3.custom.input_schema`.
fn by_place(message: &str, sent: &[DeclaredTool<'_>]) -> Option<Vec<usize>> {
    let number = |mark: &&str| {
        let from = message.rfind(*mark)? + mark.len();
        let digits: String = message.get(from..)?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    };
    // The innermost list is that of functions; the last mark that fits says its place.
    let at = PLACES.iter().rev().find_map(number)?;
    (at < sent.len()).then(|| vec![at])
}

/// The tools whose schemas have something where a pointer such as `#/properties/patch/items` points.
fn by_pointer(message: &str, sent: &[DeclaredTool<'_>]) -> Option<Vec<usize>> {
    let from = message.find("#/")?;
    let pointer: String = message.get(from + 1..)?.chars().take_while(|c| !c.is_whitespace()).collect();
    let pointer = pointer.trim_end_matches([':', ',', '.', '"', '\'', '`']);
    let has = |schema: &Value| schema.pointer(pointer).is_some();
    let found: Vec<usize> = sent.iter().enumerate().filter(|(_, tool)| has(&tool.schema)).map(|(at, _)| at).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use palyra_common::RunId;
    use serde_json::json;

    use super::*;
    use crate::error::ModelErrorClass;
    use crate::message::ToolSpec;
    use crate::request::Purpose;

    fn request() -> ModelRequest {
        let tool = |name: &str, field: &str| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object", "properties": {field: {"type": "array", "items": {}}}}).into(),
        };
        let tools = [tool("palyra.fs.read", "path"), tool("palyra.fs.read_all", "path"), tool("mcp.box.put", "patch")];
        ModelRequest { tools: tools.into(), ..ModelRequest::new(RunId::from_u128(1), 1, Purpose::Turn, vec![]) }
    }

    #[test]
    fn the_tool_is_found_by_whatever_the_server_says() {
        let request = request();
        let names = ToolNames::for_request(&request);
        let table: [(&str, &[&str]); 8] = [
            ("Invalid schema for function 'palyra__fs__read_all': none", &["palyra.fs.read_all"]),
            ("Invalid schema for function 'palyra__fs__read': none", &["palyra.fs.read"]),
            ("tools.2.custom.input_schema: JSON schema is invalid", &["mcp.box.put"]),
            ("tools[0].function_declarations[1].parameters: unknown", &["palyra.fs.read_all"]),
            ("JSON schema error at #/properties/patch/items: schema must be an object", &["mcp.box.put"]),
            ("JSON schema error at #/properties/path: no", &["palyra.fs.read", "palyra.fs.read_all"]),
            ("the schema is bad", &[]),
            ("temperature is too high", &[]),
        ];
        for (message, expected) in table {
            let refusal = ModelError::new(ModelErrorClass::Permanent, message).status(400);
            let named = name_refused_tools(refusal, &request, &names, SchemaDialect::Portable);
            assert_eq!(named.tools, expected, "{message}");
        }
        let other = ModelError::new(ModelErrorClass::Transient, "palyra__fs__read schema").status(500);
        assert!(name_refused_tools(other, &request, &names, SchemaDialect::Portable).tools.is_empty());
    }
}
