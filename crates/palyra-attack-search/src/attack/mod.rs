//! Attacks: sequences of steps that a hostile planner takes.
//!
//! `expression` says what values are made of, `honest` what a planner does before it turns hostile, `tricks` and `laundering` are the grammar, `workshop` what tricks are made with, `search` puts tricks together,
//! keeps what came far and changes it.

mod expression;
mod honest;
mod laundering;
mod search;
mod tricks;
mod workshop;

use std::collections::BTreeMap;
use std::fmt;

pub use expression::{Encoding, Expression, Piece, Sight};
pub use honest::{prefix, statements};
pub use search::{Budget, Contrast, Find, Search, Tally};

use crate::world::{Origin, Part};

/// Who the planner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adversary {
    /// Honest until it has been shown untrusted text, hostile from then on.
    Misled,
    /// Hostile from its first token.
    Subverted,
}

/// One effect that a planner states it will need.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The tool.
    pub tool: String,
    /// What its targets are bound to, by argument.
    pub targets: BTreeMap<String, Vec<String>>,
    /// What its content is bound to, by argument; what is not listed is open.
    pub dictated: BTreeMap<String, String>,
    /// The most of each limit, by argument.
    pub caps: BTreeMap<String, i64>,
    /// How often.
    pub count: u32,
    /// What open content may be made of.
    pub sources: Vec<Origin>,
    /// What the arguments are, in truth, so that a binding can be written in their shape.
    pub parts: BTreeMap<String, Part>,
}

/// One step of a planner.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It says what it will do.
    State(Vec<Statement>),
    /// It calls a tool.
    Call {
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Vec<(String, Expression)>,
    },
    /// It asks to read the text of a variable.
    Reveal {
        /// The tool whose result it holds.
        tool: String,
        /// The path in it.
        path: String,
    },
    /// It answers, and the user writes again in the same session.
    NextRun {
        /// The answer.
        answer: Vec<Piece>,
    },
    /// A model without tools, which serves the attacker too, tells one letter of a secret as a number.
    Extract {
        /// The tool whose result holds the secret.
        tool: String,
        /// Whose it is.
        origin: Origin,
        /// Which letter.
        at: usize,
    },
    /// The person agrees to the next thing that is asked.
    Agreed(Agreement),
}

/// How far somebody agrees to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// Not at all.
    Refused,
    /// To this call.
    Once,
    /// To the pattern that was offered, for the session.
    Session,
}

/// A sequence of steps with the tricks that it was made from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attack {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Names of tricks.
    pub tricks: Vec<&'static str>,
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(statements) => {
                write!(out, "state:")?;
                statements.iter().try_for_each(|one| {
                    write!(out, " {} ×{} {:?} {:?} {:?}", one.tool, one.count, one.targets, one.dictated, one.caps)
                })
            }
            Self::Call { tool, arguments } => {
                write!(out, "call {tool}(")?;
                arguments.iter().try_for_each(|(name, value)| {
                    let shown: String = value.to_string().chars().take(300).collect();
                    write!(out, "{name}: {shown}, ")
                })?;
                write!(out, ")")
            }
            Self::Reveal { tool, path } => write!(out, "reveal {tool}: {path}"),
            Self::NextRun { answer } => {
                write!(out, "answer {:?}; next run", answer.iter().map(ToString::to_string).collect::<String>())
            }
            Self::Extract { tool, origin, at } => write!(out, "extract letter {at} of {origin:?} from {tool}"),
            Self::Agreed(agreement) => write!(out, "the person agrees to what is asked next: {agreement:?}"),
        }
    }
}
