//! Which models this daemon has, and how that is told to people.
//!
//! What the configuration and `models.toml` mean is chosen at the start and chosen anew whenever the file changes (`watch`). A file that cannot be
//! used changes nothing: what was in force stays in force, and everybody who asks is told so until it is mended. What is known about providers that
//! rest lives through a change, unless their account is what was changed.

mod answered;
mod change;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use palyra_client::api::ProviderView;
use palyra_common::config::{ModelConfig, ModelProviderChoice};
use palyra_common::{
    ComponentHealth, Environment, ErrorCategory, HealthStatus, StableErrorEnvelope, ToStableError as _, paths,
};
use palyra_models::{
    Account, Accounts, AccountsError, AnswerMemory, Explanation, GateHealth, HttpProviders, LiveProvider, ModelError,
    ModelProvider, Needs, Router, RouterOptions, SelectOptions, Selection, Wish, discover, select, set_variables,
};
use palyra_secrets::DaemonSecrets;

use self::answered::Answered;
pub(crate) use self::change::Difference;
pub(crate) use self::watch::{Watched, follow};
use crate::error::DaemonError;
use crate::stamp::Stamp;

/// The models of the daemon.
pub(crate) struct Models {
    live: Arc<LiveProvider>,
    /// Where to look again; none for a provider that was built in.
    source: Option<Source>,
    state: RwLock<State>,
}

/// What a provider is tried with.
pub(crate) struct Probing {
    pub(crate) accounts: Accounts,
    pub(crate) options: RouterOptions,
    /// The provider where there is only one; none where the routes of `models.toml` count.
    pub(crate) single: Option<Arc<dyn ModelProvider>>,
}

/// What a choice is made from.
#[derive(Clone)]
struct Source {
    config: ModelConfig,
    environment: Environment,
    /// `models.toml`; none where there is no place for configuration.
    file: Option<PathBuf>,
    /// The file as it was when it was first read.
    read_at: Stamp,
    /// Who answered before the daemon started.
    answered: Arc<Answered>,
}

/// What is in force.
struct State {
    reason: String,
    router: Option<Router>,
    accounts: Accounts,
    /// Why the file on disk is not in force.
    problem: Option<StableErrorEnvelope>,
}

/// What came of looking at the file again.
#[derive(Debug)]
pub(crate) enum Reloaded {
    /// It says what it said before.
    Same,
    /// What it says holds from the next call on.
    TakenOver(Difference),
    /// It cannot be used; what was in force stays in force.
    Refused(StableErrorEnvelope),
}

impl Models {
    /// A provider that was built into the daemon.
    pub(crate) fn built_in(provider: Arc<dyn ModelProvider>) -> Self {
        let reason = "it was built into this daemon".to_owned();
        let state = State { reason, router: None, accounts: Accounts::default(), problem: None };
        Self { live: Arc::new(LiveProvider::new(provider)), source: None, state: RwLock::new(state) }
    }

    /// The provider that the configuration and `models.toml` mean. A key that is referred to and cannot be had refuses the start:
    /// going on without it would send the conversation somewhere else than the operator said.
    pub(crate) fn by_config(
        config: &ModelConfig,
        environment: &Environment,
        state_root: &Path,
    ) -> Result<Self, DaemonError> {
        let refused = |error: StableErrorEnvelope| DaemonError::Provider(Box::new(error));
        let file = paths::models_file(environment).ok();
        let source = Source {
            config: config.clone(),
            environment: environment.clone(),
            read_at: Stamp::of(file.as_deref()),
            file,
            answered: Arc::new(Answered::open(state_root)),
        };
        let accounts = source.accounts().map_err(|error| refused(error.to_stable()))?;
        let Selection { provider, router, reason } = source.select(&accounts).map_err(refused)?;
        let state = State { reason, router, accounts, problem: None };
        Ok(Self { live: Arc::new(LiveProvider::new(provider)), source: Some(source), state: RwLock::new(state) })
    }

    /// What makes calls.
    pub(crate) fn provider(&self) -> Arc<dyn ModelProvider> {
        Arc::clone(&self.live) as Arc<dyn ModelProvider>
    }

