//! What a decision is asked about, as plain data.
//!
//! A request is stored beside its decision, so that past decisions can be simulated against a proposed set; it is also what a
//! test case writes down. Unknown fields are refused. How it becomes Cedar is the business of `entities.rs` and `context.rs`.

use std::collections::BTreeSet;

use palyra_common::{
    ApprovalScope, Confidentiality, Consequence, DataOrigin, Label, PrincipalRole, Risk, RunMode, Timestamp, TokenScope,
};
use serde::{Deserialize, Serialize};

use crate::{ActionKind, EffectScope, Provenance, Signals, SinkKind};

/// Who wants to do what to which resource, and all that policies may look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Who acts.
    pub principal: Principal,
    /// What kind of effect it is.
    pub action: ActionKind,
    /// What is acted on.
    pub resource: Resource,
    /// The facts around it.
    pub context: Context,
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Principal {
    /// A run, for everybody it acts for. Effects have no other principal.
    Run(RunPrincipal),
    /// A person.
    User(String),
    /// A device of a person.
    Device {
        /// The device.
        id: String,
        /// Whose it is.
        owner: String,
    },
    /// Whoever writes in a chat channel.
    Channel(String),
}

/// A run and everybody it acts for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPrincipal {
    /// The run.
    pub run: String,
    /// Its session.
    pub session: String,
    /// The agent that plans.
    pub agent: String,
    /// Whose run it is.
    pub user: String,
    /// The roles of that person.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub roles: BTreeSet<String>,
    /// The device it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The channel it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The machine it works on, if not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// What is acted on. A clearance is the highest confidentiality that may go there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Resource {
    /// The tool itself, as the context describes it.
    Tool,
    /// A file or directory.
    Path {
        /// Normalised: relative to the workspace inside of it, absolute elsewhere.
        name: String,
        /// On which side of the workspace's border it lies.
        location: Location,
    },
    /// A host.
    Host(Destination),
    /// A secret of the vault.
    Secret {
        /// The vault's scope.
        scope: String,
        /// Its name there.
        name: String,
    },
    /// A chat channel.
    Channel(Destination),
    /// Another machine.
    Worker(Destination),
    /// A part of memory.
    Memory(Destination),
    /// Another agent.
    Agent(String),
    /// A run that waits for an answer.
    Run(RunPrincipal),
    /// The daemon itself: what belongs to nobody.
    Daemon,
    /// What belongs to somebody: sessions with their runs and approvals.
    Conversation {
        /// To whom.
        owner: String,
    },
}

/// Something that can receive data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// Its name.
    pub name: String,
    /// The highest confidentiality it may receive; public unless somebody said more.
    #[serde(default = "public")]
    pub clearance: Confidentiality,
}

pub(crate) fn public() -> Confidentiality {
    Confidentiality::Public
}

/// On which side of the workspace's border a path lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// Inside.
    InsideWorkspace,
    /// Outside.
    OutsideWorkspace,
}

/// The facts around a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Context {
    /// Of an effect.
    Effect(Box<EffectFacts>),
    /// Of an answer to an approval.
    Answer(AnswerFacts),
    /// Of a command.
    Command(CommandFacts),
}

/// A tool as policies see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFacts {
    /// The name it is called by.
    pub name: String,
    /// Where it comes from, if it is not built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The highest confidentiality it may receive; public unless somebody said more.
    #[serde(default = "public")]
    pub clearance: Confidentiality,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A skill.
    Skill(String),
    /// A server of outside tools.
    Server(String),
}

/// All that policies may look at in an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectFacts {
    /// The tool that is called.
    pub tool: ToolFacts,
    /// How far the tool says it reaches.
    pub scope: EffectScope,
    /// How much harm it could do.
    pub risk: Risk,
    /// How the run treats untrusted results.
    pub mode: RunMode,
    /// The label of everything the run has read so far.
    pub labels: Label,
    /// The arguments whose value or origin policies may look at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Argument>,
    /// The arguments that are there and hold nothing, as `name: []`. To empty something is an effect, too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub empty: BTreeSet<String>,
    /// Whether the operator wants to be asked before this tool.
    pub asking: Asking,
    /// Whether the effect matters outside the run.
    pub consequence: Consequence,
    /// Whether the run's stated intent covers the call.
    pub envelope: Envelope,
    /// The places whose data the call may hold and that its destination is not cleared for.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uncleared: BTreeSet<DataOrigin>,
    /// Where the run works: an absolute path without links.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Whether the effect stays inside the workspace and can be taken back as a whole.
    #[serde(default, skip_serializing_if = "Containment::is_reaching")]
    pub containment: Containment,
    /// Signs that something the run has read tries to give orders.
    #[serde(default, skip_serializing_if = "Signals::is_empty")]
    pub signals: Signals,
    /// The connection, for `net.connect` and `browser.act`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// Where a secret is put to use, for `secret.use`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_for: Option<Destination>,
    /// When.
    pub now: Timestamp,
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it decides, if it is a sink.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<SinkKind>,
    /// Where its value comes from.
    pub provenance: Provenance,
    /// The label of its value.
    pub label: Label,
    /// The normalised value, where patterns may look at it. Left out for content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// For a path: on which side of the border. A path that does not say counts as outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Where the value was found, for the person: `the result of mcp.bank.read_file (call t1c1)`. Policies cannot see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What stands around the value there, for the person. Policies cannot see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
}

/// A connection that is about to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// `https`, `http`, `tcp`, ….
    pub scheme: String,
    /// The port.
    pub port: u16,
    /// The method, in capitals; empty where there is none.
    #[serde(default)]
    pub method: String,
}

/// All that policies may look at when somebody answers an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerFacts {
    /// The tool that waits.
    pub tool: ToolFacts,
    /// How much harm it could do.
    pub risk: Risk,
    /// How far the answer reaches.
    pub reach: ApprovalScope,
    /// When.
    pub now: Timestamp,
}

/// All that policies may look at when somebody commands the daemon. Whether it concerns their own is seen from the request itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandFacts {
    /// Its name.
    pub command: String,
    /// The scope that it needs.
    pub scope: TokenScope,
    /// The scopes that the credential has.
    pub scopes: BTreeSet<TokenScope>,
    /// What the caller is to this installation.
    pub role: PrincipalRole,
    /// How the caller was identified.
    pub via: String,
    /// The directory that it would have a run work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// When.
    pub now: Timestamp,
}

/// Whether the operator wants to be asked before a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asking {
    /// The operator lists the tool.
    AskBefore,
    /// The operator does not.
    NotListed,
}

/// Whether a run's stated intent covers a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Envelope {
    /// It does.
    Inside,
    /// It does not.
    Outside,
}

/// Whether an effect stays inside the workspace and can be taken back as a whole, as whoever carries it out answers for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// It does.
    Contained,
    /// It does not, or nobody answers for it.
    #[default]
    Reaching,
}

impl Containment {
    /// Whether it does not, or nobody answers for it.
    #[must_use]
    pub fn is_reaching(&self) -> bool {
        *self == Self::Reaching
    }
}
