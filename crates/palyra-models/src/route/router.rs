//! The router: a provider that asks others, in the order the operator gave.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{RunId, SecretResolver};

use super::choose::{Chain, Naming, Wish, choose};
use super::explain::{Explanation, explain};
use super::factory::ProviderFactory;
use super::gates::{GateHealth, Gates};
use super::lanes::Lanes;
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
use crate::price::Seller;
use crate::provider::{ModelProvider, ModelStream, ProviderInfo};
use crate::request::ModelRequest;
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
        let RouterOptions { factory, secrets, timeouts, policy, pace } = options;
        let pool = Arc::new(Pool::new(&accounts, model, timeouts, factory, secrets));
        let ground = Ground { pool, gates: Arc::new(Gates::default()), pace, policy: Arc::new(policy) };
        Self { accounts: Arc::new(accounts), naming: Arc::new(naming), ground, agent: None }
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
        self.ground.pool.take_over(&earlier.ground.pool);
        self.ground.gates = Arc::clone(&earlier.ground.gates);
        self
    }

    /// Which models would be asked, in order.
    pub fn target_for(&self, wish: Wish<'_>) -> Result<Chain, ModelError> {
        choose(&self.accounts, &self.naming, Wish { agent: wish.agent.or(self.agent.as_deref()), ..wish })
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

    /// The accounts and routes.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
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
        let head = self.target_for(Wish::turn()).ok().and_then(|chain| chain.targets.into_iter().next());
        let (model, context_tokens) = match (&*self.naming, head) {
            (_, None) => (String::new(), 0),
            (Naming::Full, Some(head)) => (head.name.to_string(), head.context_tokens),
            (Naming::Bare { provider, .. }, Some(head)) => {
                // The server may have said meanwhile which model it uses.
                let key = head.credentials.first().map(String::as_str);
                let made = self.ground.pool.made_already(provider, key).map(|made| made.describe().model);
                (made.unwrap_or(head.name.model), head.context_tokens)
            }
        };
        ProviderInfo { name: self.name().to_owned(), model, context_tokens, is_language_model: true }
    }

    fn describe_for(&self, agent: &str, model: Option<&str>) -> ProviderInfo {
        let wish = Wish { agent: Some(agent), model: model.unwrap_or_default(), ..Wish::turn() };
        let head = self.target_for(wish).ok().and_then(|chain| chain.targets.into_iter().next());
        match (&*self.naming, head) {
            (Naming::Full, Some(head)) => ProviderInfo {
                name: self.name().to_owned(),
                model: head.name.to_string(),
                context_tokens: head.context_tokens,
                is_language_model: true,
            },
            // A name that nobody knows is told when the model is asked.
            (_, _) => {
                ProviderInfo { model: model.map_or_else(|| self.describe().model, str::to_owned), ..self.describe() }
            }
        }
    }

    fn tries_again(&self) -> bool {
        true
    }

    fn may_answer(&self, request: &ModelRequest) -> Vec<Answering> {
        let targets = self.target_for(Wish::of(request)).map(|chain| chain.targets).unwrap_or_default();
        let answering = |target: Target| Answering {
            provider: target.name.provider,
            model: target.name.model,
            credential: target.credentials.into_iter().next(),
        };
        targets.into_iter().map(answering).collect()
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
        let chain = self.target_for(Wish::of(&request))?;
        let lanes = Lanes::new(chain, &Needs::of(&request), turn_of(request.run_id))?;
        Ok(walk(self.ground.clone(), lanes, request))
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
        for name in self.accounts.routes.lists().flat_map(|(_, list)| list) {
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
