//! The composition root: which parts this daemon has, the order in which they start and the order in which they end.
//!
//! Start: configuration, lock, telemetry, journal, engine (which resumes unfinished runs in the background), doors. A daemon that answers is therefore
//! one that works. End: no new connections, drivers, answers under way, journal, lock.

use std::path::PathBuf;
use std::process::ExitCode as ProcessCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palyra_agent::{
    Decide, EngineOptions, HookOccurrence, PolicyDecider, RunEnded, Safety, ToolDiscovery, engine_tools,
};
use palyra_common::config::{self, LoadedConfig};
use palyra_common::{
    BuildInfo, Clock, Environment, HookEvent, SystemClock, ToStableError as _, env_vars, paths, raise_file_limit,
};
use palyra_executors::Processes;
use palyra_journal::{FaultInjector, Journal};
use palyra_mcp::{McpOptions, McpRegistry};
use palyra_models::ModelProvider;
use palyra_telemetry::{InheritedSockets, Metrics, Notify, Transport};
use palyra_tools::{EffectStore, Registry, SharedRegistry, Tool, builtin};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::args::Args;
use crate::auth::Proxies;
use crate::bootstrap::{Opened, Parts, open};
use crate::budgets::Budgets;
use crate::collect::keep_collected;
use crate::dispatch::Tokens;
use crate::error::DaemonError;
use crate::listen::Tcp;
use crate::models::{self, Models};
use crate::outside::OutsideTools;
use crate::reach::Reach;
use crate::reserve::Reserve;
use crate::rules::Rules;
use crate::serve::{ConnectionLimits, Server};
use crate::skills::{SkillHooks, SkillParts, Skills, keep_audited, keep_told};
use crate::spending::Prices;
use crate::state::StateRoot;
use crate::token::Token;
use crate::workspaces::{self, Workspaces};
use crate::{grpc, heap, http, options, policy_watch, quic, shutdown, startup_memory, telemetry};

/// How long the daemon takes to end, all together: service managers and people wait no longer.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// What of it is kept for the journal's last checkpoint and the last lines of the log.
const LAST_STEPS: Duration = Duration::from_secs(2);
/// How long tools that are under way may take to report when the daemon stops.
const TOOL_GRACE: Duration = Duration::from_secs(5);
/// How long clients may take to read answers that are under way.
const ANSWER_GRACE: Duration = Duration::from_secs(2);
/// How long after its start the daemon proves its sandbox: a daemon that was started for one command answers that first.
const PROOF_PAUSE: Duration = Duration::from_secs(1);
/// How long work on blocking threads may go on after everything else has ended.
const THREAD_GRACE: Duration = Duration::from_millis(500);
/// How long a collector may take for what is left to export at the end.
const EXPORT_GRACE: Duration = Duration::from_millis(500);
/// How often numbers that are kept elsewhere are looked up for a collector.
const SAMPLE_EVERY: Duration = Duration::from_secs(15);

/// A daemon to be: parts that are given, everything else by configuration.
pub struct Composition {
    environment: Environment,
    tools: Vec<Arc<dyn Tool>>,
    decider: Option<Arc<dyn Decide>>,
    provider: Option<Arc<dyn ModelProvider>>,
    clock: Arc<dyn Clock>,
    faults: Option<Arc<dyn FaultInjector>>,
}

impl Default for Composition {
    /// The shipped daemon in the environment of this process.
    fn default() -> Self {
        Self::new(Environment::of_process())
    }
}

