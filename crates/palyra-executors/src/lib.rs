//! The tools that reach beyond the workspace.
//!
//! `palyra.process.*` start programs in sandboxes ([`Processes`]), `palyra.http.fetch` reads from the network ([`HttpFetch`]), tools of skills are WebAssembly plugins ([`SkillTool`]). Mechanisms do
//! not know each other; here the sandbox, the egress proxy and the workspace meet behind the tool trait. Whether a call may happen was decided before
//! it gets here: this crate turns what was permitted into the narrowest grant and carries it out.

mod fetch;
mod idle;
mod process;
mod skills;
mod tracking;

use palyra_tools::ToolDeclaration;

pub use fetch::{FetchOptions, HttpFetch};
pub use idle::IdleMonitor;
pub use process::{ProcessOptions, Processes, process_tools};
pub use skills::{
    BoundPlugin, ChannelFailure, NoChannels, SECRET_SETTING, SkillChannels, SkillHost, SkillInstructions, SkillRuntime,
    SkillServices, SkillSettings, SkillStorage, SkillTool, Space, StorageError, ToolSchemas, grant_set, output_invalid,
    skill_settings,
};
pub use tracking::{changes_since, checkpoint};

/// What all tools of this crate say about themselves, for the reference page.
#[must_use]
pub fn declarations() -> Vec<ToolDeclaration> {
    let mut all = process::declarations();
    all.push(HttpFetch::declared());
    all
}
