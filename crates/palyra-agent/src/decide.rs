//! The one port that every effect passes, and the decider that stands behind it until policies do.
//!
//! The port fails closed: a decider that answers with an error has denied. [`WorkspaceDecider`] permits what reads and writes inside the
//! workspace and nothing else; tools the operator lists are asked about first.

use std::collections::BTreeSet;

use async_trait::async_trait;
use palyra_common::{StableErrorEnvelope, ToolVerdict};
use palyra_tools::{EffectScope, ToolDeclaration};
use serde_json::Value;

use crate::spec::RunSpec;

/// A call that a model wants to make.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// The run it belongs to.
    pub run: &'a RunSpec,
    /// The call.
    pub call_id: &'a str,
    /// What the tool says about itself.
    pub tool: &'a ToolDeclaration,
    /// The arguments, already checked against the tool's schema.
    pub arguments: &'a Value,
    /// The normalised thing it acts on.
    pub resource: &'a str,
}

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Permit, ask or deny.
    pub verdict: ToolVerdict,
    /// Why, in plain words.
    pub reasons: Vec<String>,
    /// What determined it.
    pub policies: Vec<String>,
}

/// Decides on proposals. An error is a denial.
#[async_trait]
pub trait Decide: Send + Sync + 'static {
    /// Whether the call may happen.
    async fn decide(&self, proposal: Proposal<'_>) -> Result<Verdict, StableErrorEnvelope>;
}

/// Permits reads and writes inside the workspace, asks about the tools it was told to ask about, denies everything else.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceDecider {
    ask_before: BTreeSet<String>,
}

impl WorkspaceDecider {
    /// A decider that asks a person before it permits one of these tools.
    #[must_use]
    pub fn asking_before(tools: impl IntoIterator<Item = String>) -> Self {
        Self { ask_before: tools.into_iter().collect() }
    }
}

#[async_trait]
impl Decide for WorkspaceDecider {
    async fn decide(&self, proposal: Proposal<'_>) -> Result<Verdict, StableErrorEnvelope> {
        let (permitted, policy, reason) = match proposal.tool.scope {
            EffectScope::Pure => (true, "builtin.pure", "it touches nothing outside the call"),
            EffectScope::WorkspaceRead => (true, "builtin.workspace_read", "it reads inside the workspace"),
            EffectScope::WorkspaceWrite => (true, "builtin.workspace_write", "it writes inside the workspace"),
            EffectScope::External => (false, "builtin.default_deny", "no policy permits effects outside the workspace"),
        };
        let name = proposal.tool.name.as_str();
        let verdict = match permitted {
            false => ToolVerdict::Deny,
            true if self.ask_before.contains(name) => {
                return Ok(Verdict {
                    verdict: ToolVerdict::NeedsApproval,
                    reasons: vec![format!("`run.ask_before` lists {name}")],
                    policies: vec![policy.to_owned(), "config.run.ask_before".to_owned()],
                });
            }
            true => ToolVerdict::Permit,
        };
        Ok(Verdict { verdict, reasons: vec![reason.to_owned()], policies: vec![policy.to_owned()] })
    }
}
