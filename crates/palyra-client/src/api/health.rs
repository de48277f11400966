//! What `GET /healthz` and `GET /readyz` answer to whoever can reach the daemon: less to those who show no credential.

use palyra_common::{ComponentHealth, HealthStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Health of the daemon and of its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthResponse {
    /// The worst of the components.
    pub status: HealthStatus,
    /// Version of the daemon.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// Where its state lives.
    pub state_root: String,
    /// The model provider it chose.
    pub provider: ProviderView,
    /// Milliseconds since it became healthy.
    pub uptime_ms: u64,
    /// Its parts.
    pub components: Vec<ComponentHealth>,
}

/// What `GET /healthz` tells those who show no credential: enough for a load balancer, nothing about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BriefHealthResponse {
    /// The worst of the components.
    pub status: HealthStatus,
    /// Version of the daemon.
    pub version: String,
}

/// What `GET /readyz` answers: with status 200 if work can begin, with 503 if not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadyResponse {
    /// Whether work can begin.
    pub ready: bool,
    /// The parts that are not as they should be; those that are `failing` are why it cannot. What exactly is wrong is told to those who show a credential.
    pub reasons: Vec<ComponentHealth>,
}

/// The model provider, and why this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderView {
    /// Such as `offline`.
    pub name: String,
    /// The model it will use.
    pub model: String,
    /// Why it was chosen, for a person.
    pub reason: String,
}
