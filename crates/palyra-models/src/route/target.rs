//! A model that can be asked, with all that decides whether it is.

use serde::Serialize;

use crate::accounts::{Account, ModelName, ProviderKind};
use crate::detect::is_loopback;
use crate::model_entry::Capability;

/// A model of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Its full name.
    pub name: ModelName,
    /// What its provider speaks.
    pub kind: ProviderKind,
    /// Where the conversation would be sent.
    pub destination: String,
    /// How many tokens fit into one call.
    pub context_tokens: u32,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// The names of the account's keys.
    pub credentials: Vec<String>,
}

impl Target {
    pub(super) fn of(name: ModelName, account: &Account) -> Self {
        Self {
            kind: account.kind,
            destination: account.destination(),
            context_tokens: account.window_of(&name.model),
            capabilities: account.capabilities_of(&name.model).to_vec(),
            credentials: account.keys.iter().map(|key| key.name.clone()).collect(),
            name,
        }
    }

    /// Whether its server is on this machine and may be started again with another window.
    #[must_use]
    pub fn is_own_server(&self) -> bool {
        matches!(self.kind, ProviderKind::OpenaiCompatible) && is_loopback(&self.destination)
    }

    /// What it lacks of these.
    pub(super) fn lacks(&self, needed: &[Capability]) -> Vec<Capability> {
        needed.iter().copied().filter(|capability| !self.capabilities.contains(capability)).collect()
    }
}
