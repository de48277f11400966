//! What every handler can reach.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use palyra_agent::Engine;
use palyra_common::ComponentHealth;
use palyra_common::config::LoadedConfig;
use palyra_identity::RateLimiter;
use palyra_journal::Journal;
use palyra_policy::PolicyStore;
use palyra_telemetry::Metrics;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Gate;
use crate::budgets::Budgets;
use crate::dispatch::PageBudgets;
use crate::http::RecentHealth;
use crate::keys::Keys;
use crate::models::{Models, Watched};
use crate::outside::OutsideTools;
use crate::quic::QuicHealth;
use crate::skills::Skills;
use crate::spending::Prices;
use crate::workspaces::Workspaces;

/// The daemon as its handlers see it.
pub(crate) struct App {
    pub(crate) engine: Engine,
    /// The policies in force.
    pub(crate) policies: Arc<PolicyStore>,
    /// The tools of outside servers.
    pub(crate) outside: Arc<OutsideTools>,
    /// Installed skills.
    pub(crate) skills: Arc<Skills>,
    pub(crate) journal: Journal,
    pub(crate) state_root: PathBuf,
    /// Where each principal may work.
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) config: LoadedConfig,
    /// The models, and what is known of them.
    pub(crate) models: Arc<Models>,
    /// What they cost.
    pub(crate) prices: Arc<Prices>,
    /// What they may cost.
    pub(crate) budgets: Arc<Budgets>,
    /// The files that say all of it.
    pub(crate) watched: Arc<Watched>,
    /// What health says about HTTP; it does not change while the daemon runs.
    pub(crate) http_health: ComponentHealth,
    /// What health says about gRPC; it does not change while the daemon runs.
    pub(crate) grpc_health: ComponentHealth,
    /// What health says about QUIC.
    pub(crate) quic_health: QuicHealth,
    pub(crate) gate: Gate,
    /// Keys of commands that are carried out at this moment.
    pub(crate) keys: Keys,
    /// How many records of their own clients may give.
    pub(crate) event_rates: RateLimiter,
    /// What readers may hold that stop reading.
    pub(crate) page_budgets: PageBudgets,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// What was last told about the daemon's health.
    pub(crate) recent_health: RecentHealth,
    /// The same for strangers.
    pub(crate) recent_brief_health: RecentHealth,
    pub(crate) ready_since: Instant,
    /// Commands that are carried out whether or not their callers wait for them.
    pub(crate) work: TaskTracker,
    /// Cancelled when the daemon shall end.
    pub(crate) closing: CancellationToken,
}