impl Composition {
    /// The shipped daemon in some environment.
    #[must_use]
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            tools: builtin(),
            decider: None,
            provider: None,
            clock: Arc::new(SystemClock),
            faults: None,
        }
    }

    /// Adds a tool to the built-in ones.
    #[must_use]
    pub fn with_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Decides by this instead of by the policies and `run.ask_before`.
    #[must_use]
    pub fn with_decider(mut self, decider: Arc<dyn Decide>) -> Self {
        self.decider = Some(decider);
        self
    }

    /// Plans with this instead of with the configured provider.
    #[must_use]
    pub fn with_provider(mut self, provider: Arc<dyn ModelProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Takes the time from this instead of from the system.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Lets this make commits of the journal fail.
    #[must_use]
    pub fn with_faults(mut self, faults: Arc<dyn FaultInjector>) -> Self {
        self.faults = Some(faults);
        self
    }

    /// A whole `main`: reads the command line, runs until told to stop, and says in one line why it could not.
    #[must_use]
    pub fn main(mut self) -> ProcessCode {
        let ended = Args::of_process().and_then(|arguments| {
            self.environment = arguments.apply(self.environment);
            leave_current_directory();
            self.run()
        });
        match ended {
            Ok(()) => ProcessCode::SUCCESS,
            Err(error) => {
                let envelope = error.to_stable();
                report(&envelope.message, &envelope.code, envelope.recovery_hint.as_deref());
                ProcessCode::from(envelope.exit_code() as u8)
            }
        }
    }

    /// Runs the daemon on a runtime of its own until it is told to stop; blocks.
    ///
    /// # Errors
    /// Why it could not start, or could not end in good order.
    pub fn run(self) -> Result<(), DaemonError> {
        let started = Instant::now();
        let loaded = config::load(&self.environment)?;
        // Before anything is opened that could need it.
        let open_files = raise_file_limit();
        heap::limit_arenas();
        // While there is one thread, since it changes the process's environment.
        let inherited = InheritedSockets::take(&self.environment)?;
        // The log lies in the state root, so nobody writes to it who does not own that.
        let root = StateRoot::claim(paths::state_root(&self.environment)?)?;
        let runtime = runtime()?;
        let metrics = telemetry::metrics(self.clock.as_ref());
        let telemetry = {
            let _runtime = runtime.enter();
            telemetry::start(loaded.config(), &self.environment, root.path(), &metrics)?
        };
        for warning in loaded.warnings() {
            tracing::warn!("{warning}");
        }
        let notify = Notify::from_environment(&self.environment);
        let outcome = self.parts(&root, &loaded, metrics, inherited).and_then(|(parts, processes)| {
            runtime.block_on(serve(parts, Beside { processes, notify, started, open_files }))
        });
        telemetry.shutdown(EXPORT_GRACE);
        runtime.shutdown_timeout(THREAD_GRACE);
        root.release();
        outcome
    }

    /// Puts the parts together, and what runs processes for them.
    pub(crate) fn parts<'a>(
        self,
        root: &'a StateRoot,
        loaded: &LoadedConfig,
        metrics: Metrics,
        inherited: InheritedSockets,
    ) -> Result<(Parts<'a>, Arc<Processes>), DaemonError> {
        let config = loaded.config();
        let models = Arc::new(match self.provider {
            Some(provider) => Models::built_in(provider),
            None => Models::by_config(&config.model, &self.environment, root.path())?,
        });
        // Beside where palyra.toml is or would be: prices count also where nobody has written that file.
        let beside = paths::config_to_edit(&self.environment).ok();
        let prices = Arc::new(Prices::load(config, beside.as_deref())?);
        let budgets = Arc::new(Budgets::new(&config.budget, &self.environment, beside, prices.spending()));
        // Parsing policies and opening the journal take about as long as each other, so they are done side by side.
        let rules = Rules::load(options::policy_sources(config))?;
        let protected = options::protected(root.path(), &self.environment);
        let journal =
            Journal::open(options::journal(config, root.path(), Arc::clone(&self.clock), self.faults.clone()))?;
        let reach = Reach::new(config, &self.environment, root.path(), protected.clone(), &journal, &self.clock)?;
        let skills = Arc::new(Skills::open(SkillParts {
            config,
            state_root: root.path(),
            journal: journal.clone(),
            clock: Arc::clone(&self.clock),
            egress: reach.egress.clone(),
            secrets: Arc::clone(&reach.secrets),
            private_hosts: reach.private_hosts.clone(),
        })?);
        let mut tools = self.tools;
        tools.extend(engine_tools()?);
        tools.extend(reach.tools);
        let registry = SharedRegistry::new(Registry::builder().with_all(tools.iter().cloned()).build()?);
        let servers =
            McpRegistry::open(McpRegistry::directory_in(root.path()), self.environment.clone(), McpOptions::default())?;
        let outside = Arc::new(OutsideTools::new(
            servers,
            tools,
            Arc::clone(&skills),
            registry.clone(),
            reach.processes.checkpoints(),
        ));
        let home = self.environment.get(env_vars::HOME).map(PathBuf::from);
        let workspaces = Arc::new(Workspaces::load(&journal, config, root.path(), home.as_deref())?);
        let tokens = Tokens::load(&journal).map_err(|refusal| DaemonError::Kept(Box::new(refusal.into_envelope())))?;
        let activity = reach.processes.checkpoints().activity();
        let effects = Arc::new(EffectStore::open(root.effects())?.reporting_to(activity));
        let token = if config.daemon.http_enabled || config.grpc.enabled { Some(Token::of(root)?) } else { None };
        let Rules { policies, scanner } = rules.finished()?;
        let policies = Arc::new(policies);
        let decider = self.decider.unwrap_or_else(|| {
            let decider = PolicyDecider::new(Arc::clone(&policies), config.run.ask_before.iter().cloned());
            Arc::new(decider.confirming(config.run.confirm_mandates.iter().copied()))
        });
        let engine = EngineOptions {
            journal: journal.clone(),
            registry,
            discovery: Arc::clone(&outside) as Arc<dyn ToolDiscovery>,
            provider: models.provider(),
            spending: prices.spending(),
            decider,
            safety: Safety::new(scanner),
            clock: Arc::clone(&self.clock),
            mode: config.run.mode,
            effects,
            limits: options::run_limits(config),
            tool_limits: options::tool_limits(config),
            tool_timeout: options::tool_timeout(config),
            max_concurrent: config.run.max_concurrent as usize,
            auxiliary_concurrent: config.run.auxiliary_concurrent as usize,
            max_output_tokens: Some(config.model.max_output_tokens),
            protected,
            workspaces: Arc::<Workspaces>::clone(&workspaces),
            project_files: config.context.project_files.clone(),
            trusted: workspaces::trusted(&config.workspaces.trusted, home.as_deref())?,
            programs_read: reach.processes.reads_outside().to_vec(),
            hooks: Arc::new(SkillHooks(Arc::clone(&skills))),
            run_ended: Some(ended(&reach.processes)),
        };
        let parts = Parts {
            root,
            loaded: loaded.clone(),
            models,
            prices,
            budgets,
            token,
            tokens: Arc::new(tokens),
            journal,
            workspaces,
            engine,
            policies,
            outside,
            skills,
            clock: self.clock,
            metrics,
            inherited,
        };
        Ok((parts, reach.processes))
    }
}

