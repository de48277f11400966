//! One live connection to a server: the handshake, the list, calls, and how each of them ends in time.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use palyra_common::Environment;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion,
    RequestId, RequestMetaObject, ServerResult, SubscriptionFilter,
};
use rmcp::service::{ClientInitializeError, PeerRequestOptions, RequestHandle, RunningService};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::error::quoted;
use crate::handler::{Closed, Handler, Shared};
use crate::http::HttpError;
use crate::process::ServerProcess;
use crate::server::{McpCall, ProgressSink};
use crate::stdio::StdioTransport;
use crate::{McpError, McpOptions, McpOutcome, Sent, ServerConfig, ServerName, ToolDescription, TransportConfig};

/// Most tools of one server that are looked at; each costs a place in the model's context.
const MAX_TOOLS: usize = 1000;

/// Under which name a call carries its effect's id, so that a server that wants to can tell a repetition.
const EFFECT_ID: &str = "palyra.dev/effect-id";

/// How long telling the server to stop may take. With it a cancelled call still returns within 100 ms.
const CANCEL_PATIENCE: Duration = Duration::from_millis(50);

/// So many calls in a row that ran into their deadline without a word from the server end the connection.
const MAX_SILENT_TIMEOUTS: u32 = 2;

/// How long the probe for the newest revision waits at most. Shorter than the SDK's own limit of ten seconds: a late answer to a probe that the SDK
/// gave up fails the handshake, one to a probe that the transport gave up is dropped.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);

/// How long a program may take to be reaped once its output has ended.
const REAP_PATIENCE: Duration = Duration::from_millis(250);

/// A failed attempt to connect, and what the server's program said.
pub(crate) struct ConnectFailure {
    pub(crate) error: McpError,
    pub(crate) last_words: String,
}

/// A live connection. Dropping it ends the server's process.
pub(crate) struct Connection {
    server: ServerName,
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, Handler>>>,
    process: Mutex<Option<Arc<ServerProcess>>>,
    shared: Arc<Shared>,
    subscription: Option<JoinHandle<()>>,
    silent_timeouts: AtomicU32,
    limit: usize,
    /// The revision of the protocol that was agreed on.
    pub(crate) protocol: String,
    /// What the server calls itself.
    pub(crate) introduced_as: Option<String>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Connection {
    /// Starts or reaches the server and agrees on a revision of the protocol.
    pub(crate) async fn open(
        server: &ServerName,
        config: &ServerConfig,
        environment: &Environment,
        options: &McpOptions,
        shared: Arc<Shared>,
    ) -> Result<Self, ConnectFailure> {
        let without_words = |error| ConnectFailure { error, last_words: String::new() };
        let handler = Handler { shared: Arc::clone(&shared) };
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28, ProtocolVersion::V_2025_11_25],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let (served, process) = match &config.transport {
            TransportConfig::Stdio(stdio) => {
                let (process, input, output) =
                    ServerProcess::start(server, stdio, environment).map_err(without_words)?;
                let patience = (options.connect_timeout / 2).min(PROBE_PATIENCE);
                let transport = StdioTransport::new(output, input, options.output_bytes, patience, Arc::clone(&shared));
                let served = timeout(options.connect_timeout, handler.serve_with_lifecycle(transport, lifecycle)).await;
                (served, Some(process))
            }
            TransportConfig::Http(http) => {
                let transport =
                    crate::http::transport(http, environment, options, Arc::clone(&shared)).map_err(without_words)?;
                (timeout(options.connect_timeout, handler.serve_with_lifecycle(transport, lifecycle)).await, None)
            }
        };
        let running = match served {
            Ok(Ok(running)) => running,
            failed => {
                let mut last_words = String::new();
                let mut ending = None;
                if let Some(process) = &process {
                    ending = process.ending(REAP_PATIENCE).await;
                    last_words = process.last_words();
                }
                let failed_because = |reason| McpError::ConnectFailed { server: server.to_string(), reason };
                let error = match (failed, ending, shared.closed()) {
                    (Ok(Err(_)), _, Some(why)) if why != Closed::EndOfOutput => failed_because(why.reason().to_owned()),
                    // The program's own error is the best that can be said about it. After a timeout it may have ended only because we hung up.
                    (Ok(Err(_)), Some(ending), _) => failed_because(match last_line(&last_words) {
                        Some(line) => format!("{ending}: {line}"),
                        None => ending,
                    }),
                    (Ok(Err(error)), None, _) => {
                        McpError::ConnectFailed { server: server.to_string(), reason: handshake_failure(&error) }
                    }
                    _ => McpError::ConnectTimeout { server: server.to_string(), limit: options.connect_timeout },
                };
                return Err(ConnectFailure { error, last_words });
            }
        };
        Self::established(server, running, process, shared, options).map_err(without_words)
    }

