//! `provenance.json`: what modules were made of and with.
//!
//! It has no time and no machine in it, so that building the same again gives the same file. It is a claim; the signature of the publisher covers it, and
//! `palyra-skills` compares it with the modules.

use palyra_common::Digest;
use serde::{Deserialize, Serialize};

use crate::toolchain::Toolchain;

/// Where the claims of a build are kept.
pub(crate) const FILE: &str = "provenance.json";

/// What a build says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program that built it, with its version.
    pub builder: String,
    /// The compilers, with their versions.
    pub toolchain: String,
    /// SHA-256 over the sorted list of digests and paths of all sources.
    pub source_digest: Digest,
    /// What came out.
    pub modules: Vec<ModuleDigest>,
}

/// A module and what it was when it was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleDigest {
    /// Its path in the archive.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: Digest,
}

impl Provenance {
    pub(crate) fn new(toolchain: &Toolchain, source_digest: Digest, modules: Vec<ModuleDigest>) -> Self {
        let parts: Vec<String> = toolchain
            .versions()
            .iter()
            // Most compilers say their name themselves.
            .map(
                |(name, version)| if version.starts_with(name) { version.clone() } else { format!("{name} {version}") },
            )
            .collect();
        Self {
            builder: format!("palyra skills build {}", env!("CARGO_PKG_VERSION")),
            toolchain: if parts.is_empty() { toolchain.language().name().to_owned() } else { parts.join("; ") },
            source_digest,
            modules,
        }
    }
}