    /// The file that is followed.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.source.as_ref().and_then(|source| source.file.as_deref())
    }

    /// The file as it was when it was first read.
    fn read_at(&self) -> Stamp {
        self.source.as_ref().map_or(Stamp::of(None), |source| source.read_at)
    }

    /// Looks at the file again. Reads at most one key, which may block.
    pub(crate) fn reload(&self) -> Reloaded {
        let Some(source) = &self.source else { return Reloaded::Same };
        match self.chosen_anew(source) {
            Ok((accounts, selection)) => {
                let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
                let difference = Difference::between(&state.accounts, &accounts);
                let mended = state.problem.take().is_some();
                if difference.is_nothing() && !mended {
                    return Reloaded::Same;
                }
                state.accounts = accounts;
                if let Some(Selection { provider, router, reason }) = selection {
                    (state.router, state.reason) = (router, reason);
                    self.live.replace(provider);
                }
                Reloaded::TakenOver(difference)
            }
            Err(error) => {
                let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
                state.problem = Some(error.clone());
                Reloaded::Refused(error)
            }
        }
    }

    /// What the file says now, with another choice if it makes a difference to it.
    fn chosen_anew(&self, source: &Source) -> Result<(Accounts, Option<Selection>), StableErrorEnvelope> {
        let accounts = source.accounts().map_err(|error| error.to_stable())?;
        let (before, earlier) = {
            let state = self.state();
            (state.accounts.clone(), state.router.clone())
        };
        if accounts == Accounts::default() && before != accounts {
            // Editors remove a file before they write it; in between nobody is to be asked whom the operator did not name.
            let gone = AccountsError::File {
                doing: "read",
                path: source.file.clone().unwrap_or_default(),
                reason: "it is missing or empty; the previous version stays in force until the daemon restarts"
                    .to_owned(),
            };
            return Err(gone.to_stable());
        }
        // Where routes counted neither before nor now, the file is not what decided.
        if accounts == before || !(source.routes_count(&before) || source.routes_count(&accounts)) {
            return Ok((accounts, None));
        }
        let mut selection = source.select(&accounts)?;
        if let (Some(router), Some(earlier)) = (selection.router.clone(), earlier) {
            let router = router.in_place_of(&earlier);
            selection.provider = Arc::new(router.clone());
            selection.router = Some(router);
        }
        Ok((accounts, Some(selection)))
    }

    /// Why what is on the disk is not in force, if so.
    pub(crate) fn problem(&self) -> Option<StableErrorEnvelope> {
        self.state().problem.clone()
    }

    /// Which models would be asked now; `None` where there is nothing to choose from.
    pub(crate) fn explain(&self, wish: Wish<'_>, needs: &Needs) -> Result<Option<Explanation>, ModelError> {
        let router = self.state().router.clone();
        router.map(|router| router.explain(wish, needs)).transpose()
    }

    /// Variables about models that are set in the daemon's environment, by name.
    pub(crate) fn variables(&self) -> Vec<String> {
        let environment = self.source.as_ref().map(|source| &source.environment);
        environment.map(|environment| set_variables(environment, &self.state().accounts)).unwrap_or_default()
    }

    /// What a provider is tried with, as the next call would have it.
    pub(crate) async fn probing(&self) -> Result<Probing, StableErrorEnvelope> {
        let accounts = self.state().accounts.clone();
        let Some(source) = &self.source else {
            let options = RouterOptions::new(Arc::new(HttpProviders), Arc::new(Environment::default()));
            return Ok(Probing { accounts, options, single: Some(self.live.current()) });
        };
        let secrets = Arc::new(DaemonSecrets::new(source.environment.clone()));
        let options = RouterOptions::new(Arc::new(HttpProviders), secrets);
        if source.routes_count(&accounts) {
            return Ok(Probing { accounts, options, single: None });
        }
        // Chosen anew, so that nothing which failed lately stands in the way. Reading its key may block.
        let (source, wanted) = (source.clone(), accounts.clone());
        let selected = tokio::task::spawn_blocking(move || source.select(&wanted)).await;
        let selected = selected.map_err(|error| {
            StableErrorEnvelope::new("internal", ErrorCategory::Internal, format!("choosing a model failed: {error}"))
        })?;
        Ok(Probing { accounts, options, single: Some(selected?.provider) })
    }

    /// An account of this name that could be used and that nobody configured.
    pub(crate) async fn found(&self, name: &str) -> Option<(String, Account)> {
        let environment = &self.source.as_ref()?.environment;
        let offers = discover(environment).await;
        offers.into_iter().find(|offer| offer.name == name).map(|offer| (offer.name, offer.account))
    }

    /// Everything that has failed lately.
    pub(crate) fn troubles(&self) -> Vec<GateHealth> {
        let router = self.state().router.clone();
        router.map(|router| router.health()).unwrap_or_default()
    }

    /// A provider was reached beside all calls.
    pub(crate) fn note_reached(&self, provider: &str) {
        if let Some(router) = &self.state().router {
            router.note_reached(provider);
        }
    }

    /// The provider for people.
    pub(crate) fn view(&self) -> ProviderView {
        let info = self.live.describe();
        ProviderView { name: info.name, model: info.model, reason: self.state().reason.clone() }
    }

    /// What health says about it. Nothing is sent to find out: health must not cost money or leave the machine.
    pub(crate) fn health(&self) -> ComponentHealth {
        let info = self.live.describe();
        let state = self.state();
        if let Some(problem) = &state.problem {
            let summary = format!(
                "the `models.toml` on disk is not in force; the previous version still applies: {}",
                problem.message
            );
            let health = ComponentHealth::new("provider", HealthStatus::Degraded, summary);
            return match &problem.recovery_hint {
                Some(hint) => health.hint(hint.clone()),
                None => health,
            };
        }
        let model = if info.model.is_empty() { String::new() } else { format!(" with model `{}`", info.model) };
        // What the last calls found counts, until one succeeds or the provider is reached otherwise.
        let troubles = state.router.as_ref().map(Router::health).unwrap_or_default();
        let own_model = info.model.split_once('/').map_or(info.model.as_str(), |(_, model)| model);
        let of_head = |trouble: &&GateHealth| {
            trouble.gate.provider == info.name && trouble.gate.model.as_deref().is_none_or(|model| model == own_model)
        };
        if let Some(error) = troubles.iter().filter(of_head).find_map(|trouble| trouble.last.as_ref()) {
            let envelope = error.to_stable();
            let summary = format!("{}{model}: the last call failed: {}", info.name, envelope.message);
            let health = ComponentHealth::new("provider", HealthStatus::Degraded, summary);
            return match envelope.recovery_hint {
                Some(hint) => health.hint(hint),
                None => health,
            };
        }
        let nature = if info.is_language_model { "a language model" } else { "not a language model" };
        ComponentHealth::new("provider", HealthStatus::Ok, format!("{}{model}, {nature}: {}", info.name, state.reason))
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        // Whole between any two statements, so a panic elsewhere does not spoil it.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    /// What the file says. Without a place for configuration there is no such file either.
    fn accounts(&self) -> Result<Accounts, AccountsError> {
        self.file.as_ref().map_or_else(|| Ok(Accounts::default()), |file| Accounts::load(file))
    }

    fn select(&self, accounts: &Accounts) -> Result<Selection, StableErrorEnvelope> {
        let options = SelectOptions {
            config: &self.config,
            accounts,
            environment: &self.environment,
            secrets: Arc::new(DaemonSecrets::new(self.environment.clone())),
            factory: Arc::new(HttpProviders),
            memory: Some(Arc::clone(&self.answered) as Arc<dyn AnswerMemory>),
        };
        select(&options).map_err(|error| error.to_stable())
    }

    /// Whether the routes of the file decide.
    fn routes_count(&self, accounts: &Accounts) -> bool {
        self.config.provider == ModelProviderChoice::Auto && !accounts.routes.default.is_empty()
    }
}
