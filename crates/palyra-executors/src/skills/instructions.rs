//! `palyra.skill.read`: instructions from the operator's `SKILL.md` folders, on demand.
//!
//! The model always sees which folders there are and what each is for; it reads one when a task needs it. The operator chose the directories, so what they
//! hold is as trustworthy as a configured tool, except for what lies in the workspace of the run: that is text like any other until a person endorses it. Scripts in a folder are never run by this tool: a program is run by `palyra.process.run`, in its sandbox and under its
//! policies.

use std::path::PathBuf;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity, Label, ToStableError as _};
use palyra_skills::{AgentSkill, ResourceKind, discover_agent_skills};
use palyra_tools::{
    CallResource, EffectScope, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Longest list of folders that the description shows.
const LISTED: usize = 64;

/// Reads instructions that the operator keeps for tasks of a certain kind. Read the fitting ones before you begin such a task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillReadInput {
    /// Name of the instructions, from the list in this description.
    name: String,
    /// A file beside them that they mention; the instructions themselves when left out.
    #[serde(default)]
    file: Option<String>,
}

/// The tool.
pub struct SkillInstructions {
    declaration: ToolDeclaration,
    skills: Vec<AgentSkill>,
}

impl SkillInstructions {
    /// Looks into the directories; `None` if there are no instructions at all, so that no model is offered a tool without use.
    #[must_use]
    pub fn find(directories: &[PathBuf]) -> Option<Self> {
        let mut skills: Vec<AgentSkill> = Vec::new();
        for directory in directories {
            let found = match discover_agent_skills(directory) {
                Ok(found) => found,
                Err(error) => {
                    tracing::warn!(directory = %directory.display(), %error, "a directory of instructions is left out");
                    continue;
                }
            };
            for skill in found {
                match skill {
                    Ok(skill) if skills.iter().any(|known| known.metadata().name == skill.metadata().name) => {
                        tracing::warn!(name = skill.metadata().name, "instructions of the same name are left out");
                    }
                    Ok(skill) => skills.push(skill),
                    Err(error) => tracing::warn!(%error, "a folder of instructions is left out"),
                }
            }
        }
        if skills.is_empty() {
            return None;
        }
        let name = ToolName::builtin("palyra.skill.read");
        let mut declaration =
            ToolDeclaration::of::<SkillReadInput>(name, "Read instructions", "read instructions {name}")
                .reads(EffectScope::Pure)
                .labelling_results()
                .showing_inline()
                .output(Integrity::ToolTrusted, Confidentiality::Internal)
                .offered(Offering::Always);
        declaration.description.push_str("\n\nThere are:");
        for skill in skills.iter().take(LISTED) {
            let about = skill.metadata();
            declaration.description.push_str(&format!("\n- {}: {}", about.name, about.description));
        }
        Some(Self { declaration, skills })
    }

    fn find_skill(&self, input: &SkillReadInput) -> Result<&AgentSkill, ToolError> {
        self.skills.iter().find(|skill| skill.metadata().name == input.name).ok_or_else(|| {
            let message =
                format!("there are no instructions `{}`; the description of this tool lists them", input.name);
            ToolError::argument(self.declaration.name.as_str(), "name", "unknown", message)
        })
    }

    /// The label of what is read, by the bytes of the file that it is read from.
    fn label(&self, input: &SkillReadInput, workspace: &Workspace) -> Result<Label, ToolError> {
        let skill = self.find_skill(input)?;
        let file = input.file.as_deref().unwrap_or("SKILL.md");
        let bytes = skill.read(file).map_err(|error| ToolError::Custom(Box::new(error.to_stable())))?;
        let label = self.declaration.output.clone().from_source(format!("skill:{}", input.name));
        let known = workspace.label_of_instructions(&skill.folder().join(file), &bytes);
        Ok(known.map_or(label.clone(), |known| label.join(&known)))
    }

