//! The beginning of a text file with its label: what the engine puts into a context without a tool call.

use std::io::Read as _;

use palyra_common::Label;

use crate::cancel::Cancel;
use crate::{ToolError, Workspace};

/// The beginning of a text file.
#[derive(Debug, Clone, PartialEq)]
pub struct TextPrefix {
    /// The text, cut at a character boundary.
    pub text: String,
    /// Whether this is the whole file.
    pub whole: bool,
    /// How far it may be trusted and shown.
    pub label: Label,
}

impl Workspace {
    /// Reads at most `limit` bytes of a text file; blocks.
    ///
    /// # Errors
    /// When there is no such file in the workspace or it is not text.
    pub fn read_text_prefix(&self, path: &str, limit: usize) -> Result<TextPrefix, ToolError> {
        let path = self.path(path)?;
        let mut file = self.open_file(&path)?;
        let label = self.examine(&path, &mut file, &Cancel::never())?.label;
        let mut bytes = Vec::new();
        (&mut file.file)
            .take(limit as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| ToolError::io(&path.to_string(), error))?;
        let whole = file.size() <= bytes.len() as u64;
        if bytes.contains(&0) {
            return Err(ToolError::BinaryFile { path: path.to_string() });
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // A character that the limit cuts in two is left out; anything else is not text.
            Err(error) if !whole && error.utf8_error().error_len().is_none() => {
                let end = error.utf8_error().valid_up_to();
                String::from_utf8_lossy(error.as_bytes().get(..end).unwrap_or_default()).into_owned()
            }
            Err(_) => return Err(ToolError::BinaryFile { path: path.to_string() }),
        };
        Ok(TextPrefix { text, whole, label })
    }
}
