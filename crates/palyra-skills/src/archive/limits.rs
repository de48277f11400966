//! How large an archive may be.

use serde::{Deserialize, Serialize};

use crate::SkillError;

/// Limits on archives. The defaults are those of the format; an operator may raise them for skills whose modules hold a whole interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveLimits {
    /// Packed bytes of the whole archive.
    pub archive_bytes: u64,
    /// Unpacked bytes of one file.
    pub entry_bytes: u64,
    /// Unpacked bytes of all files: an archive of many files that each keep their limit is a bomb as well.
    pub unpacked_bytes: u64,
    /// Number of files.
    pub entries: u64,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    /// How many times larger than its packed form a file may be.
    pub ratio: u64,
    /// Files up to this size may have any ratio.
    pub ratio_from_bytes: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self {
            archive_bytes: 64 << 20,
            entry_bytes: 32 << 20,
            unpacked_bytes: 64 << 20,
            entries: 256,
            manifest_bytes: 256 << 10,
            ratio: 200,
            ratio_from_bytes: 1 << 20,
        }
    }
}

impl ArchiveLimits {
    pub(crate) fn check(&self, what: &str, value: u64, limit: u64) -> Result<(), SkillError> {
        if value <= limit {
            return Ok(());
        }
        let limit = if limit >= 1 << 20 && limit.is_multiple_of(1 << 20) {
            format!("{} MiB", limit >> 20)
        } else {
            format!("{limit}")
        };
        Err(SkillError::ArchiveTooLarge { what: what.to_owned(), limit })
    }
}