/// What is done beside serving.
struct Beside {
    processes: Arc<Processes>,
    notify: Notify,
    started: Instant,
    /// Files that the process may have open.
    open_files: u64,
}

async fn serve(parts: Parts<'_>, beside: Beside) -> Result<(), DaemonError> {
    let Beside { processes, notify, started, open_files } = beside;
    let closing = CancellationToken::new();
    shutdown::on_signals(closing.clone())?;
    let directory = parts.loaded.config().policy.directory.clone();
    let watching = directory
        .map(|directory| tokio::spawn(policy_watch::follow(Arc::clone(&parts.policies), directory, closing.clone())));
    let root = parts.root;
    let effects = Arc::clone(&parts.engine.effects);
    let opened = open(parts, closing.clone()).await?;
    let Opened { app, tokens, identity, .. } = opened;
    let (engine, journal, metrics) = (app.engine.clone(), app.journal.clone(), app.metrics.clone());
    let limits = ConnectionLimits::for_open_files(open_files, options::idle(app.config.config()));
    let trusted: Arc<[_]> = Proxies::new(&app.config.config().http).trusted().into();
    let front = http::Front::new(Arc::clone(&app));
    let server = Server::new(front, closing.clone(), metrics.clone(), Transport::Http, limits, Arc::clone(&trusted));
    server.serve(opened.unix);
    match opened.http {
        Some(Tcp::Plain(listener)) => server.serve(listener),
        Some(Tcp::Tls(listener)) => server.serve(listener),
        None => {}
    }
    // After the doors of the command line are open: it takes a moment to describe every service.
    let grpc = grpc::router(Arc::clone(&app)).await?;
    let grpc = Server::new(grpc, closing.clone(), metrics, Transport::Grpc, limits, trusted);
    match opened.grpc {
        Some(Tcp::Plain(listener)) => grpc.serve(listener),
        Some(Tcp::Tls(listener)) => grpc.serve(listener),
        None => {}
    }
    if let Some(socket) = opened.quic {
        server.spawn(quic::serve(Arc::clone(&app), socket, identity.clone()));
    }
    server.spawn(models::follow(Arc::clone(&app.watched), closing.clone()));
    server.spawn(identity.keep_fresh(closing.clone()));
    server.spawn(tokens.keep_noted(closing.clone()));
    server.spawn(heap::keep_trimmed(closing.clone()));
    server.spawn(Reserve::of(root.path()).maintain(closing.clone()));
    server.spawn(root.presence()?.keep_watched(closing.clone()));
    server.spawn(keep_collected(journal.clone(), effects, closing.clone()));
    server.spawn(keep_audited(Arc::clone(&app), closing.clone()));
    server.spawn(keep_told(Arc::clone(&app), closing.clone()));
    tracing::info!(
        version = BuildInfo::current().version,
        state_root = %root.path().display(),
        provider = app.models.view().name,
        unfinished_runs = engine.unfinished(),
        start_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "ready"
    );
    notify.ready(&format!("serving; {} unfinished runs", engine.unfinished()));
    server.spawn(tell_of_startup(Arc::clone(&app)));
    // Until the very end: a daemon that is stopping is alive too.
    let watched = tokio::spawn(notify.clone().keep_alive({
        let journal = journal.clone();
        move || {
            let journal = journal.clone();
            async move { journal.read(|_| Ok(())).await.is_ok() }
        }
    }));
    let sampling = tokio::spawn(sample_for_export(Arc::clone(&app)));

    // After the doors are open: whoever needs no process does not wait for the proof of the sandbox.
    let preparing = tokio::spawn({
        let processes = Arc::clone(&processes);
        async move {
            tokio::time::sleep(PROOF_PAUSE).await;
            processes.prepare().await;
            startup_memory::release_text().await;
            heap::trim().await;
        }
    });
    closing.cancelled().await;
    let until = tokio::time::Instant::now() + STOP_WITHIN - LAST_STEPS;
    notify.stopping("stopping: no new work is accepted; active work is finishing");
    preparing.abort();
    sampling.abort();
    if let Some(watching) = watching {
        watching
            .await
            .map_err(|error| DaemonError::system("stop watching the policies")(std::io::Error::other(error)))?;
    }
    let ending = async {
        engine.stop(TOOL_GRACE).await;
        processes.shutdown().await;
        app.outside.shutdown().await;
        tokio::join!(server.finish(ANSWER_GRACE), grpc.finish(ANSWER_GRACE));
        app.work.close();
        app.work.wait().await;
        if let Err(refusal) = app.gate.tokens().flush() {
            tracing::warn!(error = %refusal.envelope().message, "cannot record when tokens were last used");
        }
    };
    if tokio::time::timeout_at(until, ending).await.is_err() {
        tracing::warn!("not everything finished in time; unfinished runs resume at the next start");
    }
    notify.status("closing the journal");
    let closed = tokio::time::timeout(LAST_STEPS - EXPORT_GRACE - THREAD_GRACE, journal.close()).await;
    watched.abort();
    match closed {
        Ok(closed) => closed?,
        // What was acknowledged is on the disk; only the last checkpoint is missing, which the next start makes up for.
        Err(_) => tracing::error!("the journal's last checkpoint could not be written"),
    }
    tracing::info!("stopped");
    Ok(())
}

