//! What a server may do to its client: report progress and say that its list changed. Everything else it asks for is refused.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, ErrorData, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::watch;

use crate::server::{McpProgress, ProgressSink};

/// Longest progress message that is passed on.
const MAX_PROGRESS_TEXT: usize = 500;

/// What the transport, the handler and the callers of one connection tell each other.
#[derive(Debug)]
pub(crate) struct Shared {
    list_generation: AtomicU64,
    list_changed: Arc<watch::Sender<u64>>,
    progress: Mutex<HashMap<ProgressToken, Route>>,
    progress_interval: Duration,
    oversized: Mutex<HashSet<RequestId>>,
    received: AtomicU64,
    closed: Mutex<Option<Closed>>,
}

/// Why a connection was ended from this side, or how its end looked from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// The stream ended.
    EndOfOutput,
    /// It wrote too much that is not the protocol.
    Babbling,
    /// It sent more messages than anybody needs.
    Flooding,
    /// It sent something oversized that could not be told apart.
    Oversized,
    /// It sends back what it is sent.
    Echoing,
    /// It let several calls run into their deadline without a word.
    Silent,
}

impl Closed {
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::EndOfOutput => "its output ended",
            Self::Babbling => "it printed something other than protocol messages",
            Self::Flooding => "it sends too many messages",
            Self::Oversized => "it sent a message that is too large",
            Self::Echoing => "it repeats what it is sent, so it is not an MCP server",
            Self::Silent => "it left several calls unanswered",
        }
    }
}

struct Route {
    sink: ProgressSink,
    last: Option<Instant>,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Route").field("last", &self.last).finish_non_exhaustive()
    }
}

/// A registered progress sink; dropping it ends the reports.
pub(crate) struct ProgressRoute<'a> {
    shared: &'a Shared,
    token: ProgressToken,
}

impl Drop for ProgressRoute<'_> {
    fn drop(&mut self) {
        lock(&self.shared.progress).remove(&self.token);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(list_changed: Arc<watch::Sender<u64>>, progress_interval: Duration) -> Self {
        Self {
            list_generation: AtomicU64::new(0),
            list_changed,
            progress: Mutex::default(),
            progress_interval,
            oversized: Mutex::default(),
            received: AtomicU64::new(0),
            closed: Mutex::default(),
        }
    }

    /// Rises each time the server says that its list changed.
    pub(crate) fn list_generation(&self) -> u64 {
        self.list_generation.load(Ordering::Acquire)
    }

    pub(crate) fn note_list_changed(&self) {
        self.list_generation.fetch_add(1, Ordering::AcqRel);
        self.list_changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn note_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    /// How many messages have come in so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub(crate) fn note_oversized(&self, id: RequestId) {
        lock(&self.oversized).insert(id);
    }

    /// Whether the answer to this request was beyond the limit.
    pub(crate) fn was_oversized(&self, id: &RequestId) -> bool {
        lock(&self.oversized).remove(id)
    }

    /// The first reason stays: what follows from it is less telling.
    pub(crate) fn note_closed(&self, why: Closed) {
        lock(&self.closed).get_or_insert(why);
    }

    pub(crate) fn closed(&self) -> Option<Closed> {
        *lock(&self.closed)
    }

    pub(crate) fn route(&self, token: ProgressToken, sink: ProgressSink) -> ProgressRoute<'_> {
        lock(&self.progress).insert(token.clone(), Route { sink, last: None });
        ProgressRoute { shared: self, token }
    }

    fn progress(&self, report: ProgressNotificationParam) {
        let sink = {
            let mut routes = lock(&self.progress);
            let Some(route) = routes.get_mut(&report.progress_token) else {
                return;
            };
            let now = Instant::now();
            if route.last.is_some_and(|last| now.duration_since(last) < self.progress_interval) {
                return;
            }
            route.last = Some(now);
            Arc::clone(&route.sink)
        };
        let message = report.message.map(|text| text.chars().take(MAX_PROGRESS_TEXT).collect());
        sink(McpProgress { done: report.progress, total: report.total, message });
    }
}

/// The client's side of one connection.
#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) shared: Arc<Shared>,
}

fn refused(what: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("this client does not offer {what} to MCP servers"), None)
}

#[expect(deprecated, reason = "newer revisions drop sampling and roots; servers of older ones still ask")]
impl ClientHandler for Handler {
    async fn create_message(
        &self,
        _: rmcp::model::CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        Err(refused("model"))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(refused("roots"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(refused("person to ask"))
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.shared.progress(report);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.shared.note_list_changed();
    }

    fn get_info(&self) -> ClientConfig {
        // No capabilities: what is not announced need not be refused.
        let client = Implementation::new("palyra", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
