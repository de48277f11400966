//! The bytes of a small file with its label: what the engine puts into a context without a tool call where it is no text.

use std::io::Read as _;

use palyra_common::Label;

use crate::cancel::Cancel;
use crate::{ToolError, Workspace};

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileBytes {
    /// At most as many bytes as were asked for.
    pub bytes: Vec<u8>,
    /// Whether this is the whole file.
    pub whole: bool,
    /// How far it may be trusted and shown.
    pub label: Label,
}

impl Workspace {
    /// Reads at most `limit` bytes of a file; blocks.
    ///
    /// # Errors
    /// When there is no such file in the workspace.
    pub fn read_bytes(&self, path: &str, limit: usize) -> Result<FileBytes, ToolError> {
        let path = self.path(path)?;
        let mut file = self.open_file(&path)?;
        let label = self.examine(&path, &mut file, &Cancel::never())?.label;
        let mut bytes = Vec::new();
        (&mut file.file)
            .take(limit as u64)
            .read_to_end(&mut bytes)
            .map_err(|error| ToolError::io(&path.to_string(), error))?;
        let whole = file.size() <= bytes.len() as u64;
        Ok(FileBytes { bytes, whole, label })
    }
}
