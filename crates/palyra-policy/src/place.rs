//! Where something stands in a file: what every complaint about a policy starts with.

use std::fmt;

use miette::Diagnostic;
use serde::{Deserialize, Serialize};

/// A file and a line in it, counted from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Name of the file, as the operator knows it.
    pub file: String,
    /// Line, counted from one.
    pub line: usize,
}

impl Place {
    /// The line that holds a byte of a text.
    #[must_use]
    pub fn at_offset(file: &str, text: &str, offset: usize) -> Self {
        let before = text.as_bytes().iter().take(offset);
        Self { file: file.to_owned(), line: before.filter(|byte| **byte == b'\n').count() + 1 }
    }

    /// Where a diagnostic of the policy language points, or the first line if it does not say.
    pub(crate) fn of(file: &str, text: &str, diagnostic: &dyn Diagnostic) -> Self {
        let offset = diagnostic.labels().and_then(|mut labels| labels.next()).map_or(0, |label| label.offset());
        Self::at_offset(file, text, offset)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
