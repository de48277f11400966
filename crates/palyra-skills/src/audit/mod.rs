//! The audit of a skill: what can be said about an archive without running it.
//!
//! A pure function of the archive and the policy. It never decides what happens to a skill; the index does, by the verdict. Findings have stable codes
//! ([`AuditCode`]) and a sentence each.

mod declared;
mod described;
mod documents;
mod module;
mod modules;
mod report;
mod strings;

use serde::{Deserialize, Serialize};

use crate::{SkillArchive, SkillError, Verified, verify};
use report::Findings;

pub use described::{DescribedTool, audit_described_tools};
pub use report::{AuditCode, AuditFinding, AuditReport, AuditSeverity, AuditVerdict};

/// What an operator demands of skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditPolicy {
    /// Largest module.
    pub max_module_bytes: u64,
    /// Most imports of a module.
    pub max_imports: usize,
    /// Most exports of a module.
    pub max_exports: usize,
    /// How much a missing list of parts weighs.
    pub missing_sbom: AuditSeverity,
    /// How much a missing record of provenance weighs.
    pub missing_provenance: AuditSeverity,
}

impl Default for AuditPolicy {
    fn default() -> Self {
        Self {
            max_module_bytes: 32 << 20,
            max_imports: 64,
            // A core module from a C compiler exports helpers besides `run`.
            max_exports: 256,
            missing_sbom: AuditSeverity::Warn,
            missing_provenance: AuditSeverity::Warn,
        }
    }
}

/// Audits an archive.
#[must_use]
pub fn audit_skill_artifact_security(archive: &SkillArchive, policy: &AuditPolicy) -> AuditReport {
    let mut found = Findings::default();
    match verify(archive) {
        Ok(_) => {}
        Err(SkillError::Unsigned { .. }) => {
            found.fail(AuditCode::SignatureMissing, None, "the skill is not signed");
        }
        Err(error) => found.fail(AuditCode::SignatureInvalid, None, error.to_string()),
    }
    declared::check(archive, &mut found);
    let used = modules::check(archive, policy, &mut found);
    documents::check(archive, policy, &mut found);
    strings::check(archive, &used, &mut found);
    found.into_report()
}

/// An archive whose signature holds, with what the audit says of it. The index takes nothing else, so nothing is installed unexamined.
#[derive(Debug, Clone)]
pub struct Examined {
    pub(crate) verified: Verified,
    pub(crate) report: AuditReport,
    pub(crate) manifest: crate::SkillManifest,
    pub(crate) archive: palyra_common::Digest,
    pub(crate) content: palyra_common::Digest,
}

impl Examined {
    /// Who signed it.
    #[must_use]
    pub const fn verified(&self) -> &Verified {
        &self.verified
    }

    /// What the audit says.
    #[must_use]
    pub const fn report(&self) -> &AuditReport {
        &self.report
    }

    /// The manifest.
    #[must_use]
    pub const fn manifest(&self) -> &crate::SkillManifest {
        &self.manifest
    }

    /// The digest of the archive's bytes, under which the store keeps it.
    #[must_use]
    pub const fn archive(&self) -> palyra_common::Digest {
        self.archive
    }
}

/// Verifies the signature and audits the archive.
pub fn examine(archive: &SkillArchive, policy: &AuditPolicy) -> Result<Examined, SkillError> {
    Ok(Examined {
        verified: verify(archive)?,
        report: audit_skill_artifact_security(archive, policy),
        manifest: archive.manifest().clone(),
        archive: archive.digest(),
        content: archive.content(),
    })
}

/// Reads and audits an archive in one pure step: what `palyra skills audit` shows, and what a fuzzer feeds.
pub fn inspect(bytes: &[u8], policy: &AuditPolicy) -> Result<AuditReport, SkillError> {
    Ok(audit_skill_artifact_security(&SkillArchive::read(bytes)?, policy))
}
