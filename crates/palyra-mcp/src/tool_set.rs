//! Which tools of a server are offered, and how they are labelled: the server's list against the operator's two files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use palyra_common::{ToolClassification, named_fields};
use serde::Serialize;

use crate::{ClassificationFile, McpError, PinState, Pins, ServerName, ToolDescription};

/// The tools of one server, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSet {
    /// What may be called.
    pub offered: Vec<OfferedTool>,
    /// What may not, and why.
    pub withheld: Vec<WithheldTool>,
    /// Pinned tools that the server no longer lists.
    pub gone: Vec<String>,
}

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The engine's name: `mcp.<server>.<tool>`.
    pub name: String,
    /// What the server says about it.
    pub description: ToolDescription,
    /// How it is treated.
    pub classification: ToolClassification,
    /// Where that comes from.
    pub source: ClassificationSource,
}

/// Where a classification comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassificationSource {
    /// Nobody has reviewed one for this tool as it is now.
    Cautious,
    /// The operator's file.
    Reviewed,
}

/// A tool that may not be called.
#[derive(Debug, Clone, PartialEq)]
pub struct WithheldTool {
    /// What the server says about it.
    pub description: ToolDescription,
    /// Why it is withheld.
    pub why: Withheld,
}

/// Why a tool is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// It is not what the operator agreed to.
    Changed,
    /// The operator has not agreed to it.
    New,
    /// Another tool of the server has the same name, or one that becomes the same.
    Ambiguous,
}

impl Withheld {
    /// The reason in words.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Changed => "it has changed since the operator accepted it",
            Self::New => "the operator has not accepted it yet",
            Self::Ambiguous => "another tool of this server has the same name",
        }
    }
}

/// The two files of one server.
#[derive(Debug, Clone)]
pub(crate) struct ServerFiles {
    pub(crate) pins: PathBuf,
    pub(crate) classification: PathBuf,
}

impl ServerFiles {
    pub(crate) fn of(directory: &Path, server: &ServerName) -> Self {
        Self {
            pins: directory.join(format!("{server}.pins.json")),
            classification: directory.join(format!("{server}.classification.toml")),
        }
    }
}

impl ToolSet {
    /// Judges a server's list by its files.
    pub(crate) fn judge(
        server: &ServerName,
        tools: Vec<ToolDescription>,
        pins: &Pins,
        file: &ClassificationFile,
    ) -> Self {
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for tool in &tools {
            *names.entry(server.tool_name(&tool.name)).or_default() += 1;
        }
        let gone = pins.tools.keys().filter(|name| !tools.iter().any(|tool| tool.name == **name)).cloned().collect();
        let mut set = Self { offered: Vec::new(), withheld: Vec::new(), gone };
        for description in tools {
            let name = server.tool_name(&description.name);
            let why = match pins.state(&description) {
                _ if names.get(&name).is_some_and(|count| *count > 1) => Some(Withheld::Ambiguous),
                PinState::Changed => Some(Withheld::Changed),
                PinState::New => Some(Withheld::New),
                PinState::Pinned => None,
            };
            if let Some(why) = why {
                set.withheld.push(WithheldTool { description, why });
                continue;
            }
            let (mut classification, source) = match file.reviewed_entry(&description) {
                Some(entry) => (entry.classification(), ClassificationSource::Reviewed),
                None => {
                    let arguments = description.argument_names().map(str::to_owned);
                    (ToolClassification::cautious(arguments), ClassificationSource::Cautious)
                }
            };
            // The operator has accepted the description as a whole, so the names in it are no message of a later result.
            classification.output.named.extend(description.output_schema.iter().flat_map(named_fields));
            set.offered.push(OfferedTool { name, description, classification, source });
        }
        set
    }

    /// Reads the two files and judges. Blocking.
    pub(crate) fn load(
        server: &ServerName,
        tools: Vec<ToolDescription>,
        files: &ServerFiles,
    ) -> Result<Self, McpError> {
        let pins = Pins::load(&files.pins)?;
        let file = ClassificationFile::load(&files.classification)?;
        let set = Self::judge(server, tools, &pins, &file);
        for tool in &set.withheld {
            tracing::warn!(
                server = %server, tool = %crate::error::quoted(&tool.description.name), why = tool.why.reason(),
                "a tool of an MCP server is withheld until the operator accepts it: `palyra mcp test {server} --accept`"
            );
        }
        Ok(set)
    }

    /// The tool of this name of the server, if it may be called.
    pub(crate) fn find(&self, server: &ServerName, tool: &str) -> Result<&OfferedTool, McpError> {
        if let Some(offered) = self.offered.iter().find(|offered| offered.description.name == tool) {
            return Ok(offered);
        }
        let withheld = self.withheld.iter().find(|withheld| withheld.description.name == tool);
        Err(match withheld {
            Some(withheld) => McpError::ToolWithheld {
                server: server.to_string(),
                tool: crate::error::quoted(tool),
                reason: withheld.why.reason().to_owned(),
            },
            None => McpError::ToolNotFound { server: server.to_string(), tool: crate::error::quoted(tool) },
        })
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::{Consequence, SinkKind};
    use serde_json::json;

    use super::*;

    fn tool(name: &str, words: &str) -> ToolDescription {
        ToolDescription {
            name: name.to_owned(),
            title: None,
            description: Some(words.to_owned()),
            input_schema: json!({ "properties": { "to": { "type": "string" }, "n": { "type": "integer" } } }),
            output_schema: None,
            annotations: None,
        }
    }

    #[test]
    fn only_what_was_agreed_to_is_offered() {
        let server = ServerName::new("s").unwrap();
        let pins =
            Pins::of(&[tool("same", "a"), tool("changed", "a"), tool("gone", "a"), tool("A", "x"), tool("a", "x")]);
        let listed = vec![tool("same", "a"), tool("changed", "b"), tool("new", "a"), tool("A", "x"), tool("a", "x")];
        let set = ToolSet::judge(&server, listed, &pins, &ClassificationFile::default());
        let offered: Vec<_> = set.offered.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(offered, ["mcp.s.same"]);
        let withheld: Vec<_> = set.withheld.iter().map(|tool| (tool.description.name.as_str(), tool.why)).collect();
        use Withheld::{Ambiguous, Changed, New};
        assert_eq!(withheld, [("changed", Changed), ("new", New), ("A", Ambiguous), ("a", Ambiguous)]);
        assert_eq!(set.gone, ["gone"]);
        assert!(set.find(&server, "same").is_ok());
        assert!(matches!(set.find(&server, "changed"), Err(McpError::ToolWithheld { .. })));
        assert!(matches!(set.find(&server, "nowhere"), Err(McpError::ToolNotFound { .. })));
    }

    #[test]
    fn without_a_review_everything_is_a_destination() {
        let server = ServerName::new("s").unwrap();
        let listed = vec![tool("get_time", "reads")];
        let set = ToolSet::judge(&server, listed.clone(), &Pins::of(&listed), &ClassificationFile::default());
        let classification = &set.offered[0].classification;
        assert_eq!(set.offered[0].source, ClassificationSource::Cautious);
        assert_eq!(classification.consequence, Consequence::Consequential);
        assert_eq!(classification.sinks.get("to"), Some(&SinkKind::Destination));
        assert_eq!(classification.sinks.get("n"), Some(&SinkKind::Destination));
        assert!(!classification.repeatable);
    }
}
