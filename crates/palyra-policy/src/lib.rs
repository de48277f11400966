//! Whether an effect may happen, decided by Cedar policies.
//!
//! A [`Request`] says who wants to do what to which resource, with the labels and the provenance of every argument. A
//! [`PolicySet`] is the shipped policies together with the operator's directory, parsed, validated strictly and indexed by
//! action. [`PolicySet::decide`] answers with a [`Decision`]: permit, permit if a person agrees, or deny, with the policies that
//! determined it and reasons for the person and for the model. [`PolicyStore`] holds the set in force and swaps it whole.
//!
//! Whoever commands the daemon is decided about in the same way: a [`CommandRequest`] says who asks for which command about whose
//! things, and [`PolicySet::decide_command`] answers.
//!
//! Everything fails closed. A file that cannot be read, parsed or validated refuses the whole set; a request that does not fit the
//! schema, or a policy that fails while it is evaluated, is a denial.
//!
//! Leaves to others: computing labels and provenance (the engine), asking people (approvals), acting on the decision.
//!
//! Cedar was chosen because its language is small and total, has a validator that catches misspelt names, and can be analysed.

mod annotations;
mod cedar_text;
mod command;
mod command_cache;
mod compile;
mod complexity;
mod context;
mod decide;
mod deep_stack;
mod diff;
mod entities;
mod error;
mod explain;
mod grants;
mod lint;
mod names;
mod narrowest;
mod pattern;
mod place;
mod policy_set;
mod reasons;
mod request;
mod shipped;
mod signals;
mod simulate;
mod slices;
mod source;
mod store;
mod test_runner;
mod vocabulary;

pub use annotations::{Annotations, Approval, Role};
pub use command::CommandRequest;
pub use decide::{Decision, Prepared};
pub use diff::{Change, PolicyDiff, diff};
pub use error::PolicyError;
pub use explain::{Explanation, Outcome, PolicyExplanation};
pub use grants::Grant;
pub use lint::{Finding, KnownEntities, LintRule, lint};
pub use names::schema;
pub use narrowest::narrowest_pattern;
pub use palyra_common::{CommandEffect, Consequence, EffectScope, Provenance, SinkKind};
pub use pattern::{APPROVED_FILE, ObservedCall, Pattern, PatternGrant, PatternScope, ValuePattern, pattern_policy};
pub use place::Place;
pub use policy_set::{PolicyEntry, PolicySet, PolicySources};
pub use request::{
    AnswerFacts, Argument, Asking, CommandFacts, Connection, Containment, Context, Destination, EffectFacts, Envelope,
    Location, Origin, Principal, Request, Resource, RunPrincipal, ToolFacts,
};
pub use shipped::{SCHEMA, SHIPPED_POLICIES, SHIPPED_TESTS, ShippedFile};
pub use signals::{SignalConfidence, SignalKind, Signals};
pub use simulate::{ChangedDecision, PastDecision, Simulation, simulate};
pub use source::{MAX_FILE_BYTES, MAX_POLICIES, MAX_SET_BYTES, PolicySource};
pub use store::PolicyStore;
pub use test_runner::{CaseFailure, TestReport, run_test_file, run_test_text, run_tests};
pub use vocabulary::ActionKind;
