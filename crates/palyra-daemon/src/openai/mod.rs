//! The OpenAI-compatible interface: runs for clients that speak of chats and responses.
//!
//! A request becomes a run in a session, by the same commands that every transport gives, so policies, rates and ownership hold. Palyra's tools
//! work inside; calls of the client's own tools are handed back. Nothing about a conversation is kept in memory: ids name the run they belong to, and
//! which conversation an answer ended is on the journal.
//!
//! - `fields`, `messages`, `items`, `tools`, `params`: reading requests, refusing by name what cannot be honoured;
//! - `conversation`: what was said before, and which session it belongs to; `ids`: names of calls and answers;
//! - `references`: items that are named instead of sent again;
//! - `begin`, `deliver`: from a request to a run; `following`: from its tape to an answer; `workspaces`: where it works;
//! - `chat`, `responses`, `retrieve`, `models`, `embeddings`: the routes; `sse` and `whole`: in parts or at once; `chat_document`, `response_document`,
//!   `response_stream`: how answers are written;
//! - `error`: the one place where a refusal becomes OpenAI's error.

mod begin;
mod chat;
mod chat_document;
mod conversation;
mod deliver;
mod embeddings;
mod error;
mod fields;
mod following;
mod ids;
mod images;
mod items;
mod messages;
mod models;
mod params;
mod references;
mod response_document;
mod response_stream;
mod responses;
mod retrieve;
mod sse;
mod tools;
mod whole;
mod workspaces;

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::{Method, Uri};
use palyra_common::{ErrorCategory, StableErrorEnvelope, TokenScope};

pub(crate) use conversation::projection;

/// Reads a body and says only whether it can be honoured.
pub(crate) mod fuzzing {
    use crate::dispatch::Result;

    pub(crate) fn chat(body: &[u8]) -> Result<()> {
        super::chat::read(body).map(drop)
    }

    pub(crate) fn responses(body: &[u8]) -> Result<()> {
        super::responses::read(body).map(drop)
    }

    pub(crate) fn embeddings(body: &[u8]) -> Result<()> {
        super::embeddings::read(body).map(drop)
    }
}

use self::error::{OpenAiError, OpenAiResult};
use crate::app::App;
use crate::dispatch::{Caller, Refusal, Transport};

/// What all addresses of this interface begin with.
pub(crate) const PREFIX: &str = "/v1";

/// What `models:use` stands for here: a chat is a run of the caller's own.
const STANDS_FOR: [TokenScope; 3] = [TokenScope::RunsRead, TokenScope::RunsWrite, TokenScope::SessionsWrite];

/// The addresses below [`PREFIX`].
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/models", get(models::list))
        .route("/models/{*model}", get(models::show))
        .route("/chat/completions", post(chat::create))
        .route("/responses", post(responses::create))
        .route("/responses/{response_id}", get(retrieve::show))
        .route("/embeddings", post(embeddings::create))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
}

/// Whether a path belongs to this interface.
pub(crate) fn serves(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The answer to somebody who was not let in.
pub(crate) fn refused(envelope: StableErrorEnvelope) -> Response {
    OpenAiError::from(envelope).into_response()
}

/// The caller as far as this interface goes: with `models:use` it may have runs of its own, and nothing else.
fn user_of_models(app: &Arc<App>, caller: &Caller) -> OpenAiResult<Caller> {
    if !caller.has(TokenScope::ModelsUse) {
        let message = "this credential lacks the scope `models:use`";
        return Err(StableErrorEnvelope::new("command_denied", ErrorCategory::Policy, message)
            .hint("use an operator's or owner's token with that scope")
            .into());
    }
    let mut caller = caller.clone();
    caller.transport = Transport::OpenAi;
    let role = caller.principal.role;
    let reached = STANDS_FOR.into_iter().filter(|scope| role.reaches(*scope));
    caller.principal.scopes = reached.chain([TokenScope::ModelsUse]).collect();
    caller.check_rate(app)?;
    Ok(caller)
}

/// First parts of the addresses below the prefix.
const ROUTES: [&str; 4] = ["models", "chat", "responses", "embeddings"];

/// Whether a path without the prefix is one of this interface.
pub(crate) fn is_route(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    ROUTES.contains(&first)
}

async fn no_route(uri: Uri) -> OpenAiError {
    let path = uri.path();
    let message = format!("there is no route `{PREFIX}{path}`");
    let hint = match path {
        path if path.starts_with("/v1/") => "the base URL of the client has to end with one `/v1`",
        "/messages" | "/messages/count_tokens" | "/complete" => {
            "Anthropic's interface is not offered; use a client of OpenAI's interface with the base URL `http://127.0.0.1:7142/v1`"
        }
        "/completions" => "completions of a prompt are not offered; use `/v1/chat/completions` or `/v1/responses`",
        _ => "there are models, chat/completions, responses and embeddings below `/v1`",
    };
    StableErrorEnvelope::new("route_not_found", ErrorCategory::NotFound, message).hint(hint).into()
}

async fn no_method(method: Method, uri: Uri) -> OpenAiError {
    let message = format!("`{PREFIX}{}` does not support {method}", uri.path());
    StableErrorEnvelope::new("method_not_allowed", ErrorCategory::Validation, message)
        .hint("use GET for models and responses, and POST for everything else")
        .into()
}

/// A parameter that cannot be honoured; it is never left out in silence.
fn unsupported(param: &str, why: impl std::fmt::Display) -> Refusal {
    let mut envelope = StableErrorEnvelope::new(
        "unsupported_parameter",
        ErrorCategory::Validation,
        format!("`{param}` is not supported: {why}"),
    )
    .hint("omit it; docs/openai.md lists which parameters are honoured, ignored and refused");
    envelope.validation_errors.push(palyra_common::FieldError {
        field: param.to_owned(),
        code: "unsupported".to_owned(),
        message: why.to_string(),
    });
    envelope.into()
}
