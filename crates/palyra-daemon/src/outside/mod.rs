//! Tools beside the built-in ones: those of outside servers and of skills, as they are now.
//!
//! The operator edits files; before a run begins they are looked at again, servers that are new are asked for their tools, and a whole new
//! registry takes the place of the old one. A server that is slow or dead delays a run by a bounded time. The run then says that it does without, and the
//! server goes on starting in the background: whoever looks next finds its tools.
//!
//! After a restart nothing is connected before somebody needs it. Runs that are resumed wait for the first look, calls that were approved before the restart for
//! the server or the skill that they are for.

mod tool;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use palyra_agent::{ToolDiscovery, UnavailableSource};
use palyra_mcp::{McpRegistry, McpServer, ServerName, ToolSet};
use palyra_tools::{CheckpointStore, Registry, SharedRegistry, Tool};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use self::tool::OutsideTool;
use crate::skills::Skills;

/// How long a run waits for servers that have not listed their tools yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tools of this daemon: those it is built with, those of outside servers and those of skills.
pub(crate) struct OutsideTools {
    servers: McpRegistry,
    own: Vec<Arc<dyn Tool>>,
    skills: Arc<Skills>,
    registry: SharedRegistry,
    checkpoints: Arc<CheckpointStore>,
    /// What the registry in force was made from.
    offered: Mutex<Offered>,
    /// Which servers the registry in force has to do without.
    unavailable: StdMutex<Vec<UnavailableSource>>,
    /// Whether the sources were asked since the start.
    asked_once: OnceCell<()>,
}

/// What outside servers and skills offered.
#[derive(Default)]
struct Offered {
    servers: Vec<Arc<ToolSet>>,
    /// Changes whenever a skill is bound anew.
    skills: u64,
    /// Servers that were asked and had not answered when patience ended.
    pending: BTreeMap<ServerName, Listing>,
}

/// A server that was asked for its tools. It goes on answering when nobody waits any more.
struct Listing {
    server: Arc<McpServer>,
    asked_at: Instant,
    answer: Shared<BoxFuture<'static, Result<Arc<ToolSet>, String>>>,
}

impl Listing {
    fn begin(server: Arc<McpServer>) -> Self {
        let task = tokio::spawn({
            let server = Arc::clone(&server);
            async move { server.tools().await }
        });
        let answer = async move {
            match task.await {
                Ok(Ok(set)) => Ok(set),
                Ok(Err(error)) => Err(error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        };
        Self { server, asked_at: Instant::now(), answer: answer.boxed().shared() }
    }

    /// What the server offers, if it says so while anybody who asked at the beginning would still wait.
    async fn within_patience(self) -> (Self, Option<Result<Arc<ToolSet>, String>>) {
        let answer = tokio::time::timeout_at(self.asked_at + PATIENCE, self.answer.clone()).await.ok();
        (self, answer)
    }
}

impl OutsideTools {
    pub(crate) fn new(
        servers: McpRegistry,
        own: Vec<Arc<dyn Tool>>,
        skills: Arc<Skills>,
        registry: SharedRegistry,
        checkpoints: Arc<CheckpointStore>,
    ) -> Self {
        Self {
            servers,
            own,
            skills,
            registry,
            checkpoints,
            offered: Mutex::default(),
            unavailable: StdMutex::default(),
            asked_once: OnceCell::new(),
        }
    }

    /// The tools there are now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.current()
    }

    /// Brings the registry up to date.
    pub(crate) async fn refresh(&self) {
        let mut offered = self.offered.lock().await;
        if let Err(error) = self.servers.reload_if_changed() {
            // What was agreed to before stays; what the files say now is nothing that could be agreed to.
            tracing::error!(%error, "the MCP servers are unchanged");
        }
        let mut pending = std::mem::take(&mut offered.pending);
        let listings = self.servers.servers().into_iter().map(|server| match pending.remove(server.name()) {
            Some(listing) if Arc::ptr_eq(&listing.server, &server) => listing,
            _ => Listing::begin(server),
        });
        let asked = futures::future::join_all(listings.map(Listing::within_patience)).await;
        let (mut sets, mut unavailable) = (Vec::new(), Vec::new());
        for (listing, answer) in asked {
            let name = listing.server.name().clone();
            let reason = match answer {
                Some(Ok(set)) => {
                    sets.push((listing.server, set));
                    continue;
                }
                Some(Err(error)) => {
                    tracing::warn!(server = %name, %error, "an MCP server offers no tools");
                    format!("it is not available; `palyra mcp test {name}` says why")
                }
                None => {
                    tracing::warn!(server = %name, "an MCP server did not list its tools in time");
                    offered.pending.insert(name.clone(), listing);
                    format!("it had not listed its tools after {} s", PATIENCE.as_secs())
                }
            };
            unavailable.push(UnavailableSource { source: format!("mcp:{name}"), reason });
        }
        *self.unavailable.lock().unwrap_or_else(PoisonError::into_inner) = unavailable;
        let (generation, skills) = self.skills.tools().await;
        let unchanged = generation == offered.skills
            && sets.len() == offered.servers.len()
            && sets.iter().zip(&offered.servers).all(|((_, set), known)| Arc::ptr_eq(set, known));
        if unchanged {
            return;
        }
        match self.registry_of(&sets, skills) {
            Ok(registry) => {
                self.registry.replace(registry);
                offered.servers = sets.into_iter().map(|(_, set)| set).collect();
                offered.skills = generation;
            }
            Err(error) => tracing::error!(%error, "the tools of MCP servers and skills cannot be offered"),
        }
    }

    /// Ends all connections.
    pub(crate) async fn shutdown(&self) {
        self.servers.shutdown().await;
    }

    fn registry_of(
        &self,
        sets: &[(Arc<McpServer>, Arc<ToolSet>)],
        skills: Vec<Arc<dyn Tool>>,
    ) -> Result<Registry, palyra_tools::ToolError> {
        let mut builder = Registry::builder().with_all(self.own.iter().cloned()).with_all(skills);
        for (server, set) in sets {
            for offered in &set.offered {
                builder = builder.with(Arc::new(OutsideTool::new(Arc::clone(server), offered, &self.checkpoints)?));
            }
        }
        builder.build()
    }
}

#[async_trait]
impl ToolDiscovery for OutsideTools {
    async fn ready(&self) {
        self.asked_once.get_or_init(|| self.refresh()).await;
    }

    /// Models make up names, so only that of a configured server or of an installed skill is worth a look.
    async fn find(&self, tool: &str) {
        let of_server = self.servers.servers().iter().any(|server| {
            let prefix = server.name().tool_name("");
            tool.starts_with(&prefix)
        });
        if of_server || self.skills.may_have(tool) {
            self.refresh().await;
        }
    }

    fn unavailable(&self) -> Vec<UnavailableSource> {
        self.unavailable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
