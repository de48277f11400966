//! Which models a daemon asks, and how it is with them.

use palyra_common::{AuxiliaryTaskKind, ModelPreference, StableErrorEnvelope, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::health::ProviderView;

/// For what a model is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainModelsParams {
    /// A model or a route that is asked for by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// For this kind of auxiliary task; for a turn of a run if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<AuxiliaryTaskKind>,
    /// For this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What matters most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer: Option<ModelPreference>,
    /// What the model has to be able to do, such as `images`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// About how many tokens the request is.
    #[serde(default)]
    pub tokens: u32,
}

/// Which models would be asked now, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainModelsResponse {
    /// The provider in use, and why.
    pub provider: ProviderView,
    /// The models; absent where there is nothing to choose from, as with the offline planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ModelChoiceView>,
}

/// A list of models with why it is this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoiceView {
    /// Where the list stands, such as `routes.default`.
    pub route: String,
    /// Why this list, in one line.
    pub reason: String,
    /// The models in order.
    pub steps: Vec<ModelStepView>,
}

/// One model of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelStepView {
    /// The model.
    pub target: ModelTargetView,
    /// Whether it would be asked: `ready`, `rests` or `unable`.
    pub standing: String,
    /// What speaks against it, or what is worth knowing, in one line; empty if nothing.
    pub remark: String,
    /// Its keys with what is known of each.
    pub keys: Vec<ModelKeyView>,
}

/// A model that can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTargetView {
    /// Its full name, `PROVIDER/MODEL`.
    pub name: String,
    /// What its provider speaks.
    pub kind: String,
    /// Where the conversation would be sent.
    pub destination: String,
    /// How many tokens fit into one call.
    pub context_tokens: u32,
    /// What it can do.
    pub capabilities: Vec<String>,
    /// The names of the account's keys.
    pub credentials: Vec<String>,
}

/// What is known of a key. The key itself is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelKeyView {
    /// Its name.
    pub name: String,
    /// Whether it would be used now: `ready` or `rests`.
    pub standing: String,
    /// Why not, or what happened lately; empty if nothing.
    pub remark: String,
}

/// How it is with the models of a daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelsStatusResponse {
    /// The provider in use, and why.
    pub provider: ProviderView,
    /// `models.toml`, where the daemon has a place for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Why that file is not in force as it is on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<StableErrorEnvelope>,
    /// Why the price file is not in force as it is on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices_problem: Option<StableErrorEnvelope>,
    /// Everything that has failed lately: providers, keys, models of a key.
    pub troubles: Vec<ModelTroubleView>,
}

/// Something that has failed lately and may rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTroubleView {
    /// The provider.
    pub provider: String,
    /// One key of it; all of them if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// One model with that key; all of them if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `closed`: it may be asked; `open`: it rests; `half_open`: the next call finds out; `probing`: a call is finding out.
    pub state: String,
    /// When its rest ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Failures in a row since it last worked or rested.
    pub failures: u32,
    /// The newest failure, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}
