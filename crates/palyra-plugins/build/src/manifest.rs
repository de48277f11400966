//! The part of `skill.toml` that a build needs. Whether the rest makes sense is for `palyra-skills` to say.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::BuildError;

/// The name of the manifest.
pub(crate) const MANIFEST: &str = "skill.toml";

/// Longest id of a skill.
const MAX_ID: usize = 64;

/// What a build takes from a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSummary {
    /// Such as `acme.notes`.
    pub skill_id: String,
    /// Such as `1.2.0`.
    pub version: String,
    /// The tools, in the order of the manifest.
    pub tools: Vec<ToolSummary>,
}

/// One tool of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSummary {
    /// Unique in the skill.
    pub id: String,
    /// A few words for people.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// JSON Schema of the input, as a text.
    pub input_schema: String,
    /// JSON Schema of the output, as a text.
    pub output_schema: String,
}

#[derive(Deserialize)]
struct Manifest {
    skill_id: String,
    version: String,
    #[serde(default)]
    entrypoints: Entrypoints,
}

#[derive(Deserialize, Default)]
struct Entrypoints {
    #[serde(default)]
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    id: String,
    name: Option<String>,
    #[serde(default)]
    description: String,
    input_schema: Option<Schema>,
    output_schema: Option<Schema>,
}

/// A schema as a table, or as a JSON text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Schema {
    Text(String),
    Table(toml::Table),
}

impl SkillSummary {
    /// Reads `skill.toml` in a folder.
    pub fn read(folder: &Path) -> Result<Self, BuildError> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(BuildError::io(&path))?;
        Self::parse(&text).map_err(|reason| BuildError::source(path, reason))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let manifest: Manifest = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        check_skill_id(&manifest.skill_id).map_err(|reason| format!("skill_id: {reason}"))?;
        let tools = manifest.entrypoints.tools.into_iter().map(ToolSummary::try_from).collect::<Result<_, _>>()?;
        Ok(Self { skill_id: manifest.skill_id, version: manifest.version, tools })
    }
}

impl TryFrom<Tool> for ToolSummary {
    type Error = String;

    fn try_from(tool: Tool) -> Result<Self, String> {
        Ok(Self {
            input_schema: schema_text(tool.input_schema, &tool.id)?,
            output_schema: schema_text(tool.output_schema, &tool.id)?,
            name: tool.name.unwrap_or_else(|| tool.id.clone()),
            id: tool.id,
            description: tool.description,
        })
    }
}

/// A schema as compact JSON, the same text for the same schema.
fn schema_text(schema: Option<Schema>, tool: &str) -> Result<String, String> {
    let value: Value = match schema {
        None => Value::Object(serde_json::Map::new()),
        Some(Schema::Text(text)) => {
            serde_json::from_str(&text).map_err(|error| format!("a schema of the tool `{tool}`: {error}"))?
        }
        Some(Schema::Table(table)) => {
            serde_json::to_value(table).map_err(|error| format!("a schema of the tool `{tool}`: {error}"))?
        }
    };
    Ok(value.to_string())
}

/// Whether a text can name a skill: its tools are called `<skill_id>.<tool>`, and files are called after it.
pub(crate) fn check_skill_id(id: &str) -> Result<(), &'static str> {
    let word = |word: &str| {
        !word.is_empty()
            && !word.starts_with('-')
            && !word.ends_with('-')
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if id.len() > MAX_ID {
        return Err("it is longer than 64 characters");
    }
    if matches!(id.split('.').next(), Some("palyra" | "mcp")) {
        return Err("this namespace is reserved for Palyra");
    }
    if !id.starts_with(|first: char| first.is_ascii_lowercase()) || !id.split('.').all(word) {
        return Err("it is not lower-case words joined by dots");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_taken_as_tables_and_as_texts() {
        let text = r#"
            skill_id = "acme.notes"
            version = "1.0.0"
            publisher = "acme"
            [[entrypoints.tools]]
            id = "add"
            input_schema = { type = "object" }
            output_schema = '{ "type": "string" }'
        "#;
        let skill = SkillSummary::parse(text).unwrap();
        assert_eq!(skill.tools[0].input_schema, r#"{"type":"object"}"#);
        assert_eq!(skill.tools[0].output_schema, r#"{"type":"string"}"#);
    }

    #[test]
    fn a_faulty_manifest_is_refused_with_its_reason() {
        for (text, reason) in [
            ("skill_id = \"../x\"\nversion = \"1.0.0\"", "skill_id"),
            ("version = \"1.0.0\"", "skill_id"),
            ("skill_id = \"x\"\nversion = \"1\"\n[[entrypoints.tools]]\nid = \"a\"\ninput_schema = \"{\"", "`a`"),
        ] {
            let error = SkillSummary::parse(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn names_that_would_pass_for_something_else_are_refused() {
        for good in ["echo", "acme.echo-http", "a1.b2"] {
            assert_eq!(check_skill_id(good), Ok(()));
        }
        for bad in ["", "Echo", "1st", "a..b", ".a", "a/b", "a_b", "-a", "a-", "palyra.fs", "mcp.x", &"a".repeat(65)] {
            assert!(check_skill_id(bad).is_err(), "{bad}");
        }
    }
}
