//! The handle of one server: connects when it is first needed, again when it was lost, and not at all while it keeps failing.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use palyra_common::Environment;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::conforms::conforms;
use crate::connection::{ConnectFailure, Connection, within};
use crate::error::quoted;
use crate::handler::Shared;
use crate::tool_set::ServerFiles;
use crate::{McpError, McpOptions, McpOutcome, OfferedTool, Sent, ServerConfig, ServerName, ToolDescription, ToolSet};

/// How long a list is believed when the server gives no news of changes.
const LIST_AGE: Duration = Duration::from_secs(300);

/// Takes progress reports. Must not block.
pub type ProgressSink = Arc<dyn Fn(McpProgress) + Send + Sync>;

/// How far a call has come, in the server's words.
#[derive(Debug, Clone, PartialEq)]
pub struct McpProgress {
    /// How much is done.
    pub done: f64,
    /// How much there is, if known.
    pub total: Option<f64>,
    /// What is going on. Untrusted text.
    pub message: Option<String>,
}

/// One call of a tool.
#[derive(Clone)]
pub struct McpCall {
    /// The server's own name of the tool.
    pub tool: String,
    /// The arguments: an object.
    pub arguments: Value,
    /// The same after a crash as before it; the server is told, in case it wants to know.
    pub effect_id: String,
    /// Fires when the call shall stop.
    pub cancel: CancellationToken,
    /// How long the whole call may take, connecting included.
    pub deadline: Duration,
    /// Who wants to know how far it is.
    pub progress: Option<ProgressSink>,
}

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Whether there is a live connection.
    pub connected: bool,
    /// The revision of the protocol that was agreed on.
    pub protocol: Option<String>,
    /// What the server calls itself. Untrusted text.
    pub introduced_as: Option<String>,
    /// Attempts that failed since the last one that went well.
    pub failures: u32,
    /// How the last attempt failed.
    pub last_error: Option<String>,
    /// The end of what the server's program wrote to standard error, scrubbed. Untrusted text.
    pub last_words: String,
}

/// One server. Cheap to share; connects lazily.
pub struct McpServer {
    name: ServerName,
    config: ServerConfig,
    environment: Environment,
    options: McpOptions,
    files: ServerFiles,
    files_epoch: AtomicU64,
    retired: AtomicBool,
    changes: Arc<watch::Sender<u64>>,
    link: Mutex<Link>,
    /// The process of the newest connection, or zero.
    process: AtomicU32,
    status: StdMutex<ServerStatus>,
    judged: Mutex<Option<Judged>>,
}

#[derive(Default)]
struct Link {
    connection: Option<Arc<Connection>>,
    failures: u32,
    retry_at: Option<Instant>,
    last_error: String,
}

/// A judged list, and what it was judged from.
struct Judged {
    connection: Arc<Connection>,
    list_generation: u64,
    files_epoch: u64,
    at: Instant,
    set: Arc<ToolSet>,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl McpServer {
    pub(crate) fn new(
        name: ServerName,
        config: ServerConfig,
        environment: Environment,
        options: McpOptions,
        files: ServerFiles,
    ) -> Self {
        let status = ServerStatus {
            connected: false,
            protocol: None,
            introduced_as: None,
            failures: 0,
            last_error: None,
            last_words: String::new(),
        };
        Self {
            name,
            config,
            environment,
            options,
            files,
            files_epoch: AtomicU64::new(0),
            retired: AtomicBool::new(false),
            changes: Arc::new(watch::Sender::new(0)),
            link: Mutex::default(),
            process: AtomicU32::new(0),
            status: StdMutex::new(status),
            judged: Mutex::default(),
        }
    }

    /// The operator's name for it.
    #[must_use]
    pub const fn name(&self) -> &ServerName {
        &self.name
    }

    /// What it is connected to by.
    #[must_use]
    pub const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Counts up whenever [`tools`](Self::tools) may give something else than before.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How it is doing, without asking it.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Ok(link) = self.link.try_lock() {
            status.connected = link.connection.as_ref().is_some_and(|connection| connection.is_alive());
            if let Some(connection) = &link.connection {
                status.last_words = connection.last_words();
            }
        }
        status
    }