    fn established(
        server: &ServerName,
        running: RunningService<RoleClient, Handler>,
        process: Option<ServerProcess>,
        shared: Arc<Shared>,
        options: &McpOptions,
    ) -> Result<Self, McpError> {
        let peer = running.peer().clone();
        let info = peer.peer_info();
        let protocol = info.as_ref().map(|info| info.protocol_version.clone()).unwrap_or_default();
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&protocol) {
            let reason = format!("it uses protocol revision `{}`, which is not supported", quoted(protocol.as_str()));
            return Err(McpError::ConnectFailed { server: server.to_string(), reason });
        }
        let introduced_as = info
            .as_ref()
            .and_then(|info| info.server_info.as_ref())
            .map(|info| quoted(&format!("{} {}", info.name, info.version)));
        let announces_changes = info
            .as_ref()
            .and_then(|info| info.capabilities.tools.as_ref())
            .is_some_and(|tools| tools.list_changed == Some(true));
        // Newer revisions send such news only to who asked for it.
        let subscription = (announces_changes && !protocol.has_initialize())
            .then(|| tokio::spawn(follow_list_changes(peer.clone(), Arc::clone(&shared))));
        Ok(Self {
            server: server.clone(),
            peer,
            running: Mutex::new(Some(running)),
            process: Mutex::new(process.map(Arc::new)),
            shared,
            subscription,
            silent_timeouts: AtomicU32::new(0),
            limit: options.output_bytes,
            protocol: protocol.as_str().to_owned(),
            introduced_as,
        })
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.peer.is_transport_closed() && self.shared.closed().is_none()
    }

    /// Rises each time the server says that its list changed.
    pub(crate) fn list_generation(&self) -> u64 {
        self.shared.list_generation()
    }

    /// What the server's program wrote to standard error last.
    pub(crate) fn last_words(&self) -> String {
        self.process().map(|process| process.last_words()).unwrap_or_default()
    }

    /// The first process of the server's program.
    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process()?.id()
    }

    fn process(&self) -> Option<Arc<ServerProcess>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All tools, page by page.
    pub(crate) async fn list(&self, patience: Duration) -> Result<Vec<ToolDescription>, McpError> {
        let deadline = Instant::now() + patience;
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        let mut seen = HashSet::new();
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let late = || McpError::CallTimeout {
                server: self.server.to_string(),
                tool: "tools/list".to_owned(),
                limit: patience,
                sent: Sent::Never,
            };
            let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
            let mut handle = match timeout_at(deadline, sent).await {
                Ok(Ok(handle)) => handle,
                Ok(Err(error)) => return Err(self.failure(error, None).await),
                Err(_) => return Err(late()),
            };
            let id = handle.id.clone();
            let answer = match timeout_at(deadline, &mut handle.rx).await {
                Ok(Ok(Ok(answer))) => answer,
                Ok(Ok(Err(error))) => return Err(self.failure(error, Some(&id)).await),
                Ok(Err(_)) => return Err(self.failure(ServiceError::TransportClosed, Some(&id)).await),
                Err(_) => {
                    stop(handle, "took too long").await;
                    return Err(late());
                }
            };
            let ServerResult::ListToolsResult(page) = answer else {
                return Err(self.malformed("it is not a tool list"));
            };
            tools.extend(page.tools.into_iter().map(ToolDescription::from_protocol));
            if tools.len() > MAX_TOOLS {
                return Err(McpError::TooManyTools { server: self.server.to_string(), limit: MAX_TOOLS });
            }
            match page.next_cursor.filter(|next| !next.is_empty()) {
                None => return Ok(tools),
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                Some(_) => return Err(self.malformed("its tool list repeats pages")),
            }
        }
    }

    /// One call. Returns by the deadline and within 100 ms of a cancellation, whatever the server does.
    pub(crate) async fn call(
        &self,
        call: &McpCall,
        arguments: Map<String, Value>,
        deadline: Instant,
    ) -> Result<McpOutcome, McpError> {
        let params = CallToolRequestParams::new(call.tool.clone()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(EFFECT_ID.to_owned(), Value::String(call.effect_id.clone()));
        let received = self.shared.received();
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options().with_meta(meta));
        let mut handle = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(self.cancelled(call, Sent::Never)),
            sent = timeout_at(deadline, sent) => match sent {
                Ok(Ok(handle)) => handle,
                Ok(Err(error)) => return Err(self.failure(error, None).await),
                Err(_) => return Err(self.late(call, received, Sent::Never)),
            },
        };
        let id = handle.id.clone();
        let _route =
            call.progress.clone().map(|sink: ProgressSink| self.shared.route(handle.progress_token.clone(), sink));
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer,
            () = call.cancel.cancelled() => {
                stop(handle, "cancelled").await;
                return Err(self.cancelled(call, Sent::Perhaps));
            }
            () = tokio::time::sleep_until(deadline) => {
                stop(handle, "took too long").await;
                return Err(self.late(call, received, Sent::Perhaps));
            }
        };
        let refused =
            |wanted| McpError::InputRefused { server: self.server.to_string(), tool: quoted(&call.tool), wanted };
        match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
            Ok(answer) => {
                self.silent_timeouts.store(0, Ordering::Relaxed);
                match answer {
                    ServerResult::CallToolResult(result) => Ok(McpOutcome::from_protocol(result)),
                    ServerResult::EmptyResult(_) => {
                        Ok(McpOutcome { text: String::new(), structured: None, is_error: false })
                    }
                    ServerResult::InputRequiredResult(_) => Err(refused("further input")),
                    ServerResult::CreateTaskResult(_) => Err(refused("a call that continues in the background")),
                    _ => Err(self.malformed("it is not a tool result")),
                }
            }
            Err(error) => Err(self.failure(error, Some(&id)).await),
        }
    }

    fn cancelled(&self, call: &McpCall, sent: Sent) -> McpError {
        McpError::Cancelled { server: self.server.to_string(), tool: quoted(&call.tool), sent }
    }

    /// A call that ran into its deadline. A server that has said nothing at all for several of them is given up.
    fn late(&self, call: &McpCall, received: u64, sent: Sent) -> McpError {
        if self.shared.received() != received {
            self.silent_timeouts.store(0, Ordering::Relaxed);
        } else if self.silent_timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_SILENT_TIMEOUTS {
            self.shared.note_closed(Closed::Silent);
        }
        McpError::CallTimeout { server: self.server.to_string(), tool: quoted(&call.tool), limit: call.deadline, sent }
    }

    fn malformed(&self, reason: &str) -> McpError {
        McpError::AnswerMalformed { server: self.server.to_string(), reason: reason.to_owned() }
    }

    async fn failure(&self, error: ServiceError, id: Option<&RequestId>) -> McpError {
        let server = self.server.to_string();
        if id.is_some_and(|id| self.shared.was_oversized(id)) || self.shared.closed() == Some(Closed::Oversized) {
            return McpError::OutputTooLarge { server, limit: self.limit };
        }
        match error {
            ServiceError::McpError(error) => {
                McpError::ServerRefused { server, code: error.code.0, message: quoted(&error.message) }
            }
            ServiceError::UnexpectedResponse => self.malformed("the answer does not match the request"),
            ServiceError::TransportSend(error) => {
                let causes = chain(error.error.as_ref());
                McpError::Disconnected { server, reason: quoted(&causes) }
            }
            ServiceError::TransportClosed => {
                let ending = match self.process() {
                    Some(process) => process.ending(REAP_PATIENCE).await,
                    None => None,
                };
                let closed = self.shared.closed().map(|why| why.reason().to_owned());
                let reason = ending.or(closed).unwrap_or_else(|| "the connection ended".to_owned());
                McpError::Disconnected { server, reason }
            }
            other => McpError::Disconnected { server, reason: quoted(&other.to_string()) },
        }
    }

    /// Ends the session and the process in good order, and in bounded time.
    pub(crate) async fn close(&self) {
        if let Some(subscription) = &self.subscription {
            subscription.abort();
        }
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut running) = running {
            let _ = running.close_with_timeout(Duration::from_secs(2)).await;
        }
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process.and_then(Arc::into_inner) {
            process.stop().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(subscription) = &self.subscription {
            subscription.abort();
        }
    }
}

