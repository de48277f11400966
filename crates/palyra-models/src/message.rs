//! What is said in a conversation with a model: messages, the calls a model asks for, the tools it is offered.
//!
//! These types are stored on the journal and compared byte for byte by replay, so their field order is part of their
//! meaning and absent parts are left out. How a provider spells them on its own wire is the provider's business.

use std::sync::Arc;

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::part::Part;
use crate::reasoning::ReasoningBlock;

runtime_contract_enum! {
    /// Who speaks in a message.
    pub enum Role("message_role") {
        /// Palyra and its operator: instructions the model works under.
        System = "system" | "developer",
        /// The person whose task it is.
        User = "user" | "human",
        /// The model.
        Assistant = "assistant" | "model",
        /// The result of one tool call.
        Tool = "tool" | "function",
    }
}

/// Advice in the result of a call that was refused. It is for the model alone: people are told what was refused and why.
pub const REFUSAL_ADVICE: &str = "do not propose it again";

/// What stands before the text of a file that a context builder puts behind the person's own words in a user message, as
/// in `\n\n[file notes.md]\n…`. The offline planner takes nothing from there on for a request.
pub const ATTACHMENT_MARK: &str = "\n\n[file ";

/// A call that a model asks for. It is a proposal: nothing has been checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallRequest {
    /// Names the call within its turn; the result refers to it.
    pub id: String,
    /// Name of the tool as the model wrote it.
    pub name: String,
    /// The arguments exactly as the model wrote them: JSON if the model did well, any text if not.
    pub arguments: String,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; may be empty beside tool calls.
    #[serde(default)]
    pub content: String,
    /// Images and files that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What the assistant thought before it said this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<ReasoningBlock>,
    /// Calls the assistant asked for in this message, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRequest>,
    /// Of a tool result: which call it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Of a tool result: the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of a tool result: the call failed or was refused, and `content` says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

impl Message {
    /// Instructions from Palyra or its operator.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::plain(Role::System, content.into())
    }

    /// Something the person said.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::plain(Role::User, content.into())
    }

    /// Something the model said, with the calls it asked for.
    #[must_use]
    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ToolCallRequest>) -> Self {
        Self { tool_calls, ..Self::plain(Role::Assistant, content.into()) }
    }

    /// What a tool call gave.
    #[must_use]
    pub fn tool_result(call_id: impl Into<String>, name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call_id.into()), name: Some(name.into()), ..Self::plain(Role::Tool, content.into()) }
    }

    /// Why a tool call failed or was refused. Models on the wire see the content alone, so it has to say so itself.
    #[must_use]
    pub fn tool_error(call_id: impl Into<String>, name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { failed: true, ..Self::tool_result(call_id, name, content) }
    }

    /// The same message with images and files.
    #[must_use]
    pub fn with_parts(mut self, parts: Vec<Part>) -> Self {
        self.parts = parts;
        self
    }

    /// The same message with what the model thought before it.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: Vec<ReasoningBlock>) -> Self {
        self.reasoning = reasoning;
        self
    }

    fn plain(role: Role, content: String) -> Self {
        Self {
            role,
            content,
            parts: Vec::new(),
            reasoning: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            failed: false,
        }
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolSpec {
    /// Full name, such as `palyra.fs.read`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema (2020-12) of its arguments.
    pub input_schema: Arc<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_messages_keep_their_field_order_and_leave_out_what_is_absent() {
        let plain = serde_json::to_string(&Message::user("hi")).unwrap();
        assert_eq!(plain, r#"{"role":"user","content":"hi"}"#);
        let call =
            ToolCallRequest { id: "c1".into(), name: "palyra.fs.read".into(), arguments: r#"{"path":"a"}"#.into() };
        let calls = serde_json::to_string(&Message::assistant("", vec![call])).unwrap();
        assert_eq!(
            calls,
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"palyra.fs.read","arguments":"{\"path\":\"a\"}"}]}"#
        );
        let failed = serde_json::to_string(&Message::tool_error("c1", "palyra.fs.read", "no such file")).unwrap();
        assert_eq!(
            failed,
            r#"{"role":"tool","content":"no such file","tool_call_id":"c1","name":"palyra.fs.read","failed":true}"#
        );
    }

    #[test]
    fn messages_survive_a_round_trip_and_unknown_fields_are_refused() {
        let message = Message::tool_error("c", "t", "x");
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
        assert!(serde_json::from_str::<Message>(r#"{"role":"user","content":"","colour":1}"#).is_err());
    }
}
