//! Tools of skills: WebAssembly plugins with what the daemon lets them do.
//!
//! The runtime confines a plugin and hands over what it asks for; this folder carries that out: requests through the egress rules, secrets on the way out,
//! storage of the skill's own, messages to people. Which skills there are and whether they may run is the daemon's concern.

mod channels;
mod grants;
mod host;
mod instructions;
mod storage;
mod tool;

pub use channels::{ChannelFailure, NoChannels, SkillChannels};
pub use grants::{SECRET_SETTING, grant_set, skill_settings};
pub use host::{SkillHost, SkillServices, SkillSettings};
pub use instructions::SkillInstructions;
pub use storage::{SkillStorage, Space, StorageError};
pub use tool::{BoundPlugin, SkillRuntime, SkillTool, ToolSchemas, output_invalid};