    fn read(&self, input: &SkillReadInput) -> Result<String, ToolError> {
        let custom = |error: palyra_skills::SkillError| ToolError::Custom(Box::new(error.to_stable()));
        let skill = self.find_skill(input)?;
        if let Some(file) = &input.file {
            let bytes = skill.read(file).map_err(custom)?;
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        let mut text = skill.instructions().map_err(custom)?;
        let resources = skill.resources().map_err(custom)?;
        if !resources.is_empty() {
            text.push_str("\n\nFiles beside these instructions:\n");
            for resource in resources {
                let run = match resource.kind {
                    ResourceKind::Script => {
                        format!(" (a script: run {})", skill.folder().join(&resource.path).display())
                    }
                    _ => String::new(),
                };
                text.push_str(&format!("- {}, {} bytes{run}\n", resource.path, resource.bytes));
            }
        }
        Ok(text)
    }
}

#[async_trait]
impl Tool for SkillInstructions {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
        Ok(CallResource::tool(format!("instructions:{name}")))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let tool = self.declaration.name.as_str();
        let input: SkillReadInput = serde_json::from_value(invocation.arguments)
            .map_err(|error| ToolError::argument(tool, "arguments", "invalid", error.to_string()))?;
        let text = self.read(&input)?;
        let label = self.label(&input, &invocation.workspace)?;
        let limit = invocation.limits.inline_bytes;
        let cut = text.len() > limit;
        let end = text.floor_char_boundary(limit.min(text.len()));
        let mut output = ToolOutput::text(text.get(..end).unwrap_or_default(), label);
        output.truncated = cut;
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(root: &std::path::Path, name: &str, body: &str) {
        let folder = root.join(name);
        std::fs::create_dir_all(folder.join("scripts")).unwrap();
        let text = format!("---\nname: {name}\ndescription: How we do {name} here.\n---\n{body}\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
        std::fs::write(folder.join("scripts/do.sh"), "echo hi\n").unwrap();
    }

    fn read(tool: &SkillInstructions, name: &str, file: Option<&str>) -> Result<String, ToolError> {
        tool.read(&SkillReadInput { name: name.to_owned(), file: file.map(str::to_owned) })
    }

    #[test]
    fn instructions_in_the_workspace_are_text_until_somebody_endorses_them() {
        let directory = tempfile::tempdir().unwrap();
        folder(directory.path(), "releases", "Tag first, then build.");
        let tool = SkillInstructions::find(&[directory.path().to_owned()]).unwrap();
        let trust = |root: &std::path::Path| {
            let anywhere = palyra_tools::Roots::Anywhere { except: Vec::new(), granted: Vec::new() };
            let workspace = Workspace::open(root, &anywhere, &[]).unwrap();
            tool.label(&SkillReadInput { name: "releases".into(), file: None }, &workspace).unwrap().integrity
        };
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(trust(elsewhere.path()), Integrity::ToolTrusted);
        assert_eq!(trust(directory.path()), Integrity::Untrusted);
    }

    #[test]
    fn instructions_are_listed_and_read_on_demand() {
        let directory = tempfile::tempdir().unwrap();
        assert!(SkillInstructions::find(&[directory.path().to_owned()]).is_none());
        folder(directory.path(), "releases", "Tag first, then build.");
        folder(directory.path(), "reviews", "Read twice.");
        std::fs::create_dir(directory.path().join("broken")).unwrap();
        std::fs::write(directory.path().join("broken/SKILL.md"), "no front matter").unwrap();
        let tool = SkillInstructions::find(&[directory.path().to_owned(), "/nonexistent".into()]).unwrap();
        assert!(tool.declaration.description.contains("- releases: How we do releases here."));
        assert!(!tool.declaration.description.contains("Tag first"), "the body comes on demand");
        let text = read(&tool, "releases", None).unwrap();
        assert!(text.contains("Tag first") && text.contains("scripts/do.sh"), "{text}");
        assert_eq!(read(&tool, "releases", Some("scripts/do.sh")).unwrap(), "echo hi\n");
        for (name, file) in
            [("nothing", None), ("releases", Some("../reviews/SKILL.md")), ("releases", Some("/etc/passwd"))]
        {
            assert!(read(&tool, name, file).is_err(), "{name} {file:?}");
        }
    }
}
