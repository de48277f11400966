//! Every command at its address. There is no handler per command: the catalogue says where a command is and how its parameters are read.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use http::header::IF_MATCH;
use http::{HeaderMap, HeaderName, HeaderValue};
use palyra_client::command::{COMMANDS, Command, CommandSpec, HttpMethod, STREAM_COMMANDS, StreamCommand};
use palyra_common::AcpCommand;

use super::error::{ApiError, ApiResult};
use super::extract::{Body, PathId};
use super::ndjson;
use crate::app::App;
use crate::dispatch::{self, Asked, Caller, Refusal};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Where programs find the API and the console finds the same.
const API: &str = "/api/v1";

/// All commands below a prefix.
pub(super) fn routes(prefix: &str) -> Router<Arc<App>> {
    let at = |spec: &CommandSpec| spec.path.replacen(API, prefix, 1);
    let once = COMMANDS.iter().map(|spec| (at(spec), method(spec, unary(spec.name))));
    let streams = STREAM_COMMANDS.iter().map(|spec| (at(spec), method(spec, stream(spec.name))));
    once.chain(streams).fold(Router::new(), |router, (path, method)| router.route(&path, method))
}

type Handler = Box<dyn FnOnce(HttpMethod) -> MethodRouter<Arc<App>>>;

fn method(spec: &CommandSpec, handler: Handler) -> MethodRouter<Arc<App>> {
    handler(spec.method)
}

fn unary(name: AcpCommand) -> Handler {
    Box::new(move |method| match method {
        HttpMethod::Get => get(
            move |State(app): State<Arc<App>>,
                  Extension(caller): Extension<Caller>,
                  id: PathId,
                  RawQuery(query): RawQuery,
                  headers: HeaderMap| async move {
                let command = Command::from_query(name, id.get(), query.as_deref().unwrap_or_default());
                answer(&app, &caller, name, command, &headers).await
            },
        ),
        HttpMethod::Post => post(
            move |State(app): State<Arc<App>>,
                  Extension(caller): Extension<Caller>,
                  id: PathId,
                  headers: HeaderMap,
                  Body(body): Body| async move {
                let command = Command::from_body(name, id.get(), &body);
                answer(&app, &caller, name, command, &headers).await
            },
        ),
    })
}

fn stream(name: AcpCommand) -> Handler {
    Box::new(move |method| match method {
        HttpMethod::Get => get(
            move |State(app): State<Arc<App>>,
                  Extension(caller): Extension<Caller>,
                  id: PathId,
                  RawQuery(query): RawQuery| async move {
                let command = StreamCommand::from_query(name, id.get(), query.as_deref().unwrap_or_default());
                documents(&app, &caller, name, command).await
            },
        ),
        HttpMethod::Post => post(
            move |State(app): State<Arc<App>>, Extension(caller): Extension<Caller>, id: PathId, Body(body): Body| async move {
                let command = StreamCommand::from_body(name, id.get(), &body);
                documents(&app, &caller, name, command).await
            },
        ),
    })
}

type Parsed<T> = Option<Result<T, palyra_common::StableErrorEnvelope>>;

fn parsed<T>(name: AcpCommand, command: Parsed<T>) -> ApiResult<T> {
    match command {
        Some(command) => Ok(command.map_err(Refusal::from)?),
        None => Err(ApiError::internal(format!("`{name}` is routed and not in the catalogue"))),
    }
}

async fn answer(
    app: &Arc<App>,
    caller: &Caller,
    name: AcpCommand,
    command: Parsed<Command>,
    headers: &HeaderMap,
) -> ApiResult<Response> {
    let asked = Asked {
        command: parsed(name, command)?,
        idempotency_key: header(headers, &IDEMPOTENCY_KEY)?.map(str::to_owned),
        expected_version: version(headers)?,
    };
    let answer = dispatch::dispatch(app, caller, asked).await?;
    let replayed = answer.is_replayed();
    let mut response = Json(answer).into_response();
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

async fn documents(
    app: &Arc<App>,
    caller: &Caller,
    name: AcpCommand,
    command: Parsed<StreamCommand>,
) -> ApiResult<Response> {
    let documents = dispatch::open(app, caller, parsed(name, command)?).await?;
    Ok(ndjson::respond(documents, app.closing.clone()))
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> ApiResult<Option<&'a str>> {
    match headers.get(name) {
        None => Ok(None),
        Some(value) => match value.to_str() {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(ApiError::field(name.as_str(), "it is not text")),
        },
    }
}

/// `If-Match: "7"` asks that the thing is still at version 7.
fn version(headers: &HeaderMap) -> ApiResult<Option<u64>> {
    let Some(text) = header(headers, &IF_MATCH)? else { return Ok(None) };
    let number = text.trim().trim_start_matches('"').trim_end_matches('"');
    match number.parse() {
        Ok(version) => Ok(Some(version)),
        Err(_) => Err(ApiError::field("if-match", format!("`{text}` is not a version"))),
    }
}
