//! The router: a provider that asks others, in the order the operator gave.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{RunId, SecretResolver};

use super::catalogue::{Catalogue, JUST_READ, offers, says_windows, window, windows_count_for};
use super::choose::{Chain, Naming, Wish, choose};
use super::explain::{Explanation, explain};
use super::factory::ProviderFactory;
use super::gates::{GateHealth, Gates};
use super::lanes::Lanes;
use super::memory::AnswerMemory;
use super::needs::Needs;
use super::pace::{Pace, SystemPace};
use super::policy::RoutePolicy;
use super::pool::Pool;
use super::target::Target;
use super::walk::{Ground, walk};
use crate::accounts::{Account, Accounts, ModelName};
use crate::attempt::Answering;
use crate::embedding::{EmbeddingRequest, Embeddings};
use crate::error::{ModelError, ModelErrorClass};
use crate::model_entry::{Capability, ModelEntry};
use crate::offline::{NAME as OFFLINE, OfflineProvider};
use crate::price::Seller;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::{ModelRequest, Purpose};
use crate::unknown_model::UnknownModel;
use crate::wire::Timeouts;

/// Name of a router over several accounts.
const NAME: &str = "router";

/// What a router is made of besides accounts.
#[derive(Clone)]
pub struct RouterOptions {
    /// Makes providers.
    pub factory: Arc<dyn ProviderFactory>,
    /// Reads keys.
    pub secrets: Arc<dyn SecretResolver>,
    /// How patient providers are.
    pub timeouts: Timeouts,
    /// How patient the router is.
    pub policy: RoutePolicy,
    /// Time and chance.
    pub pace: Arc<dyn Pace>,
    /// Who answered before, where somebody keeps that beyond the process.
    pub memory: Option<Arc<dyn AnswerMemory>>,
}

impl RouterOptions {
    /// The usual patience, with these providers and keys.
    #[must_use]
    pub fn new(factory: Arc<dyn ProviderFactory>, secrets: Arc<dyn SecretResolver>) -> Self {
        Self {
            factory,
            secrets,
            timeouts: Timeouts::default(),
            policy: RoutePolicy::default(),
            pace: Arc::new(SystemPace::default()),
            memory: None,
        }
    }
}

/// A provider that asks others. Clones share what is known about who rests.
#[derive(Clone)]
pub struct Router {
    accounts: Arc<Accounts>,
    naming: Arc<Naming>,
    ground: Ground,
    agent: Option<String>,
    catalogue: Arc<Catalogue>,
}

impl Router {
    /// A router over the routes of `models.toml`. Nothing is sent, and no key is read, before the first call.
    pub fn new(accounts: Accounts, options: RouterOptions) -> Result<Self, ModelError> {
        let router = Self::build(accounts, Naming::Full, None, options);
        router.target_for(Wish::turn())?;
        Ok(router)
    }

    /// A router over one account, to which every model's name is passed on. `made` is its provider with its first key, if the caller
    /// has made it already.
    #[must_use]
    pub fn single(
        name: &str,
        account: Account,
        model: Option<String>,
        made: Option<Arc<dyn ModelProvider>>,
        options: RouterOptions,
    ) -> Self {
        let naming = Naming::Bare { provider: name.to_owned(), model: model.clone().unwrap_or_default() };
        let first = account.keys.first().map(|key| key.name.clone());
        let mut accounts = Accounts::default();
        accounts.providers.insert(name.to_owned(), account);
        let router = Self::build(accounts, naming, model, options);
        if let Some(made) = made {
            router.ground.pool.hold(name, first.as_deref(), made);
        }
        router
    }

    fn build(accounts: Accounts, naming: Naming, model: Option<String>, options: RouterOptions) -> Self {
        let RouterOptions { factory, secrets, timeouts, policy, pace, memory } = options;
        let pool = Arc::new(Pool::new(&accounts, model, timeouts, factory, secrets));
        let accounts = Arc::new(accounts);
        let gates = Arc::new(Gates::new(Arc::clone(&accounts), memory));
        let ground = Ground { pool, gates, pace, policy: Arc::new(policy) };
        Self { accounts, naming: Arc::new(naming), ground, agent: None, catalogue: Arc::default() }
    }

