//! How things look as text: times, tables, runs, tool calls, approvals. Pure; printing is left to the console.

pub(crate) mod approvals;
pub(crate) mod calls;
pub(crate) mod compaction;
pub(crate) mod evidence;
pub(crate) mod intents;
pub(crate) mod model_call;
pub(crate) mod next_page;
pub(crate) mod plan;
pub(crate) mod question;
pub(crate) mod runs;
pub(crate) mod table;
pub(crate) mod tape;
pub(crate) mod text;
pub(crate) mod unavailable_tools;
pub(crate) mod verdict;
pub(crate) mod withheld_instructions;
