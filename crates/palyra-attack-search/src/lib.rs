//! A search for ways around the rule of information flow, and two judges that share no code with it.
//!
//! - [`world`]: worlds with servers, records, files, requests and what these really authorise;
//! - [`attack`]: hostile planners, as programs over a grammar of tricks, and the search that improves them;
//! - [`adapter`]: the product behind one narrow door, with its real machine, rule and policies;
//! - [`play`](mod@play): an attack against the product;
//! - [`oracle`]: what happened against what was authorised, and canaries in every byte that left;
//! - [`reference`]: the semantics of ADR 0022 written once more, and [`comparison`], which counts where the product says something else;
//! - [`mutants`]: the product with a check taken away, which the search has to notice.
//!
//! A program for tests: it ends at a mistake of its own.

#![expect(clippy::indexing_slicing, reason = "indices come from the same seeded generator as what they point into")]

pub mod adapter;
pub mod attack;
pub mod campaign;
pub mod comparison;
pub mod mutants;
pub mod oracle;
pub mod play;
pub mod reference;
pub mod world;

mod random;

pub use random::Random;