    /// The same router for the calls of one agent.
    #[must_use]
    pub fn for_agent(&self, agent: impl Into<String>) -> Self {
        Self { agent: Some(agent.into()), ..self.clone() }
    }

    /// This router in the place of an earlier one: who rests there rests here too, unless its account was changed.
    #[must_use]
    pub fn in_place_of(mut self, earlier: &Self) -> Self {
        let same = |provider: &str| {
            let account = self.accounts.providers.get(provider);
            account.is_some() && account == earlier.accounts.providers.get(provider)
        };
        // Calls that are under way report to the same breakers, so nothing they find out is lost.
        earlier.ground.gates.keep(same);
        earlier.ground.gates.serve(Arc::clone(&self.accounts));
        self.ground.pool.take_over(&earlier.ground.pool);
        self.ground.gates = Arc::clone(&earlier.ground.gates);
        self
    }

    /// Which models would be asked, in order.
    pub fn target_for(&self, wish: Wish<'_>) -> Result<Chain, ModelError> {
        let wish = Wish { agent: wish.agent.or(self.agent.as_deref()), ..wish };
        let Chain { route, reason, targets } = choose(&self.accounts, &self.naming, wish)?;
        Ok(Chain { route, reason, targets: targets.into_iter().map(|target| self.informed(target)).collect() })
    }

    /// Which models would be asked now, in order, and what speaks against each.
    pub fn explain(&self, wish: Wish<'_>, needs: &Needs) -> Result<Explanation, ModelError> {
        let chain = self.target_for(wish)?;
        Ok(explain(chain, needs, &self.ground.gates, self.ground.pace.now()))
    }

    /// Everything that has failed lately.
    #[must_use]
    pub fn health(&self) -> Vec<GateHealth> {
        self.ground.gates.health(self.ground.pace.now())
    }

    /// A provider was reached beside all calls: it is not away any more.
    pub fn note_reached(&self, provider: &str) {
        self.ground.gates.forget_outage(provider);
    }

    /// The accounts and routes.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// What the head of a wish's chain is.
    fn info(&self, wish: Wish<'_>) -> Option<ProviderInfo> {
        let head = self.target_for(wish).ok()?.targets.into_iter().next()?;
        let model = if head.name.model.is_empty() { String::new() } else { head.name.to_string() };
        Some(ProviderInfo {
            name: head.name.provider,
            model,
            context_tokens: head.context_tokens,
            is_language_model: true,
        })
    }

    /// The offline planner, where it is asked for by name: it needs no account, so it can be had beside any.
    fn planner(&self, model: &str) -> Option<OfflineProvider> {
        let taken = self.accounts.providers.contains_key(OFFLINE);
        (!taken && OfflineProvider::is_named(model)).then(OfflineProvider::new)
    }

    /// The models that somebody configured, by their full names.
    fn configured(&self) -> impl Iterator<Item = &ModelName> {
        self.accounts.routes.lists().flat_map(|(_, list)| list)
    }

    /// Whether somebody configured this very model; then the server is not asked whether it has it.
    fn is_configured(&self, name: &ModelName) -> bool {
        match &*self.naming {
            Naming::Bare { model, .. } => !model.is_empty() && *model == name.model,
            Naming::Full => self.configured().any(|known| known == name),
        }
    }

