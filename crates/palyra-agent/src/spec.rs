//! What a run is asked to do: everything the machine knows before its first step.
//!
//! A [`RunSpec`] is journaled whole as the run's first record, so that a run can be rebuilt from its tape alone. Nothing in it is
//! looked up again later: project files, attachments and session history are taken once, at acceptance.

use std::sync::Arc;

use palyra_common::{Confidentiality, Digest, Integrity, Label, RunId, RunMode, SessionId};
use palyra_models::ProviderInfo;
use serde::{Deserialize, Serialize};

use crate::agents::RunAgent;
use crate::started_with::StartedWith;

/// Raised whenever the same inputs would give other actions. A machine acts by the version that its run was accepted under, so that older runs can be resumed: whatever
/// differs asks for the version.
pub const MACHINE_VERSION: u32 = 7;
/// The first version that says of a lost call in the question itself that it may have happened, and whose offline planner has not done what was taken back.
pub(crate) const SAYS_WHAT_BECAME: u32 = 7;
/// The first version whose questions are bound to everything that they show.
pub(crate) const BINDS_WHAT_IS_SHOWN: u32 = 7;
/// The first version whose runs use mandates up, and whose context label counts every earlier answer that the planner sees.
pub(crate) const USES_MANDATES: u32 = 6;
/// The oldest version that this machine still acts by.
pub(crate) const OLDEST_MACHINE_VERSION: u32 = 3;

/// A person's task with the context it was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The run.
    pub run_id: RunId,
    /// The conversation it belongs to.
    pub session_id: SessionId,
    /// Version of the machine that accepted it; see [`MACHINE_VERSION`].
    pub machine_version: u32,
    /// Whose run it is.
    #[serde(default = "crate::session::local_user")]
    pub owner: String,
    /// The agent that carries it out, by name: models and budgets are chosen by it.
    #[serde(default = "main_agent", skip_serializing_if = "is_main_agent")]
    pub agent: String,
    /// What the agent was when the run was accepted; absent if nobody set it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RunAgent>,
    /// How untrusted results are treated.
    pub mode: RunMode,
    /// Drawn at random when the run was accepted; makes the frames around untrusted text unforgeable.
    pub frame_seed: Digest,
    /// What the person wrote, or an outside sender.
    pub prompt: String,
    /// Who wrote it, if it was not the person whose run it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<OutsideSender>,
    /// Files the person referred to with `@file:`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<ContextItem>,
    /// Absolute path of the workspace.
    pub workspace: String,
    /// With what credential the run was asked for. Runs of older versions say nothing, which is taken as the least.
    #[serde(default, skip_serializing_if = "StartedWith::is_default")]
    pub started_with: StartedWith,
    /// Palyra's own instructions to the model.
    pub system: String,
    /// `PALYRA.md`, `AGENTS.md` and the like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project: Vec<ContextItem>,
    /// Where the run works: workspace, date, platform, state of the repository. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<ContextItem>,
    /// Earlier exchanges of the session, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Exchange>,
    /// How many older exchanges were left out of `history`; they stay on the journal.
    #[serde(default)]
    pub history_omitted: u32,
    /// Which tools the model is told about.
    #[serde(default, skip_serializing_if = "ToolSelection::is_all")]
    pub tools: ToolSelection,
    /// Tools of whoever asked for the run; calls of them are handed back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<ClientTool>,
    /// What has to be there before the run may end with its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// Bounds on the run.
    pub limits: RunLimits,
    /// The model that plans.
    pub model: ModelChoice,
    /// Tokens of the model's window that tools and the answer take, as estimated when the run was accepted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reserved_tokens: u32,
    /// What makes creating this run idempotent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<Idempotency>,
}

palyra_common::runtime_contract_enum! {
    /// Which tools the model of a run is told about. What it may call is decided elsewhere.
    #[derive(Default)]
    pub enum ToolSelection("tool_selection") {
        /// All there are: runs of planners that do not read descriptions, and of older versions.
        #[default]
        All = "all",
        /// Those that every run needs, and others once it comes to need them.
        Needed = "needed",
    }
}

impl ToolSelection {
    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// What has to be there before a run may end with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objective {
    /// In the words of the person.
    pub text: String,
    /// Answers that are judged before the last one is taken as it is.
    pub max_attempts: u32,
}

/// The agent of runs that name no other.
pub const MAIN_AGENT: &str = "main";

fn main_agent() -> String {
    MAIN_AGENT.to_owned()
}

