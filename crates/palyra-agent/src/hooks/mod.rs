//! The vocabulary of hooks: which plugin is bound to what, what it is told, what it may answer, and what its answer comes to.
//!
//! Everything here is data and pure rules. The machine asks for hooks (`machine/hooks.rs`), the engine runs them (`engine/hooks`) through the one port
//! [`HookRunner`]; what is behind the port, WebAssembly for instance, is not known here.

mod binding;
mod rules;
mod runner;

pub use binding::{HookBindingRecord, HookFailureMode, HookSwitch};
pub use rules::allows;
pub(crate) use rules::{Ruling, checked, event_of, judge, plain};
pub use runner::{HookAnswer, HookFailure, HookOccurrence, HookResult, HookRunner, HookSaid, HooksAnswered, NoHooks};

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
