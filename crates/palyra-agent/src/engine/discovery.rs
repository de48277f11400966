//! Tools that are not in the registry from the start: those of outside servers and of skills, which have to be connected or loaded first.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// Puts the tools of outside sources into the registry. Every wait is bounded.
#[async_trait]
pub trait ToolDiscovery: Send + Sync + 'static {
    /// Waits until each source was asked once since the start, for as long as a new run would wait.
    async fn ready(&self);

    /// Asks the source of a tool that the registry does not have. Whether it is there afterwards, the registry says.
    async fn find(&self, tool: &str);

    /// Sources that are configured and offer nothing now.
    fn unavailable(&self) -> Vec<UnavailableSource>;
}

/// A source of tools that is configured and offers nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableSource {
    /// Which, such as `mcp:mail`.
    pub source: String,
    /// Why, in words of Palyra's own.
    pub reason: String,
}

/// The registry is complete from the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDiscovery;

#[async_trait]
impl ToolDiscovery for NoDiscovery {
    async fn ready(&self) {}

    async fn find(&self, _tool: &str) {}

    fn unavailable(&self) -> Vec<UnavailableSource> {
        Vec::new()
    }
}