    /// The first process of the server's program as it was last started; it may have ended since. None of a web service.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        Some(self.process.load(Ordering::Acquire)).filter(|id| *id != 0)
    }

    /// Whether it is on this machine, where it may reach what its user can.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.config.transport.is_local()
    }

    /// Connects unless that was done already.
    pub async fn connect(&self) -> Result<(), McpError> {
        self.connection().await.map(drop)
    }

    /// Everything that the server lists, agreed to or not.
    pub async fn list_tools(&self) -> Result<Vec<ToolDescription>, McpError> {
        let connection = self.connection().await?;
        let tools = connection.list(self.options.list_timeout).await?;
        self.went_well().await;
        Ok(tools)
    }

    /// What the server offers, judged by the operator's files. Asks the server only when its list may have changed.
    pub async fn tools(&self) -> Result<Arc<ToolSet>, McpError> {
        self.judged().await.map(|(_, set)| set)
    }

    /// Calls a tool that is offered. Ends by the deadline and within 100 ms of a cancellation, whatever the server does.
    pub async fn call(&self, call: McpCall) -> Result<McpOutcome, McpError> {
        let deadline = Instant::now() + call.deadline;
        let (server, tool) = (self.name.to_string(), quoted(&call.tool));
        let prepare = async {
            let (connection, set) = self.judged().await?;
            let tool = set.find(&self.name, &call.tool)?;
            let arguments = self.checked_arguments(&call, tool)?;
            Ok((connection, arguments, tool.description.output_schema.clone()))
        };
        let cancelled = || McpError::Cancelled { server: server.clone(), tool: tool.clone(), sent: Sent::Never };
        let late = || McpError::CallTimeout {
            server: server.clone(),
            tool: tool.clone(),
            limit: call.deadline,
            sent: Sent::Never,
        };
        let (connection, arguments, promised) = within(prepare, &call.cancel, deadline, cancelled, late).await?;
        let mut outcome = connection.call(&call, arguments, deadline).await?;
        if let Some(structured) =
            outcome.structured.take_if(|found| promised.as_ref().is_some_and(|promised| !conforms(found, promised)))
        {
            tracing::warn!(server, tool, "a structured result does not match its schema; it is treated as text");
            if outcome.text.is_empty() {
                outcome.text = structured.to_string();
            }
        }
        Ok(outcome)
    }

    /// Ends the connection in good order. The next use connects again.
    pub async fn shutdown(&self) {
        let connection = self.link.lock().await.connection.take();
        self.judged.lock().await.take();
        if let Some(connection) = connection {
            self.note(|status| status.last_words = connection.last_words());
            connection.close().await;
        }
    }

    /// From now on the server is no longer one of ours; handles that are still held find nothing.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        if let Ok(mut link) = self.link.try_lock() {
            link.connection = None;
        }
        if let Ok(mut judged) = self.judged.try_lock() {
            *judged = None;
        }
        self.changes.send_modify(|count| *count += 1);
    }

    /// The operator's files may have changed.
    pub(crate) fn files_changed(&self) {
        self.files_epoch.fetch_add(1, Ordering::AcqRel);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Every argument must be one that the schema names: the classification says what the named ones decide, and an argument that it
    /// does not know would pass unexamined.
    fn checked_arguments(&self, call: &McpCall, tool: &OfferedTool) -> Result<Map<String, Value>, McpError> {
        let invalid = |reason: String| McpError::ArgumentsInvalid {
            server: self.name.to_string(),
            tool: quoted(&call.tool),
            reason,
        };
        let arguments = match &call.arguments {
            Value::Object(map) => map.clone(),
            Value::Null => Map::new(),
            _ => return Err(invalid("expected an object".to_owned())),
        };
        let known: Vec<&str> = tool.description.argument_names().collect();
        match arguments.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(invalid(format!("the schema has no `{}`", quoted(unknown)))),
            None => Ok(arguments),
        }
    }

    async fn judged(&self) -> Result<(Arc<Connection>, Arc<ToolSet>), McpError> {
        let connection = self.connection().await?;
        let mut judged = self.judged.lock().await;
        // Read before the list is: a change that comes in meanwhile makes the new list stale again.
        let list_generation = connection.list_generation();
        let files_epoch = self.files_epoch.load(Ordering::Acquire);
        if let Some(known) = judged.as_ref()
            && Arc::ptr_eq(&known.connection, &connection)
            && known.list_generation == list_generation
            && known.files_epoch == files_epoch
            && known.at.elapsed() < LIST_AGE
        {
            return Ok((connection, Arc::clone(&known.set)));
        }
        *judged = None;
        let tools = connection.list(self.options.list_timeout).await?;
        self.went_well().await;
        let (name, files) = (self.name.clone(), self.files.clone());
        let set = tokio::task::spawn_blocking(move || ToolSet::load(&name, tools, &files))
            .await
            .map_err(|error| McpError::Internal { reason: error.to_string() })??;
        let set = Arc::new(set);
        let at = Instant::now();
        *judged = Some(Judged {
            connection: Arc::clone(&connection),
            list_generation,
            files_epoch,
            at,
            set: Arc::clone(&set),
        });
        Ok((connection, set))
    }

    /// The live connection, or a new one, or a quick refusal while the server keeps failing.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let mut link = self.link.lock().await;
        if self.retired.load(Ordering::Acquire) {
            link.connection = None;
            return Err(McpError::ServerNotFound { name: self.name.to_string(), suggestion: None });
        }
        if let Some(connection) = &link.connection {
            if connection.is_alive() {
                return Ok(Arc::clone(connection));
            }
            self.note(|status| status.last_words = connection.last_words());
            link.connection = None;
        }
        if let Some(wait) = link.retry_at.and_then(|at| at.checked_duration_since(Instant::now())) {
            return Err(McpError::Unavailable { server: self.name.to_string(), last: link.last_error.clone(), wait });
        }
        let shared = Arc::new(Shared::new(Arc::clone(&self.changes), self.options.progress_interval));
        match Connection::open(&self.name, &self.config, &self.environment, &self.options, shared).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                self.process.store(connection.process_id().unwrap_or(0), Ordering::Release);
                self.note(|status| {
                    status.protocol = Some(connection.protocol.clone());
                    status.introduced_as.clone_from(&connection.introduced_as);
                });
                // Until something was exchanged this counts as one more failure: a server that dies after each handshake is not
                // started over and over.
                self.count_failure(&mut link, "it closed the connection before answering".to_owned());
                link.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(ConnectFailure { error, last_words }) => {
                tracing::warn!(server = %self.name, %error, "an MCP server is unavailable");
                self.count_failure(&mut link, error.to_string());
                self.note(|status| {
                    status.failures = link.failures;
                    status.last_error = Some(error.to_string());
                    status.last_words = last_words;
                });
                Err(error)
            }
        }
    }

    fn count_failure(&self, link: &mut Link, error: String) {
        let factor = 2u32.saturating_pow(link.failures.min(16));
        let pause = self.options.first_backoff.saturating_mul(factor).min(self.options.last_backoff);
        link.failures += 1;
        link.retry_at = Some(Instant::now() + pause);
        link.last_error = error;
    }

    async fn went_well(&self) {
        let mut link = self.link.lock().await;
        link.failures = 0;
        link.retry_at = None;
        self.note(|status| {
            status.failures = 0;
            status.last_error = None;
        });
    }

    fn note(&self, change: impl FnOnce(&mut ServerStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
