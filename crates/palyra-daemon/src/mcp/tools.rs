//! Which commands a foreign agent may give as tools, and how they are described to it.
//!
//! Left out on purpose, whatever the caller's role: `approval.decide`, because a model would then answer the questions that are asked to keep models in check;
//! tokens, policies, configuration, the journal and stopping the daemon, because a text that an agent has read must not be able to lead to them; undoing and
//! forking, because a person looks at what they do. All of these are there for programs over the other transports.
//!
//! Schemas come from the wire types, like the description of the HTTP API. Nothing here decides who may do what: that is policy's.

use std::sync::{Arc, LazyLock};

use palyra_client::command;
use palyra_common::AcpCommand;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Longest wait that a call may ask for.
pub(super) const MAX_WAIT_SECONDS: u64 = 600;
/// Wait of a call that does not say: most clients give up after a minute.
pub(super) const DEFAULT_WAIT_SECONDS: u64 = 50;
/// The field that says how long to wait.
pub(super) const WAIT: &str = "wait_seconds";

/// What a call does besides giving its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing: the answer is the command's result.
    Answer,
    /// It waits until the run is over or a person is asked; the answer is the run in full.
    WaitForRun,
}

/// One tool.
pub(super) struct Offered {
    pub(super) command: AcpCommand,
    pub(super) then: Then,
    /// Fields of the command that this tool does not take.
    pub(super) without: &'static [&'static str],
    pub(super) tool: Tool,
}

/// All tools, in the order in which they are listed.
pub(super) fn all() -> impl Iterator<Item = &'static Offered> {
    TOOLS.iter()
}

/// The tool of a name.
pub(super) fn named(name: &str) -> Option<&'static Offered> {
    all().find(|offered| offered.tool.name == name)
}

/// What calling a tool means to whoever watches over the agent.
#[derive(Debug, Clone, Copy)]
enum Nature {
    /// It changes nothing.
    Reads,
    /// It begins something.
    Begins,
    /// It ends something.
    Ends,
}

struct Line {
    name: &'static str,
    command: AcpCommand,
    then: Then,
    nature: Nature,
    description: &'static str,
    without: &'static [&'static str],
}

const LINES: &[Line] = &[
    Line {
        name: "run_create",
        command: AcpCommand::RunCreate,
        then: Then::WaitForRun,
        nature: Nature::Begins,
        description: "Gives Palyra a task in plain words and waits for its answer. The task continues when the waiting ends first; `run_get` waits for the \
                      rest. Give `session_id` or `session_key` to continue an earlier conversation.",
        // Their calls would come back to somebody who cannot answer them here; and what was said before is the session's to tell.
        without: &["client_tools", "history"],
    },
    Line {
        name: "run_get",
        command: AcpCommand::RunGet,
        then: Then::WaitForRun,
        nature: Nature::Reads,
        description: "Looks at a run: its phase, its answer, the files it changed, the questions it waits for. With `wait_seconds` it waits until the run is \
                      over or a person is asked.",
        without: &[],
    },
    Line {
        name: "run_list",
        command: AcpCommand::RunList,
        then: Then::Answer,
        nature: Nature::Reads,
        description: "Lists runs, newest first.",
        without: &[],
    },
    Line {
        name: "run_abort",
        command: AcpCommand::RunAbort,
        then: Then::Answer,
        nature: Nature::Ends,
        description: "Ends a run. What it changed stays.",
        without: &[],
    },
    Line {
        name: "session_list",
        command: AcpCommand::SessionList,
        then: Then::Answer,
        nature: Nature::Reads,
        description: "Lists conversations, the one with the newest activity first.",
        without: &[],
    },
    Line {
        name: "session_new",
        command: AcpCommand::SessionNew,
        then: Then::Answer,
        nature: Nature::Begins,
        description: "Begins a conversation; runs that name its `session_id` share its history.",
        without: &[],
    },
    Line {
        name: "approval_list",
        command: AcpCommand::ApprovalList,
        then: Then::Answer,
        nature: Nature::Reads,
        description: "Lists the questions that wait for a person. They are for your person to answer, not for you.",
        without: &[],
    },
    Line {
        name: "approval_request",
        command: AcpCommand::ApprovalRequest,
        then: Then::Answer,
        nature: Nature::Begins,
        description: "Asks your person a question that can be answered with yes or no, before you do something of your own. Nothing is permitted by it: it \
                      carries the question and the answer. Wait for the answer with `approval_get`.",
        without: &[],
    },
    Line {
        name: "approval_get",
        command: AcpCommand::ApprovalGet,
        then: Then::Answer,
        nature: Nature::Reads,
        description: "Looks at a question; with `wait_seconds` it waits for the answer.",
        without: &[],
    },
];