    /// What may have been meant by a name that no account has.
    async fn unknown(&self, asked: &str) -> UnknownModel {
        let planner = OfflineProvider::full_name();
        if asked.eq_ignore_ascii_case(OFFLINE) {
            return UnknownModel::nearest(asked, [planner]);
        }
        let full = |provider: &str, model: &str| ModelName::new(provider, model).to_string();
        if let Some(account) = self.accounts.providers.get(asked) {
            // It is the name of a provider: its own list says what there is.
            let target = Target::of(ModelName::new(asked, ""), account);
            let offered = self.offered(&target, JUST_READ).await.unwrap_or_default();
            let listed = offered.iter().map(|entry| full(asked, &entry.id));
            let configured = self.configured().filter(|name| name.provider == asked).map(ToString::to_string);
            return UnknownModel::nearest(asked, listed.chain(configured).collect::<Vec<_>>());
        }
        let known: Vec<String> = self.configured().map(ToString::to_string).chain([planner]).collect();
        UnknownModel::like(asked, known.iter().map(String::as_str))
    }

    /// What the server of a target offers.
    async fn offered(&self, target: &Target, oldest: Duration) -> Option<Arc<[ModelEntry]>> {
        let key = target.credentials.first().map(String::as_str);
        self.catalogue.entries(&self.ground.pool, &self.ground.pace, (&target.name.provider, key), oldest).await
    }

    /// A target with what its server said meanwhile.
    fn informed(&self, mut target: Target) -> Target {
        if target.name.model.is_empty()
            && let Some(model) = self.model_of_server(&target)
        {
            target.name.model = model;
        }
        if let Some(account) = self.accounts.providers.get(&target.name.provider) {
            target.context_tokens = window(account, &target.name.model, self.catalogue.window(&target.name));
        }
        target
    }

    /// The model that the server takes by itself, once that is known.
    fn model_of_server(&self, target: &Target) -> Option<String> {
        let key = target.credentials.first().map(String::as_str);
        let made = self.ground.pool.made_already(&target.name.provider, key);
        let taken = made.map(|made| made.describe().model).filter(|model| !model.is_empty());
        taken.or_else(|| self.catalogue.first_model(&target.name.provider))
    }

    /// The provider of an account with its first key, for asking it what it offers.
    pub async fn provider(&self, name: &str) -> Result<Arc<dyn ModelProvider>, ModelError> {
        let account = self.accounts.providers.get(name);
        let account = account
            .ok_or_else(|| ModelError::new(ModelErrorClass::Permanent, format!("there is no provider `{name}`")))?;
        self.ground.pool.get(name, account.keys.first().map(|key| key.name.as_str())).await
    }
}

/// A number that stays the same for a run, to spread runs over keys.
fn turn_of(run: RunId) -> usize {
    usize::try_from(run.to_u128() & 0xFFFF).unwrap_or(0)
}

#[async_trait]
impl ModelProvider for Router {
    fn name(&self) -> &str {
        match &*self.naming {
            Naming::Bare { provider, .. } => provider,
            Naming::Full => NAME,
        }
    }

    fn describe(&self) -> ProviderInfo {
        self.info(Wish::turn()).unwrap_or_else(|| ProviderInfo {
            name: self.name().to_owned(),
            model: String::new(),
            context_tokens: 0,
            is_language_model: true,
        })
    }

    fn describe_for(&self, agent: &str, model: Option<&str>) -> ProviderInfo {
        if let Some(planner) = model.and_then(|model| self.planner(model)) {
            return planner.describe();
        }
        let wish = Wish { agent: Some(agent), model: model.unwrap_or_default(), ..Wish::turn() };
        // A name that nobody knows is told when the model is asked.
        self.info(wish).unwrap_or_else(|| {
            let usual = self.describe();
            ProviderInfo { model: model.map_or(usual.model, str::to_owned), ..usual }
        })
    }

