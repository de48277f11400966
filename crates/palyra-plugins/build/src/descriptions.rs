//! The list of tools that a plugin describes itself with, written from `skill.toml` in the language of the skill.
//!
//! A plugin and its manifest have to say the same. So the author says it once, in the manifest, and this is generated before each build.

use std::fmt::Write;

use crate::Language;
use crate::manifest::{SkillSummary, ToolSummary};

/// What the generated files say about themselves.
const ORIGIN: &str = "Written by `palyra skills build` from skill.toml; edits are lost.";

/// The file that lists the tools, with its path in the skill's folder. Text modules have none: they describe nothing.
pub(crate) fn tool_list(language: Language, skill: &SkillSummary) -> Option<(&'static str, String)> {
    if skill.tools.is_empty() {
        return None;
    }
    match language {
        Language::Rust => Some(("src/tools.rs", rust(skill))),
        Language::JavaScript => Some(("src/tools.js", javascript(skill))),
        Language::Python => Some(("src/tools.py", python(skill))),
        Language::C => Some(("src/tools.h", c(skill))),
        Language::Wat => None,
    }
}

fn fields(tool: &ToolSummary) -> [(&'static str, &str); 5] {
    [
        ("id", &tool.id),
        ("name", &tool.name),
        ("description", &tool.description),
        ("input_schema", &tool.input_schema),
        ("output_schema", &tool.output_schema),
    ]
}

fn rust(skill: &SkillSummary) -> String {
    let mut text = format!("//! {ORIGIN}\n\nuse palyra_plugins_sdk::Tool;\n\n/// The tools of `{}`.\n", skill.skill_id);
    text.push_str("#[rustfmt::skip]\npub const TOOLS: &[Tool] = &[\n");
    for tool in &skill.tools {
        text.push_str("    Tool {\n");
        for (name, value) in fields(tool) {
            let _ = writeln!(text, "        {name}: {value:?},");
        }
        text.push_str("    },\n");
    }
    text.push_str("];\n");
    text
}

fn javascript(skill: &SkillSummary) -> String {
    let mut text = format!("// {ORIGIN}\n\nexport const tools = [\n");
    for tool in &skill.tools {
        text.push_str("  {\n");
        for (name, value) in fields(tool) {
            let name = match name {
                "input_schema" => "inputSchema",
                "output_schema" => "outputSchema",
                other => other,
            };
            let _ = writeln!(text, "    {name}: {},", quoted(value));
        }
        text.push_str("  },\n");
    }
    text.push_str("];\n");
    text
}

fn python(skill: &SkillSummary) -> String {
    let mut text = format!("# {ORIGIN}\n\nTOOLS = [\n");
    for tool in &skill.tools {
        text.push_str("    {\n");
        for (name, value) in fields(tool) {
            let _ = writeln!(text, "        {}: {},", quoted(name), quoted(value));
        }
        text.push_str("    },\n");
    }
    text.push_str("]\n");
    text
}

fn c(skill: &SkillSummary) -> String {
    let mut text = format!("// {ORIGIN}\n\n#include \"palyra.h\"\n\nstatic const palyra_tool tools[] = {{\n");
    for tool in &skill.tools {
        text.push_str("  {\n");
        for (name, value) in fields(tool) {
            let _ = writeln!(text, "    .{name} = {},", c_quoted(value));
        }
        text.push_str("  },\n");
    }
    text.push_str("};\n");
    text
}

/// A JSON string of ASCII alone, which JavaScript and Python read as the same text.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for unit in value.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ (b'"' | b'\\')) => {
                text.push('\\');
                text.push(char::from(byte));
            }
            Ok(byte @ b' '..=b'~') => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text.push('"');
    text
}

/// A C string in three-digit octal escapes, which no following digit can become part of.
fn c_quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for byte in value.bytes() {
        match byte {
            // A question mark is escaped for the sake of trigraphs.
            b'"' | b'\\' | b'?' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill() -> SkillSummary {
        SkillSummary {
            skill_id: "acme.odd".to_owned(),
            version: "1.0.0".to_owned(),
            tools: vec![ToolSummary {
                id: "odd".to_owned(),
                name: "Odd \"name\"".to_owned(),
                description: "back\\slash, new\nline, é 🦀, ??/, \u{7}1".to_owned(),
                input_schema: "{}".to_owned(),
                output_schema: "{}".to_owned(),
            }],
        }
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let description = &skill().tools[0].description;
        let json: String = serde_json::from_str(&quoted(description)).unwrap();
        assert_eq!(&json, description);
        assert_eq!(c_quoted("a\"\\?\u{7}1é"), r#""a\"\\\?\0071\303\251""#);
        let (path, rust) = tool_list(Language::Rust, &skill()).unwrap();
        assert_eq!(path, "src/tools.rs");
        assert!(rust.contains(r#"name: "Odd \"name\"","#), "{rust}");
    }

    #[test]
    fn a_skill_without_tools_gets_no_list() {
        let none = SkillSummary { tools: Vec::new(), ..skill() };
        assert!(Language::ALL.iter().all(|language| tool_list(*language, &none).is_none()));
        assert!(tool_list(Language::Wat, &skill()).is_none());
    }
}
