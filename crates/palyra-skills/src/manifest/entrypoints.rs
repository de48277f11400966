//! What a skill offers: tools for the model, hooks for events.

use std::collections::BTreeMap;

use palyra_common::{
    Confidentiality, Consequence, HookEvent, Integrity, OutputClass, SinkKind, ToolClassification, named_fields,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::fields::Fields;
use super::schema::{self, SchemaValidator};
use crate::SkillError;
use crate::archive::path;

/// Most tools, and most hooks, of one skill.
const MAX_ENTRYPOINTS: usize = 64;
/// Longest description: it is in every prompt.
const MAX_DESCRIPTION: usize = 4_000;
/// Longest id of a tool; with the skill's id it stays below the 128 letters of a tool's name.
const MAX_ID: usize = 48;

/// What a person should know before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolRisk {
    /// Results hold private matters unless somebody says otherwise.
    pub default_sensitive: bool,
    /// A person is asked before each call.
    pub requires_approval: bool,
}

/// How results and arguments are to be treated, as the publisher sees it. An operator may be stricter, never a publisher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolLabels {
    /// How far results may be trusted: `tool_trusted` or `untrusted`.
    pub integrity: Integrity,
    /// How widely results may be shown.
    pub confidentiality: Confidentiality,
    /// Whether a call changes something that others see.
    pub consequence: Consequence,
    /// Whether the same call may be made again after a crash.
    pub repeatable: bool,
    /// What arguments decide; every argument that is not listed is taken for a destination.
    pub sinks: BTreeMap<String, SinkKind>,
}

impl Default for ToolLabels {
    fn default() -> Self {
        Self {
            integrity: Integrity::Untrusted,
            confidentiality: Confidentiality::Private,
            consequence: Consequence::Consequential,
            repeatable: false,
            sinks: BTreeMap::new(),
        }
    }
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEntrypoint {
    /// Unique in the skill.
    pub id: String,
    /// A few words for people.
    pub name: String,
    /// What the model reads.
    pub description: String,
    /// The module that holds it; the only one if it is not named.
    pub module: Option<String>,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// JSON Schema of the output.
    pub output_schema: Value,
    /// What a person should know before a call.
    pub risk: ToolRisk,
    /// How results and arguments are to be treated.
    pub labels: ToolLabels,
}

impl ToolEntrypoint {
    /// The rule for information flow that follows from the labels; arguments of the schema that no label names count as destinations.
    #[must_use]
    pub fn classification(&self) -> ToolClassification {
        let arguments = self.input_schema.get("properties").and_then(Value::as_object);
        let mut sinks: BTreeMap<String, SinkKind> =
            arguments.into_iter().flatten().map(|(name, _)| (name.clone(), SinkKind::Destination)).collect();
        sinks.extend(self.labels.sinks.iter().map(|(name, sink)| (name.clone(), *sink)));
        let confidentiality = match self.risk.default_sensitive {
            true => self.labels.confidentiality.max(Confidentiality::Private),
            false => self.labels.confidentiality,
        };
        ToolClassification {
            consequence: self.labels.consequence,
            output: OutputClass {
                integrity: self.labels.integrity,
                confidentiality,
                fields: Vec::new(),
                named: named_fields(&self.output_schema),
            },
            sinks,
            repeatable: self.labels.repeatable,
        }
    }
}

/// A hook that answers to events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEntrypoint {
    /// Unique in the skill.
    pub id: String,
    /// What it does, for people.
    pub description: String,
    /// The module that holds it; the only one if it is not named.
    pub module: Option<String>,
    /// What it may be bound to.
    pub events: Vec<HookEvent>,
    /// How long it may take, if it says so itself.
    pub deadline_ms: Option<u64>,
}

/// Reads `[entrypoints]`.
pub(crate) fn read(mut fields: Fields) -> Result<(Vec<ToolEntrypoint>, Vec<HookEntrypoint>), SkillError> {
    let mut tools: Vec<ToolEntrypoint> = Vec::new();
    for entry in fields.tables("tools", MAX_ENTRYPOINTS)? {
        let at = entry.at("id");
        let tool = read_tool(entry)?;
        if tools.iter().any(|other| other.id == tool.id) {
            return Err(SkillError::manifest(at, format!("the tool `{}` is listed twice", tool.id)));
        }
        tools.push(tool);
    }
    let mut hooks: Vec<HookEntrypoint> = Vec::new();
    for entry in fields.tables("hooks", MAX_ENTRYPOINTS)? {
        let at = entry.at("id");
        let hook = read_hook(entry)?;
        if hooks.iter().any(|other| other.id == hook.id) {
            return Err(SkillError::manifest(at, format!("the hook `{}` is listed twice", hook.id)));
        }
        hooks.push(hook);
    }
    if tools.is_empty() && hooks.is_empty() {
        return Err(fields.wrong("tools", "a skill needs at least one tool or hook"));
    }
    fields.finish()?;
    Ok((tools, hooks))
}