    async fn resolve(&self, agent: &str, model: Option<&str>) -> Result<ProviderInfo, UnknownModel> {
        let asked = model.unwrap_or_default();
        if let Some(planner) = self.planner(asked) {
            return Ok(planner.describe());
        }
        let wish = Wish { agent: Some(agent), model: asked, ..Wish::turn() };
        let Ok(chain) = self.target_for(wish) else {
            return Err(self.unknown(asked).await);
        };
        let Some(head) = chain.targets.first() else { return Ok(self.describe_for(agent, model)) };
        let by_name = !asked.is_empty() && !self.is_configured(&head.name);
        let tells = says_windows(head.kind);
        if by_name || head.name.model.is_empty() || tells {
            let oldest = if tells { windows_count_for(head.kind, &head.destination) } else { Duration::MAX };
            let entries = self.offered(head, oldest).await;
            let lacks = |entries: &[ModelEntry]| !entries.is_empty() && !offers(entries, head.kind, &head.name.model);
            if by_name && entries.as_deref().is_some_and(lacks) {
                // It may have come since the list was read.
                let entries = self.offered(head, JUST_READ).await.unwrap_or_default();
                if lacks(&entries) {
                    let known: Vec<String> = entries
                        .iter()
                        .map(|entry| ModelName::new(&head.name.provider, &entry.id).to_string())
                        .collect();
                    let known = known.iter().map(String::as_str);
                    return Err(UnknownModel::among(&head.name.model, Some(&head.name.provider), known));
                }
            }
        }
        Ok(self.describe_for(agent, model))
    }

    fn tries_again(&self) -> bool {
        true
    }

    fn may_answer(&self, request: &ModelRequest) -> Vec<Answering> {
        if let Some(planner) = self.planner(&request.model) {
            return planner.may_answer(request);
        }
        let targets = self.target_for(Wish::of(request)).map(|chain| chain.targets).unwrap_or_default();
        let answering = |target: Target| Answering {
            provider: target.name.provider,
            model: target.name.model,
            credential: target.credentials.into_iter().next(),
        };
        targets.into_iter().map(answering).collect()
    }

    fn may_embed(&self, request: &EmbeddingRequest) -> Vec<Answering> {
        super::embed::candidates(&self.accounts, &self.naming, request).unwrap_or_default()
    }

    fn seller(&self, provider: &str) -> Seller {
        match self.accounts.providers.get(provider) {
            Some(account) => Seller::new(provider, account.kind.as_str(), account.base_url.as_deref()),
            None => Seller::new(provider, provider, None),
        }
    }

    fn sees_images(&self, agent: &str, model: &str) -> bool {
        let wish = Wish { agent: Some(agent), model, ..Wish::turn() };
        let head = self.target_for(wish).ok().and_then(|chain| chain.targets.into_iter().next());
        head.is_some_and(|head| head.capabilities.contains(&Capability::Images))
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        if let Some(planner) = self.planner(&request.model) {
            return planner.stream(request).await;
        }
        let chain = self.target_for(Wish::of(&request))?;
        let lanes = Lanes::new(chain, &Needs::of(&request), turn_of(request.run_id))?;
        let mut ground = self.ground.clone();
        if request.purpose != Purpose::Turn {
            // Only a run waits for a provider to come back; what is asked on the side is left undone.
            let policy = RoutePolicy { outage_patience: Duration::ZERO, ..RoutePolicy::clone(&ground.policy) };
            ground.policy = Arc::new(policy);
        }
        Ok(walk(ground, lanes, request))
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Option<Embeddings>, ModelError> {
        super::embed::embed(&self.ground, &self.accounts, &self.naming, request).await
    }

    /// The models of all routes. A router over one account asks its server.
    async fn models(&self) -> Result<Vec<ModelEntry>, ModelError> {
        if let Naming::Bare { provider, .. } = &*self.naming {
            return self.provider(provider).await?.models().await;
        }
        let mut names: Vec<&ModelName> = Vec::new();
        for name in self.configured() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let entry = |name: &ModelName| {
            let account = self.accounts.providers.get(&name.provider)?;
            Some(ModelEntry {
                context_tokens: Some(account.window_of(&name.model)),
                capabilities: Some(account.capabilities_of(&name.model).to_vec()),
                ..ModelEntry::named(name.to_string())
            })
        };
        Ok(names.into_iter().filter_map(entry).collect())
    }
}