/// Hooks hear that the daemon is up; what they answer changes nothing.
async fn tell_of_startup(app: Arc<App>) {
    let payload = serde_json::json!({"version": BuildInfo::current().version});
    let occurrence = HookOccurrence::new(HookEvent::GatewayStartup, SystemClock.now(), payload);
    if let Err(error) = app.engine.dispatch_event(occurrence).await {
        tracing::warn!(%error, "hooks could not be notified of the start");
    }
}

/// A collector asks nobody; it is told what a scrape would look up.
async fn sample_for_export(app: Arc<App>) {
    if app.config.config().telemetry.otlp_endpoint.is_none() {
        return;
    }
    let mut ticks = tokio::time::interval(SAMPLE_EVERY);
    loop {
        ticks.tick().await;
        http::sample(&app).await;
    }
}

/// What runs beside a run ends with it.
fn ended(processes: &Arc<Processes>) -> RunEnded {
    let processes = Arc::clone(processes);
    Arc::new(move |run_id| processes.run_ended(run_id))
}

/// Lets go of the directory that the daemon was started in, so that it can be removed or unmounted. Relative paths of the environment and
/// the arguments start from the directory that [`Environment`] remembers.
fn leave_current_directory() {
    // Where even the root cannot be entered, staying is all that is left.
    let _ = std::env::set_current_dir("/");
}

/// Two threads serve a desktop; more than a few only cost memory, since nothing here computes for long.
fn runtime() -> Result<Runtime, DaemonError> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("palyrad")
        .enable_all()
        .build()
        .map_err(DaemonError::system("start threads"))
}

#[expect(clippy::print_stderr, reason = "the one line that tells a person why there is no daemon")]
fn report(message: &str, code: &str, hint: Option<&str>) {
    eprintln!("error: {message} [{code}]");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
}