fn is_main_agent(name: &str) -> bool {
    name == MAIN_AGENT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is given by serde")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl RunSpec {
    /// Tokens of the window that instructions and conversation may take.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.model.context_tokens.saturating_sub(self.reserved_tokens)
    }

    /// What the operator says to the model in runs of this agent, if anything.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.profile.as_ref().map(|agent| agent.instructions.as_str()).filter(|text| !text.trim().is_empty())
    }

    /// Whether the run's agent has a tool.
    #[must_use]
    pub fn lets_use(&self, tool: &str) -> bool {
        self.profile.as_ref().is_none_or(|agent| agent.lets_use(tool))
    }

    /// The client's tool that the model knows under this name.
    #[must_use]
    pub fn client_tool(&self, full_name: &str) -> Option<&ClientTool> {
        let name = full_name.strip_prefix(ClientTool::PREFIX)?;
        self.client_tools.iter().find(|tool| tool.name == name)
    }
}

/// Somebody outside who wrote over a channel. All of it is the channel's claim; nobody is authenticated by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideSender {
    /// The channel's kind, such as `matrix`; a plain name that the person chose when the place was bound.
    pub channel: String,
    /// The room, thread or direct conversation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conversation: String,
    /// Who wrote, in the channel's own terms.
    pub sender: String,
    /// The channel's own id of the message.
    pub message_id: String,
}

impl OutsideSender {
    /// The label of what they wrote: anyone may have.
    #[must_use]
    pub fn label(&self) -> Label {
        Label::new(Integrity::Untrusted, Confidentiality::Private)
            .from_source(format!("channel {}, {}", self.channel, self.sender))
    }
}

/// The same key with the same request gives the same run; with another request it is a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idempotency {
    /// The caller's key.
    pub key: String,
    /// Digest of the request it came with.
    pub request: Digest,
}

/// A named text that enters the context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextItem {
    /// Where it came from, such as a path in the workspace.
    pub source: String,
    /// Its text, possibly shortened.
    pub text: String,
    /// How far it may be trusted.
    pub label: Label,
    /// The image that goes with the person's message, if it is one that the model sees itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRef>,
}

/// An image of a run; its bytes are an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRef {
    /// Digest of its bytes.
    pub digest: Digest,
}

/// A tool that whoever asked for the run has and Palyra has not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    /// Its name as the client knows it.
    pub name: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Arc<serde_json::Value>,
}

impl ClientTool {
    /// What names of client tools begin with where they stand beside Palyra's own.
    pub const PREFIX: &str = "client.";

    /// Its name as the model knows it: never that of a tool of Palyra.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}{}", Self::PREFIX, self.name)
    }
}

/// One earlier run of the session, reduced to what was asked and answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The run whose tape has the details; absent if the client told of the exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What was asked.
    pub prompt: String,
    /// Label of what was asked; absent if the person asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_label: Option<Label>,
    /// What came of it.
    pub answer: String,
    /// Label of the answer: what the model had read when it wrote it.
    pub label: Label,
}

/// Bounds that end a run when reached. All of them count work, not waiting for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Model turns.
    pub max_turns: u32,
    /// Tool calls.
    pub max_tool_calls: u32,
    /// Working time in milliseconds.
    pub wall_clock_ms: u64,
    /// How long a run may stay queued, paused or waiting, in milliseconds; zero means for ever.
    pub expire_after_ms: u64,
    /// How often the same call with the same result is tolerated before the run is stopped.
    pub loop_repeats: u32,
    /// Read-only calls at work together.
    pub max_parallel: u32,
    /// How long an approval stays open, in milliseconds; zero means for ever.
    pub approval_timeout_ms: u64,
    /// Context size, in percent of the model's window, at which older material is summarised.
    pub compact_at_percent: u32,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_turns: 64,
            max_tool_calls: 128,
            wall_clock_ms: 15 * 60 * 1000,
            expire_after_ms: 7 * 24 * 3600 * 1000,
            loop_repeats: 4,
            max_parallel: 8,
            approval_timeout_ms: 0,
            compact_at_percent: 80,
        }
    }
}

impl ModelChoice {
    /// The model that a provider describes.
    pub(crate) fn of(info: ProviderInfo) -> Self {
        Self { provider: info.name, name: info.model, context_tokens: info.context_tokens }
    }

    /// For people: `provider/model`, or the provider alone where it chooses the model itself.
    pub(crate) fn shown(&self) -> String {
        match self.name.as_str() {
            "" => self.provider.clone(),
            // A router gives full names; older runs have its own name for their provider.
            name if self.provider == "router" || name.split_once('/').is_some_and(|(of, _)| of == self.provider) => {
                name.to_owned()
            }
            name => format!("{}/{name}", self.provider),
        }
    }
}

/// Which model plans the run and how much it can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// Provider, such as `offline`.
    pub provider: String,
    /// Model name as the provider knows it.
    pub name: String,
    /// Size of its context window in tokens.
    pub context_tokens: u32,
}
