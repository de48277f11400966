//! The providers of all accounts, one for each key, made when they are first needed.
//!
//! A key is read then, on a thread that may block, and read anew after it was refused: it may have been replaced meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::{SecretResolver, ToStableError as _};

use super::factory::ProviderFactory;
use crate::accounts::{Account, Accounts};
use crate::error::{ModelError, ModelErrorClass};
use crate::provider::ModelProvider;
use crate::wire::{HttpProviderOptions, Timeouts};

type Made = BTreeMap<(String, Option<String>), Arc<dyn ModelProvider>>;

pub(super) struct Pool {
    accounts: BTreeMap<String, Account>,
    /// The model for requests that name none.
    model: Option<String>,
    timeouts: Timeouts,
    factory: Arc<dyn ProviderFactory>,
    secrets: Arc<dyn SecretResolver>,
    made: Mutex<Made>,
}

impl Pool {
    pub(super) fn new(
        accounts: &Accounts,
        model: Option<String>,
        timeouts: Timeouts,
        factory: Arc<dyn ProviderFactory>,
        secrets: Arc<dyn SecretResolver>,
    ) -> Self {
        Self { accounts: accounts.providers.clone(), model, timeouts, factory, secrets, made: Mutex::default() }
    }

    /// The provider of an account with one of its keys.
    pub(super) async fn get(
        self: &Arc<Self>,
        provider: &str,
        credential: Option<&str>,
    ) -> Result<Arc<dyn ModelProvider>, ModelError> {
        if let Some(made) = self.made_already(provider, credential) {
            return Ok(made);
        }
        let (pool, provider, credential) = (Arc::clone(self), provider.to_owned(), credential.map(str::to_owned));
        let making = tokio::task::spawn_blocking(move || pool.make(&provider, credential.as_deref()));
        making.await.map_err(|_| ModelError::new(ModelErrorClass::Transient, "the provider could not be set up"))?
    }

    pub(super) fn made_already(&self, provider: &str, credential: Option<&str>) -> Option<Arc<dyn ModelProvider>> {
        self.locked().get(&(provider.to_owned(), credential.map(str::to_owned))).cloned()
    }

    /// Takes one that was made elsewhere.
    pub(super) fn hold(&self, provider: &str, credential: Option<&str>, made: Arc<dyn ModelProvider>) {
        self.locked().insert((provider.to_owned(), credential.map(str::to_owned)), made);
    }

    /// Takes what another pool has made for accounts that are the same here: their connections stay open.
    pub(super) fn take_over(&self, earlier: &Self) {
        if self.model != earlier.model || self.timeouts != earlier.timeouts {
            return;
        }
        let made: Made = earlier.locked().clone();
        for ((provider, credential), made) in made {
            if self.accounts.get(&provider).is_some_and(|account| earlier.accounts.get(&provider) == Some(account)) {
                self.locked().entry((provider, credential)).or_insert(made);
            }
        }
    }

    /// The next call makes it anew.
    pub(super) fn forget(&self, provider: &str, credential: Option<&str>) {
        self.locked().remove(&(provider.to_owned(), credential.map(str::to_owned)));
    }

    /// Makes a provider. Blocks while its key is read.
    fn make(&self, provider: &str, credential: Option<&str>) -> Result<Arc<dyn ModelProvider>, ModelError> {
        let permanent = |message: String| ModelError::new(ModelErrorClass::Permanent, message);
        let account =
            self.accounts.get(provider).ok_or_else(|| permanent(format!("there is no provider `{provider}`")))?;
        let api_key = match credential {
            None => None,
            Some(name) => {
                let key = account.keys.iter().find(|key| key.name == name);
                let key = key.ok_or_else(|| permanent(format!("`{provider}` has no key `{name}`")))?;
                let read = self.secrets.resolve(&key.key).map_err(|error| {
                    let hint = error.to_stable().recovery_hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                    let message = format!("the key `{name}` of `{provider}` cannot be read: {error}{hint}");
                    ModelError::new(ModelErrorClass::Auth, message)
                })?;
                Some(read)
            }
        };
        let options = HttpProviderOptions {
            name: provider.to_owned(),
            base_url: account.base_url.clone(),
            api_key,
            credential: credential.map(str::to_owned),
            model: self.model.clone(),
            context_tokens: account.window_of(self.model.as_deref().unwrap_or_default()),
            timeouts: account.timeouts.over(self.timeouts),
            plaintext_key: account.plaintext_key,
        };
        let made = self.factory.make(account.kind, options)?;
        self.hold(provider, credential, Arc::clone(&made));
        Ok(made)
    }

    fn locked(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