static TOOLS: LazyLock<Vec<Offered>> = LazyLock::new(|| LINES.iter().filter_map(offered).collect());

/// A line with its schemas. A command that is not in the catalogue would be left out; a test keeps that from happening.
fn offered(line: &Line) -> Option<Offered> {
    let spec = command::spec(line.command)?;
    let mut input = schema(spec.params);
    if let Some(Value::Object(fields)) = input.get_mut("properties") {
        fields.retain(|name, _| !line.without.contains(&name.as_str()));
    }
    let result = match line.then {
        Then::Answer => spec.result,
        Then::WaitForRun => {
            add_wait(&mut input, line.command);
            command::spec(AcpCommand::RunGet)?.result
        }
    };
    let annotations = ToolAnnotations::new().open_world(false);
    let annotations = match line.nature {
        Nature::Reads => annotations.read_only(true),
        Nature::Begins => annotations.read_only(false).destructive(false),
        Nature::Ends => annotations.read_only(false).destructive(true).idempotent(true),
    };
    let tool = Tool::new(line.name, line.description, Arc::new(input))
        .with_raw_output_schema(Arc::new(schema(result)))
        .with_annotations(annotations);
    Some(Offered { command: line.command, then: line.then, without: line.without, tool })
}

/// A whole schema with everything that it refers to.
fn schema(make: fn(&mut SchemaGenerator) -> Schema) -> JsonObject {
    let mut generator =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let made: Value = make(&mut generator).into();
    let Value::Object(mut fields) = made else { return Map::new() };
    // The protocol wants a record at the top, said in so many words.
    fields.insert("type".to_owned(), json!("object"));
    let others = generator.take_definitions(true);
    if !others.is_empty() {
        fields.insert("$defs".to_owned(), Value::Object(others));
    }
    fields
}

fn add_wait(input: &mut JsonObject, command: AcpCommand) {
    // Whoever only looks does not wait unless they say so.
    let default = if command == AcpCommand::RunGet { 0 } else { DEFAULT_WAIT_SECONDS };
    let field = json!({
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_WAIT_SECONDS,
        "default": default,
        "description": "How long to wait until the run is over or a person is asked.",
    });
    let properties = input.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(properties) = properties {
        properties.insert(WAIT.to_owned(), field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_tool_with_whole_schemas() {
        assert_eq!(all().count(), LINES.len());
        for offered in all() {
            let name = &offered.tool.name;
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            for schema in [Some(&offered.tool.input_schema), offered.tool.output_schema.as_ref()] {
                let schema = schema.unwrap();
                assert_eq!(schema["type"], "object", "{name}");
                let text = serde_json::to_string(schema).unwrap();
                assert!(!text.contains("#/components/"), "{name} refers to another document");
            }
        }
        let create = &named("run_create").unwrap().tool.input_schema;
        assert_eq!(create["required"], json!(["prompt"]), "an agent or a session may name the workspace");
        assert!(create["properties"].get("client_tools").is_none());
        assert_eq!(create["properties"][WAIT]["default"], DEFAULT_WAIT_SECONDS);
    }

    #[test]
    fn an_agent_cannot_answer_for_a_person_nor_administer() {
        for offered in all() {
            let spec = command::spec(offered.command).unwrap();
            assert_ne!(spec.effect, palyra_common::CommandEffect::Administer, "{}", offered.tool.name);
            assert_ne!(spec.scope, palyra_common::TokenScope::ApprovalsDecide, "{}", offered.tool.name);
        }
    }
}
