//! Shows that a change of policies only narrows, or finds a request that it widens.
//!
//! [`prove`] compares a proposed set with the set it would replace, for every kind of request that the schema allows, symbolically: all
//! requests at once, not examples. Two things must hold: what the proposed set permits or asks about, the base permits or asks about
//! (`may`); and what the proposed set permits unasked, the base permits unasked. Cedar's symbolic compiler turns both into formulas, and
//! an SMT solver outside this program decides them. If one does not hold, the solver's values become a [`CounterExample`] in the form
//! of an ordinary request, which both sets then decide in the ordinary way.
//!
//! - `change.rs`: what needs no solver because the change itself says it.
//! - `formula.rs`: a whole set, with its guards and what people agreed to, as one Cedar policy for `may` and one for unasked.
//! - `facts.rs`: what every request has in common (ranks belong to their words), so that no impossible request is a counter-example.
//! - `solver.rs`: finding a solver and running it within a time limit.
//! - `running.rs`, `sets.rs`, `strings.rs`, `sexpr.rs`: speaking with cvc5, and with z3, which has words of its own.
//! - `example.rs`: the solver's values as a request.
//! - `prove.rs`: the comparison.
//!
//! What is not covered: that arguments and sinks of one request agree with each other. A proof therefore holds for more requests than
//! there are; a counter-example that the ordinary decision does not confirm is marked as such.
//!
//! The symbolic compiler is heavy, so it stands in this crate and only the command line depends on it.

mod change;
mod error;
mod example;
mod facts;
mod formula;
mod prove;
mod running;
mod sets;
mod sexpr;
mod solver;
mod strings;

pub use error::ProveError;
pub use example::{CounterExample, Widening};
pub use prove::{Proof, prove};
pub use solver::{DEFAULT_LIMIT, SolverProgram};
