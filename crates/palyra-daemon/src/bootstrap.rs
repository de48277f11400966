//! From parts to the [`App`] that handlers see, with its doors open and nobody served yet.
//!
//! What is asked of it is in `composition`: which parts there are, what is served to whom, and how it ends.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Instant;

use palyra_agent::{Engine, EngineOptions};
use palyra_common::Clock;
use palyra_common::config::LoadedConfig;
use palyra_identity::{RateLimiter, RateOptions};
use palyra_journal::Journal;
use palyra_policy::PolicyStore;
use palyra_telemetry::{InheritedSockets, Metrics};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::auth::Gate;
use crate::budgets::Budgets;
use crate::dispatch::{PageBudgets, Tokens};
use crate::error::DaemonError;
use crate::keys::Keys;
use crate::listen::{Doors, Tcp};
use crate::models::{self, Models};
use crate::outside::OutsideTools;
use crate::skills::Skills;
use crate::spending::Prices;
use crate::state::StateRoot;
use crate::tls::Identity;
use crate::token::Token;
use crate::workspaces::Workspaces;
use crate::{http, options};

/// Everything that is there before the runtime does anything.
pub(crate) struct Parts<'a> {
    pub(crate) root: &'a StateRoot,
    pub(crate) loaded: LoadedConfig,
    pub(crate) models: Arc<Models>,
    pub(crate) prices: Arc<Prices>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) token: Option<Token>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) journal: Journal,
    pub(crate) workspaces: Arc<Workspaces>,
    pub(crate) engine: EngineOptions,
    pub(crate) policies: Arc<PolicyStore>,
    pub(crate) outside: Arc<OutsideTools>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) inherited: InheritedSockets,
}

/// A daemon that could be served now.
pub(crate) struct Opened {
    pub(crate) app: Arc<App>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) identity: Identity,
    pub(crate) unix: UnixListener,
    pub(crate) http: Option<Tcp>,
    pub(crate) grpc: Option<Tcp>,
    pub(crate) quic: Option<UdpSocket>,
}

/// Starts the engine and opens the doors.
pub(crate) async fn open(parts: Parts<'_>, closing: CancellationToken) -> Result<Opened, DaemonError> {
    let Parts {
        root,
        loaded,
        models,
        prices,
        budgets,
        token,
        tokens,
        journal,
        workspaces,
        engine,
        policies,
        outside,
        skills,
        clock,
        metrics,
        mut inherited,
    } = parts;
    let files = (Arc::clone(&models), Arc::clone(&prices), Arc::clone(&budgets));
    let watched = Arc::new(models::Watched::new(files, journal.clone(), Arc::clone(&clock)));
    let engine = Engine::start(engine).await?;
    let identity = Identity::new(root.path(), loaded.config(), journal.clone(), Arc::clone(&clock));
    let doors = Doors::open(root, loaded.config(), &identity, &mut inherited).await?;
    for name in inherited.left() {
        tracing::warn!(name, "the service manager passed a socket that is not used");
    }
    // Closed, so that nobody waits at a door that is never answered.
    drop(inherited);
    let rates = options::rates(loaded.config());
    let gate = Gate::new(
        token,
        Arc::clone(&tokens),
        identity.clone(),
        &loaded.config().http,
        rates,
        Arc::clone(&clock),
        metrics.clone(),
    )?;
    let app = Arc::new(App {
        engine,
        policies,
        outside,
        skills,
        journal,
        state_root: root.path().to_owned(),
        workspaces,
        config: loaded,
        models,
        prices,
        budgets,
        watched,
        http_health: doors.http_health,
        grpc_health: doors.grpc_health,
        quic_health: doors.quic_health,
        gate,
        keys: Keys::default(),
        event_rates: RateLimiter::new(RateOptions::default(), clock),
        page_budgets: PageBudgets::default(),
        metrics,
        recent_health: http::RecentHealth::default(),
        recent_brief_health: http::RecentHealth::default(),
        ready_since: Instant::now(),
        work: TaskTracker::new(),
        closing,
    });
    let Doors { unix, http, grpc, quic, .. } = doors;
    Ok(Opened { app, tokens, identity, unix, http, grpc, quic })
}