/// The last line that says something.
fn last_line(words: &str) -> Option<String> {
    words.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(quoted)
}

/// Tells the server that nobody waits any more, without waiting for it.
async fn stop(handle: RequestHandle<RoleClient>, reason: &str) {
    let _ = timeout(CANCEL_PATIENCE, handle.cancel(Some(reason.to_owned()))).await;
}

async fn follow_list_changes(peer: Peer<RoleClient>, shared: Arc<Shared>) {
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    match peer.listen(wanted).await {
        Ok(mut subscription) => {
            while let Ok(Some(_)) = subscription.next().await {
                shared.note_list_changed();
            }
        }
        Err(error) => tracing::debug!(%error, "an MCP server does not announce changes of its tool list"),
    }
}

/// Why a handshake failed, in words that help the operator.
fn handshake_failure(error: &ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return "it requires authorization; add a header with `--header Authorization=env:NAME`".to_owned();
    }
    quoted(&match error {
        ClientInitializeError::TransportError { error, .. } => match error.error.downcast_ref::<HttpError>() {
            Some(HttpError::UnexpectedContentType(Some(kind))) => {
                format!("it answered with content of the type {kind}, so it is not an MCP server")
            }
            Some(HttpError::Client(error)) if error.is_connect() => format!("no connection: {}", root_cause(error)),
            Some(HttpError::Client(error)) => chain(error),
            _ => chain(error.error.as_ref()),
        },
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return handshake_failure(fallback),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        other => other.to_string(),
    })
}

/// An error with its causes, on one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}

/// What an error began with.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// Waits for something, unless the caller stops waiting or the deadline passes first.
pub(crate) async fn within<T>(
    work: impl Future<Output = Result<T, McpError>>,
    cancel: &CancellationToken,
    deadline: Instant,
    cancelled: impl FnOnce() -> McpError,
    late: impl FnOnce() -> McpError,
) -> Result<T, McpError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancelled()),
        result = timeout_at(deadline, work) => result.unwrap_or_else(|_| Err(late())),
    }
}
