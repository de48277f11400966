//! Information flow: the rule that decides what a value is worth, wherever a hostile model puts it.
//!
//! A run *reads*: what the user and the operator wrote ([`Material::trust`]) and what tools gave back ([`Reading`]). For each
//! argument of a call the model proposes, [`Material::trace`] says where its value comes from: written by a trusted person, assigned by
//! the user's own store, standing in a record that the user pointed at, found only in untrusted text, or made up. [`assess`] puts these
//! traces together with the labels of what the planner has seen, the run's [`Mandates`] and the tool's classification into
//! [`FlowFacts`], which is all that policies look at. `docs/information-flow.md` explains the rule with examples.
//!
//! Everything here is a pure function of what was read. Matching against *trusted* text is strict (a look-alike never passes for the
//! original); matching against *untrusted* text is loose, because it only explains a question that would be asked anyway.
//!
//! INVARIANT: a value that comes from nowhere is never better than `invented`; nothing an attacker writes can raise the provenance
//! of a value, because only trusted text, assigned fields and attested records can.
//!
//! Leaves to others: permitting and asking (policies), tracking what was read in which order (the engine).

mod admission;
mod assess;
mod checks;
mod clearing;
mod command;
mod coverage;
mod entity;
mod files;
mod leaves;
mod links;
mod mandate;
mod matching;
mod material;
mod numbers;
mod preview;
mod reading;
mod references;
mod schema;
mod schemes;
mod variables;
mod wallets;

pub use admission::{Refused, admit};
pub use assess::{ArgumentFacts, FlowFacts, Proposed, assess};
#[cfg(feature = "testing")]
pub use checks::remove;
pub use checks::{Check, holds};
pub use coverage::Planner;
pub use files::{Rewrite, Written, WrittenFile, differs_from_a_file, is_worse_than_a_file};
pub use leaves::{Leaf, can_be_judged, leaves};
pub use links::{LinkKind, links};
pub use mandate::{Bound, Each, Grantor, Mandate, Mandates, Spent, Standing};
pub use material::{Material, Trace};
pub use preview::{PreviewDetail, preview, tells_something};
pub use reading::{Reading, SourceNaming};
pub use variables::{Reference, Resolved, Variables, resolve, resolve_blind, resolve_text};
