//! The one port that every effect passes.
//!
//! The port fails closed: a decider that answers with an error has denied. [`PolicyDecider`] stands behind it in every daemon.

mod policy;

use std::collections::BTreeSet;

use async_trait::async_trait;
use palyra_common::config::MandateClass;
use palyra_common::{ApprovalScope, Risk, RunId, SessionId, StableErrorEnvelope, Timestamp, ToolVerdict};
use palyra_flow::FlowFacts;
use palyra_policy::{PatternGrant, Signals};
use palyra_tools::{CallResource, Containment, ToolDeclaration};
use serde_json::Value;

use crate::spec::RunSpec;

pub use policy::PolicyDecider;
pub(crate) use policy::{CONFIRM_MANDATES, contained, observed};

/// A call that a model wants to make.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// The run it belongs to.
    pub run: &'a RunSpec,
    /// The call.
    pub call_id: &'a str,
    /// What the tool says about itself.
    pub tool: &'a ToolDeclaration,
    /// The arguments, references resolved, already checked against the tool's schema.
    pub arguments: &'a Value,
    /// What it acts on.
    pub resource: &'a CallResource,
    /// Where the values come from, what the planner has seen, what the run set out to do.
    pub flow: &'a FlowFacts,
    /// Of what kind the mandates are that the call states.
    pub states: &'a BTreeSet<MandateClass>,
    /// Signs that something the run has read tries to give orders.
    pub signals: &'a Signals,
    /// What the call can reach, as whoever carries it out answers for.
    pub containment: &'a Containment,
    /// When.
    pub at: Timestamp,
}

/// A decision with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Permit, ask or deny.
    pub verdict: ToolVerdict,
    /// Why, in plain words, for the person.
    pub reasons: Vec<String>,
    /// Why, for the model; empty means the same.
    pub told: Vec<String>,
    /// What determined it.
    pub policies: Vec<String>,
    /// The policies that ask, if a person is asked.
    pub asking: BTreeSet<String>,
    /// What was asked, as it is kept for simulations.
    pub requests: Vec<Value>,
}

/// Somebody's answer to an approval.
#[derive(Debug, Clone, Copy)]
pub struct AnswerProposal<'a> {
    /// Who answers.
    pub by: &'a str,
    /// The run that asks.
    pub run_id: RunId,
    /// Its session.
    pub session_id: SessionId,
    /// The agent that carries it out.
    pub agent: &'a str,
    /// Whose run it is.
    pub owner: &'a str,
    /// The tool that waits.
    pub tool: &'a str,
    /// How much harm it could do.
    pub risk: Risk,
    /// How far the answer reaches.
    pub scope: ApprovalScope,
    /// When.
    pub at: Timestamp,
}

/// Decides on proposals. An error is a denial.
#[async_trait]
pub trait Decide: Send + Sync + 'static {
    /// Whether the call may happen.
    async fn decide(&self, proposal: Proposal<'_>) -> Result<Verdict, StableErrorEnvelope>;

    /// Whether this person may answer this question.
    async fn decide_answer(&self, answer: AnswerProposal<'_>) -> Result<Verdict, StableErrorEnvelope>;

    /// The patterns that people agreed to, whenever they change. Those that are gone must no longer count from now on.
    fn agreed(&self, patterns: Vec<PatternGrant>) -> Result<(), StableErrorEnvelope>;
}
