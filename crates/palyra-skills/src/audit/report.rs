//! What an audit says.

use palyra_common::{Digest, runtime_contract_enum};
use serde::{Deserialize, Serialize};

/// Most findings of one report; an artifact with more needs no further proof.
const MAX_FINDINGS: usize = 200;

runtime_contract_enum! {
    /// How much a finding weighs. Ordered from least to most.
    pub enum AuditSeverity("audit_severity") {
        /// Worth knowing.
        Note = "note",
        /// Worth a look before enabling.
        Warn = "warn",
        /// The skill is held back until a person has looked.
        Fail = "fail",
    }
}

runtime_contract_enum! {
    /// What the findings add up to. Ordered from best to worst.
    pub enum AuditVerdict("audit_verdict") {
        /// Nothing stands against it.
        Pass = "pass",
        /// Worth a look.
        Warn = "warn",
        /// Held back until a person has looked.
        Fail = "fail",
    }
}

runtime_contract_enum! {
    /// What was found.
    pub enum AuditCode("audit_code") {
        /// The archive is not signed.
        SignatureMissing = "signature_missing",
        /// The signature does not hold.
        SignatureInvalid = "signature_invalid",
        /// The manifest does not list the files.
        IntegrityMissing = "integrity_missing",
        /// A module is not valid WebAssembly.
        ModuleMalformed = "module_malformed",
        /// A module is larger than allowed.
        ModuleTooLarge = "module_too_large",
        /// A module that no entry point uses.
        ModuleUnused = "module_unused",
        /// A module that asks for more memory at once than its quota.
        MemoryOverQuota = "memory_over_quota",
        /// An import that Palyra does not offer.
        ImportForeign = "import_foreign",
        /// An import of a power that the manifest does not declare.
        ImportUndeclared = "import_undeclared",
        /// More imports than any honest module needs.
        ImportsTooMany = "imports_too_many",
        /// An export that an entry point needs is not there.
        ExportMissing = "export_missing",
        /// An export that nothing uses.
        ExportUnknown = "export_unknown",
        /// More exports than any honest module needs.
        ExportsTooMany = "exports_too_many",
        /// A capability that no module uses.
        CapabilityUnused = "capability_unused",
        /// A rule for requests that names every host.
        CapabilityWildcard = "capability_wildcard",
        /// A rule for requests in the clear, or to this machine or its network.
        CapabilityRisky = "capability_risky",
        /// A secret that the skill wants to read itself.
        SecretRevealed = "secret_revealed",
        /// A secret for hosts that requests may not go to.
        SecretUnreachable = "secret_unreachable",
        /// A quota above the defaults.
        QuotaRaised = "quota_raised",
        /// A tool says that its results may be trusted.
        LabelsLenient = "labels_lenient",
        /// A tool's schema lets anything through.
        SchemaLoose = "schema_loose",
        /// There is no list of parts.
        SbomMissing = "sbom_missing",
        /// The list of parts cannot be read.
        SbomMalformed = "sbom_malformed",
        /// The list of parts speaks of something else.
        SbomMismatch = "sbom_mismatch",
        /// Nobody says where the modules came from.
        ProvenanceMissing = "provenance_missing",
        /// The record of provenance cannot be read.
        ProvenanceMalformed = "provenance_malformed",
        /// The record of provenance speaks of other modules.
        ProvenanceMismatch = "provenance_mismatch",
        /// An archive inside the archive.
        ArchiveNested = "archive_nested",
        /// A program among the assets.
        ExecutableAsset = "executable_asset",
        /// An address of a host that the manifest does not declare.
        HostUndeclared = "host_undeclared",
        /// Something that looks like a credential.
        SecretEmbedded = "secret_embedded",
        /// Text for the model that tries to steer it.
        InstructionsSuspicious = "instructions_suspicious",
        /// A module describes other tools than the manifest.
        DescriptionMismatch = "description_mismatch",
        /// More was found than is listed, or not everything could be looked at.
        Incomplete = "incomplete",
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AuditFinding {
    /// Which.
    pub code: AuditCode,
    /// How much it weighs.
    pub severity: AuditSeverity,
    /// One sentence for people.
    pub message: String,
    /// The file it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// What the findings add up to.
    pub verdict: AuditVerdict,
    /// What was found, the weightiest first.
    pub findings: Vec<AuditFinding>,
}

impl AuditReport {
    /// A report of these findings.
    #[must_use]
    pub fn of(mut findings: Vec<AuditFinding>) -> Self {
        findings.sort_by(|left, right| right.severity.cmp(&left.severity).then_with(|| left.cmp(right)));
        findings.dedup();
        let verdict = match findings.first().map(|finding| finding.severity) {
            None | Some(AuditSeverity::Note) => AuditVerdict::Pass,
            Some(AuditSeverity::Warn) => AuditVerdict::Warn,
            Some(AuditSeverity::Fail) => AuditVerdict::Fail,
        };
        if findings.len() > MAX_FINDINGS {
            findings.truncate(MAX_FINDINGS - 1);
            findings.push(AuditFinding {
                code: AuditCode::Incomplete,
                severity: AuditSeverity::Note,
                message: "there are more findings than can be listed".to_owned(),
                path: None,
            });
        }
        Self { verdict, findings }
    }

    /// What fails, one digest for each finding: what a person has accepted once need not be asked again, anything else must.
    #[must_use]
    pub fn failures(&self) -> Vec<Digest> {
        self.findings
            .iter()
            .filter(|finding| finding.severity == AuditSeverity::Fail)
            .map(|finding| {
                let path = finding.path.as_deref().unwrap_or_default();
                Digest::of_parts(&[finding.code.as_str().as_bytes(), path.as_bytes(), finding.message.as_bytes()])
            })
            .collect()
    }

    /// The weightiest finding as a sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        match self.findings.first() {
            None => "no findings".to_owned(),
            Some(finding) if self.findings.len() == 1 => finding.message.clone(),
            Some(finding) => format!("{} (and {} more findings)", finding.message, self.findings.len() - 1),
        }
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub(crate) struct Findings(Vec<AuditFinding>);

impl Findings {
    pub(crate) fn push(
        &mut self,
        severity: AuditSeverity,
        code: AuditCode,
        path: Option<&str>,
        message: impl Into<String>,
    ) {
        // Collecting is bounded too; the report says so.
        if self.0.len() <= MAX_FINDINGS * 2 {
            self.0.push(AuditFinding { code, severity, message: message.into(), path: path.map(str::to_owned) });
        }
    }

    pub(crate) fn fail(&mut self, code: AuditCode, path: Option<&str>, message: impl Into<String>) {
        self.push(AuditSeverity::Fail, code, path, message);
    }

    pub(crate) fn warn(&mut self, code: AuditCode, path: Option<&str>, message: impl Into<String>) {
        self.push(AuditSeverity::Warn, code, path, message);
    }

    pub(crate) fn note(&mut self, code: AuditCode, path: Option<&str>, message: impl Into<String>) {
        self.push(AuditSeverity::Note, code, path, message);
    }

    pub(crate) fn into_report(self) -> AuditReport {
        AuditReport::of(self.0)
    }
}
