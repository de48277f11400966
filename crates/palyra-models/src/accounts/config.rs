//! What `models.toml` says, once it is read: accounts and routes.

use std::collections::BTreeMap;

use palyra_common::{AuxiliaryTaskKind, ModelPreference, SecretRef};
use serde::Serialize;

use super::kind::ProviderKind;
use super::name::ModelName;
use super::timeouts::AccountTimeouts;
use crate::model_entry::Capability;
use crate::wire::PlaintextKey;

/// All accounts and routes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Accounts {
    /// The accounts by the operator's names for them.
    pub providers: BTreeMap<String, Account>,
    /// Which models are asked for what.
    pub routes: Routes,
}

/// An account with a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where it is; the kind's own place if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// How many tokens fit into one call, for all models of it that say nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// What its models can do, for all that say nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Capability>>,
    /// How patient calls of it are, where that is not as for all.
    #[serde(skip_serializing_if = "AccountTimeouts::is_empty")]
    pub timeouts: AccountTimeouts,
    /// Whether its keys may be sent without encryption.
    #[serde(skip_serializing_if = "PlaintextKey::is_refused")]
    pub plaintext_key: PlaintextKey,
    /// Its keys, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<AccountKey>,
    /// What is special about single models.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelSettings>,
}

/// One key of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountKey {
    /// The operator's name for it; it is what records and messages show.
    pub name: String,
    /// Where the key is.
    pub key: SecretRef,
}

/// What is special about one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ModelSettings {
    /// How many tokens fit into one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// What it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Capability>>,
}

/// Which models are asked for what. Each list is in the order of asking; an empty one says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Routes {
    /// For everything that nothing else is said about.
    pub default: Vec<ModelName>,
    /// For what should cost little.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub low_cost: Vec<ModelName>,
    /// For what should be answered soon.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub low_latency: Vec<ModelName>,
    /// For what has to be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vision_capable: Vec<ModelName>,
    /// For one kind of auxiliary task.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tasks: BTreeMap<AuxiliaryTaskKind, Vec<ModelName>>,
    /// For one agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Vec<ModelName>>,
}

impl Routes {
    /// The list for a preference.
    #[must_use]
    pub fn preferred(&self, preference: ModelPreference) -> &[ModelName] {
        match preference {
            ModelPreference::LowCost => &self.low_cost,
            ModelPreference::LowLatency => &self.low_latency,
            ModelPreference::VisionCapable => &self.vision_capable,
        }
    }

    /// Every list that says something, with the key it stands under.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (String, &[ModelName])> {
        let named = [
            ("default", &self.default),
            ("low_cost", &self.low_cost),
            ("low_latency", &self.low_latency),
            ("vision_capable", &self.vision_capable),
        ];
        let named = named.into_iter().map(|(name, list)| (name.to_owned(), list.as_slice()));
        let tasks = self.tasks.iter().map(|(kind, list)| (format!("tasks.{kind}"), list.as_slice()));
        let agents = self.agents.iter().map(|(agent, list)| (format!("agents.{agent}"), list.as_slice()));
        named.chain(tasks).chain(agents).filter(|(_, list)| !list.is_empty())
    }
}

impl Account {
    /// An account of this kind with nothing said about it.
    #[must_use]
    pub const fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            context_tokens: None,
            capabilities: None,
            timeouts: AccountTimeouts {
                connect_seconds: None,
                first_byte_seconds: None,
                between_chunks_seconds: None,
                total_seconds: None,
            },
            plaintext_key: PlaintextKey::Refused,
            keys: Vec::new(),
            models: BTreeMap::new(),
        }
    }

    /// How many tokens fit into one call of this model.
    #[must_use]
    pub fn window_of(&self, model: &str) -> u32 {
        self.configured_window(model).unwrap_or_else(|| self.kind.usual_window())
    }

    /// The same, where somebody said so.
    #[must_use]
    pub fn configured_window(&self, model: &str) -> Option<u32> {
        let special = self.models.get(model).and_then(|settings| settings.context_tokens);
        special.or(self.context_tokens)
    }

    /// What this model can do.
    #[must_use]
    pub fn capabilities_of(&self, model: &str) -> &[Capability] {
        let special = self.models.get(model).and_then(|settings| settings.capabilities.as_deref());
        special.or(self.capabilities.as_deref()).unwrap_or_else(|| self.kind.usual_capabilities())
    }

    /// Where conversations with it are sent.
    #[must_use]
    pub fn destination(&self) -> String {
        let url = self.base_url.as_deref().or_else(|| self.kind.usual_url()).unwrap_or("nowhere");
        palyra_common::RedactedUrl::new(url).to_string()
    }
}