fn read_id(fields: &mut Fields) -> Result<String, SkillError> {
    let id = fields.need_text("id", 64)?;
    let fits = id.len() <= MAX_ID
        && id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
    if fits {
        Ok(id)
    } else {
        Err(fields.wrong("id", "use 1 to 48 characters of a-z, 0-9, `_` and `-`, starting with a letter"))
    }
}

fn read_module(fields: &mut Fields) -> Result<Option<String>, SkillError> {
    match fields.text("module", 200)? {
        Some(module) if !path::is_module(&module) => {
            Err(fields.wrong("module", "expected the path of a module, such as `modules/echo.wasm`"))
        }
        module => Ok(module),
    }
}

fn read_schema(fields: &mut Fields, key: &'static str) -> Result<Option<Value>, SkillError> {
    let Some(value) = fields.take(key) else { return Ok(None) };
    let schema = schema::from_toml(value).map_err(|reason| fields.wrong(key, reason))?;
    SchemaValidator::compile(&schema).map_err(|reason| fields.wrong(key, reason))?;
    Ok(Some(schema))
}

fn read_tool(mut fields: Fields) -> Result<ToolEntrypoint, SkillError> {
    let id = read_id(&mut fields)?;
    let name = fields.text("name", 100)?.unwrap_or_else(|| id.clone());
    let description = fields.need_text("description", MAX_DESCRIPTION)?;
    let module = read_module(&mut fields)?;
    let input_schema = match read_schema(&mut fields, "input_schema")? {
        Some(schema) if schema.get("type") == Some(&json!("object")) => schema,
        Some(_) => {
            return Err(fields.wrong("input_schema", "the input of a tool must be an object: `type = \"object\"`"));
        }
        None => return Err(fields.wrong("input_schema", "it is missing")),
    };
    let output_schema = read_schema(&mut fields, "output_schema")?.unwrap_or_else(|| json!({}));
    let mut risk = fields.table("risk")?;
    let tool_risk = ToolRisk {
        default_sensitive: risk.flag("default_sensitive")?.unwrap_or_default(),
        requires_approval: risk.flag("requires_approval")?.unwrap_or_default(),
    };
    risk.finish()?;
    let labels = read_labels(fields.table("labels")?)?;
    fields.finish()?;
    Ok(ToolEntrypoint { id, name, description, module, input_schema, output_schema, risk: tool_risk, labels })
}

fn read_labels(mut fields: Fields) -> Result<ToolLabels, SkillError> {
    let default = ToolLabels::default();
    let integrity = fields.parsed("integrity")?.unwrap_or(default.integrity);
    if integrity < Integrity::ToolTrusted {
        return Err(fields.wrong("integrity", "a skill's results can be at most `tool_trusted`"));
    }
    let mut sinks = fields.table("sinks")?;
    let mut listed = BTreeMap::new();
    for (argument, value) in sinks.rest() {
        let sink = value.as_str().and_then(|text| text.parse().ok());
        let sink = sink
            .ok_or_else(|| sinks.wrong(&argument, "expected the name of a sink, such as `destination` or `content`"))?;
        listed.insert(argument, sink);
    }
    let labels = ToolLabels {
        integrity,
        confidentiality: fields.parsed("confidentiality")?.unwrap_or(default.confidentiality),
        consequence: fields.parsed("consequence")?.unwrap_or(default.consequence),
        repeatable: fields.flag("repeatable")?.unwrap_or_default(),
        sinks: listed,
    };
    fields.finish()?;
    Ok(labels)
}

fn read_hook(mut fields: Fields) -> Result<HookEntrypoint, SkillError> {
    let id = read_id(&mut fields)?;
    let description = fields.text("description", 500)?.unwrap_or_default();
    let module = read_module(&mut fields)?;
    let mut events: Vec<HookEvent> = Vec::new();
    for (index, text) in fields.texts("events", HookEvent::ALL.len())?.into_iter().enumerate() {
        let at = format!("events[{index}]");
        let event = text.parse().map_err(|error| fields.wrong(&at, format!("{error}")))?;
        if events.contains(&event) {
            return Err(fields.wrong(&at, "it is listed twice"));
        }
        events.push(event);
    }
    if events.is_empty() {
        return Err(fields.wrong("events", "a hook needs at least one event"));
    }
    let deadline_ms = fields.number("deadline_ms", 1, 60_000)?;
    fields.finish()?;
    Ok(HookEntrypoint { id, description, module, events, deadline_ms })
}
