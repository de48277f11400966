//! Spans of work for crates that know this one. The fields are those of the table in the module above; what is not known yet is recorded later.

use palyra_common::{RunId, SessionId};
use tracing::Span;
use tracing::field::Empty;

use crate::Transport;

/// A command from one principal. Record `outcome` and, for failures, `error` before it closes.
#[must_use]
pub fn command_span(command: &'static str, transport: Transport, principal: &str) -> Span {
    tracing::error_span!(
        parent: None,
        "command",
        command,
        transport = transport.as_str(),
        principal,
        run_id = Empty,
        session_id = Empty,
        outcome = Empty,
        error = Empty,
    )
}

/// A run. It belongs to no command: it goes on after the one that began it was answered.
#[must_use]
pub fn run_span(run_id: RunId, session_id: SessionId) -> Span {
    tracing::error_span!(
        parent: None,
        "run",
        %run_id,
        %session_id,
        principal = Empty,
        phase = Empty,
        reason = Empty,
    )
}

/// A call of a model inside the current span.
#[must_use]
pub fn model_call_span(provider: &str, model: &str) -> Span {
    tracing::error_span!(
        "model_call",
        provider,
        model,
        turn = Empty,
        outcome = Empty,
        error = Empty,
        input_tokens = Empty,
        output_tokens = Empty,
    )
}

/// A call of a tool inside the current span.
#[must_use]
pub fn tool_call_span(tool: &str, call_id: &str) -> Span {
    tracing::error_span!("tool_call", tool, call_id, outcome = Empty, error = Empty)
}
