//! Tools beside the built-in ones: those of outside servers and of skills, as they are now.
//!
//! The operator edits files; before a run begins they are looked at again, servers that are new are asked for their tools, and a whole new
//! registry takes the place of the old one. A server that is slow or dead delays a run by a bounded time and is then simply not there.

mod tool;

use std::sync::Arc;
use std::time::Duration;

use palyra_mcp::{McpRegistry, McpServer, ToolSet};
use palyra_tools::{CheckpointStore, Registry, SharedRegistry, Tool};
use tokio::sync::Mutex;

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
}

/// What outside servers and skills offered.
#[derive(Default)]
struct Offered {
    servers: Vec<Arc<ToolSet>>,
    /// Changes whenever a skill is bound anew.
    skills: u64,
}

impl OutsideTools {
    pub(crate) fn new(
        servers: McpRegistry,
        own: Vec<Arc<dyn Tool>>,
        skills: Arc<Skills>,
        registry: SharedRegistry,
        checkpoints: Arc<CheckpointStore>,
    ) -> Self {
        Self { servers, own, skills, registry, checkpoints, offered: Mutex::default() }
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
        let servers = self.servers.servers();
        let asked = futures::future::join_all(servers.into_iter().map(list)).await;
        let sets: Vec<(Arc<McpServer>, Arc<ToolSet>)> = asked.into_iter().flatten().collect();
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
                *offered = Offered { servers: sets.into_iter().map(|(_, set)| set).collect(), skills: generation };
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

/// What a server offers, if it says so in time.
async fn list(server: Arc<McpServer>) -> Option<(Arc<McpServer>, Arc<ToolSet>)> {
    match tokio::time::timeout(PATIENCE, server.tools()).await {
        Ok(Ok(set)) => Some((server, set)),
        Ok(Err(error)) => {
            tracing::warn!(server = %server.name(), %error, "an MCP server offers no tools");
            None
        }
        Err(_) => {
            tracing::warn!(server = %server.name(), "an MCP server did not list its tools in time");
            None
        }
    }
}
