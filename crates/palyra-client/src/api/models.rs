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
    /// Variables about models that are set in the daemon's environment, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
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

/// Whose models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferedModelsParams {
    /// The provider, by its name in `models.toml` or as `discover` names it.
    pub provider: String,
}

/// What a provider says it offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedModelsResponse {
    /// The models.
    pub models: Vec<OfferedModelView>,
}

/// One model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OfferedModelView {
    /// The name to ask for it by.
    pub id: String,
    /// A name for people, where the provider has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many tokens fit into one call, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// How long an answer may be, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// What it can do, such as `tools`; absent if the provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// Price of a million tokens of requests in micro-USD, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<u64>,
    /// Price of a million tokens of answers in micro-USD, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<u64>,
}

/// Which models to test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestModelsParams {
    /// The model as `PROVIDER/MODEL`; all of the default route if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether to send every tool there is, instead of those that a run sends first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_tools: bool,
}

/// What came of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestModelsResponse {
    /// The provider in use, and why.
    pub provider: ProviderView,
    /// One result for each model and key; empty if no language model is in use.
    pub results: Vec<ModelTestView>,
}

/// What came of a short conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelTestView {
    /// The model's full name, `PROVIDER/MODEL`.
    pub model: String,
    /// The name of the key that was used, where there are keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// How many tokens fit into one call.
    pub context_tokens: u32,
    /// How many tools the model was told about.
    pub tools: u32,
    /// The tool that it called, if it called one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// What it said last, shortened.
    pub text: String,
    /// Tokens of the requests, as the provider counted them.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// Why it failed and what to do, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
}
