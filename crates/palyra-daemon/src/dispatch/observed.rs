//! What is told about a command besides its answer: its span, and who was turned away by a limit.

use palyra_client::command::TargetKind;
use palyra_common::AcpCommand;
use palyra_identity::Via;
use palyra_telemetry::{CommandOutcome, RateLimit, Transport as Seen, work};
use tracing::Span;

use super::caller::{Caller, Transport};
use super::refusal::{Refusal, Result};
use crate::app::App;

impl From<Transport> for Seen {
    fn from(transport: Transport) -> Self {
        match transport {
            // Its connections are those of HTTP, and are counted as such.
            Transport::Http | Transport::Mcp => Self::Http,
            Transport::WebSocket => Self::WebSocket,
            Transport::Grpc => Self::Grpc,
            Transport::Quic => Self::Quic,
            Transport::OpenAi => Self::OpenAi,
        }
    }
}

/// The span of a command, with the run or session that it is about.
pub(super) fn span(caller: &Caller, name: AcpCommand, target: Option<(TargetKind, String)>) -> Span {
    let span = work::command_span(name.as_str(), caller.transport.into(), caller.id());
    if let Some(trace) = &caller.trace {
        work::continue_trace(&span, trace);
    }
    match target {
        Some((TargetKind::Run, id)) => _ = span.record("run_id", id),
        Some((TargetKind::Session, id)) => _ = span.record("session_id", id),
        _ => {}
    }
    span
}

/// How a command ended. A span that is never told was given up by its caller.
pub(super) fn ended<T>(app: &App, caller: &Caller, span: &Span, outcome: &Result<T>, good: CommandOutcome) {
    match outcome {
        Ok(_) => _ = span.record("outcome", good.as_str()),
        Err(refusal) => refused(app, caller, span, refusal),
    }
}

/// A command that could not even be read.
pub(super) fn unread(app: &App, caller: &Caller, name: AcpCommand, refusal: &Refusal) {
    refused(app, caller, &span(caller, name, None), refusal);
}

fn refused(app: &App, caller: &Caller, span: &Span, refusal: &Refusal) {
    let envelope = refusal.envelope();
    span.record("outcome", CommandOutcome::from(envelope.category).as_str());
    span.record("error", envelope.code.as_str());
    if envelope.code == "rate_limited" {
        let limit = match caller.principal.via {
            Via::ApiToken { .. } => RateLimit::Token,
            _ => RateLimit::Principal,
        };
        app.metrics.rate_limited(limit);
    }
}
