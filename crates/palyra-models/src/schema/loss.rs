//! What a schema lost on its way to a wire.

use std::fmt;

use serde::Serialize;

/// A keyword that was left out, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Dropped {
    pub(super) pointer: String,
    pub(super) keyword: &'static str,
}

impl Dropped {
    pub(super) fn new(pointer: &str, keyword: &'static str) -> Self {
        Self { pointer: pointer.to_owned(), keyword }
    }
}

/// Part of a tool's input schema that a wire cannot carry. The model is not told about it; calls are still checked against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchemaLoss {
    /// The tool.
    pub tool: String,
    /// JSON pointer into its input schema, with references followed; empty for the root.
    pub pointer: String,
    /// The keyword that was left out or loosened there.
    pub keyword: String,
}

impl SchemaLoss {
    pub(super) fn new(tool: &str, dropped: Dropped) -> Self {
        Self { tool: tool.to_owned(), pointer: dropped.pointer, keyword: dropped.keyword.to_owned() }
    }
}

impl fmt::Display for SchemaLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}: `{}`", self.tool, self.pointer, self.keyword)
    }
}
