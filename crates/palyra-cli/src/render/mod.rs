//! How things look as text: times, tables, runs, tool calls. Pure; printing is left to the console.

pub(crate) mod calls;
pub(crate) mod runs;
pub(crate) mod table;
pub(crate) mod tape;
pub(crate) mod text;
