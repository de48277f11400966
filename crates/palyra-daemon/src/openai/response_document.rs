//! How responses are written at once: the same document that a stream ends with.

use palyra_models::Usage;
use serde_json::{Map, Value, json};

use super::following::{ClientCall, Ending};

/// What every document about one response says.
#[derive(Debug, Clone)]
pub(super) struct Response {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) instructions: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) metadata: Map<String, Value>,
    /// The client's tools as the client wrote them.
    pub(super) tools: Value,
}

/// Where a response stands.
#[derive(Debug)]
pub(super) enum Standing<'a> {
    /// Its answer is under way.
    InProgress,
    /// It is over in this way.
    Ended(&'a Ending),
    /// It failed, for this reason.
    Failed(String),
}

impl Response {
    /// The document.
    pub(super) fn document(&self, standing: &Standing<'_>, output: &[Value], usage: Option<Usage>) -> Value {
        let incomplete = match standing {
            Standing::Ended(Ending::Length) => json!({ "reason": "max_output_tokens" }),
            Standing::Ended(Ending::Filtered) => json!({ "reason": "content_filter" }),
            _ => Value::Null,
        };
        let status = match standing {
            Standing::InProgress => "in_progress",
            Standing::Failed(_) => "failed",
            Standing::Ended(_) if incomplete.is_null() => "completed",
            Standing::Ended(_) => "incomplete",
        };
        let error = match standing {
            // Clients know few codes of their own here; the message has ours.
            Standing::Failed(why) => json!({ "code": "server_error", "message": why }),
            _ => Value::Null,
        };
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": false,
            "error": error,
            "incomplete_details": incomplete,
            "instructions": self.instructions,
            "max_output_tokens": null,
            "max_tool_calls": null,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.previous,
            "reasoning": { "effort": null, "summary": null },
            "store": true,
            "temperature": null,
            "text": { "format": { "type": "text" } },
            "tool_choice": "auto",
            "tools": self.tools,
            "top_p": null,
            "truncation": "disabled",
            "usage": usage.map(usage_of),
            "user": null,
            "metadata": self.metadata,
        })
    }

    /// The message of the answer.
    pub(super) fn message(&self, text: &str, status: &str) -> Value {
        let content = if status == "in_progress" { json!([]) } else { json!([text_part(text)]) };
        json!({ "type": "message", "id": self.message_id(), "status": status, "role": "assistant", "content": content })
    }

    /// The id of that message.
    pub(super) fn message_id(&self) -> String {
        format!("msg_{}", self.id.trim_start_matches("resp_"))
    }
}

/// A part of a message.
pub(super) fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// A call of a tool of the client.
pub(super) fn call(call: &ClientCall, status: &str) -> Value {
    let arguments = if status == "in_progress" { "" } else { call.arguments.as_str() };
    json!({
        "type": "function_call",
        "id": call_item_id(call),
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": status,
    })
}

/// The id of the item that a call is.
pub(super) fn call_item_id(call: &ClientCall) -> String {
    format!("fc_{}", call.id.trim_start_matches("call_"))
}

fn usage_of(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    })
}
