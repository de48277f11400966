//! `provenance.json`: what built the modules, and from what.
//!
//! It is a claim of the publisher, signed with the rest. What can be checked is that it speaks of the modules that are really there.

use palyra_common::Digest;
use serde::{Deserialize, Serialize};

use crate::SkillError;
use crate::error::shown;

/// Largest file.
const MAX_PROVENANCE: usize = 256 << 10;

/// A module as it was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltModule {
    /// Its path in the archive.
    pub path: String,
    /// Its digest.
    pub sha256: Digest,
}

/// Where modules came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// What ran the build, such as `palyra skills build 0.1.0`.
    pub builder: String,
    /// The compiler and its version, such as `rustc 1.95.0`.
    pub toolchain: String,
    /// Digest of the sources that were built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_digest: Option<Digest>,
    /// Where the sources are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What came out.
    pub modules: Vec<BuiltModule>,
}

impl Provenance {
    /// Reads the file.
    pub fn parse(bytes: &[u8]) -> Result<Self, SkillError> {
        let invalid = |reason: String| SkillError::StatementInvalid { kind: "a provenance record", reason };
        if bytes.len() > MAX_PROVENANCE {
            return Err(invalid("it is larger than 256 KiB".to_owned()));
        }
        serde_json::from_slice(bytes).map_err(|error| invalid(shown(&error.to_string())))
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, SkillError> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| SkillError::StatementInvalid { kind: "a provenance record", reason: error.to_string() })?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}
