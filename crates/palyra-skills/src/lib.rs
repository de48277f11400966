//! Skills: what people install to extend an agent.
//!
//! An archive is read strictly ([`SkillArchive`]), its signature says who it is from ([`verify`]), an audit says what to think of it
//! ([`audit_skill_artifact_security`]), and the index decides, from its own events alone, what may be installed and what may run ([`SkillIndex`]). Registries
//! bring archives with freshness and rollback protection; folders with a `SKILL.md` bring instructions.
//!
//! Everything that decides is a pure function. The crate runs nothing, opens no connection (registries are fetched through a port) and journals nothing: the daemon
//! journals the [`SkillEvent`]s that plans return, and applies them after that.

mod agent_skill;
mod archive;
mod audit;
mod envelope;
mod error;
mod files;
mod index;
mod key;
mod manifest;
mod names;
mod provenance;
mod registry;
mod sbom;
mod signature;
mod statements;
mod store;

pub use agent_skill::{AgentSkill, AgentSkillMetadata, Resource, ResourceKind, discover_agent_skills};
pub use archive::{ArchiveInput, ArchiveLimits, SkillArchive, pack, pack_with};
pub use audit::{
    AuditCode, AuditFinding, AuditPolicy, AuditReport, AuditSeverity, AuditVerdict, DescribedTool, Examined,
    audit_described_tools, audit_skill_artifact_security, examine, inspect,
};
pub use envelope::Envelope;
pub use error::SkillError;
pub use index::{
    AuditCause, InitialStatus, InstallRequest, InstalledArtifact, KeyRecord, KeyState, Origin, PublisherRecord,
    QuarantineCause, RevocationSource, SkillEvent, SkillIndex, SkillRecord, Tofu, UpdateRequest,
};
pub use key::{KeyId, PublicKey, PublisherKey};
pub use manifest::{
    Capabilities, Compat, ConfigEntry, HookEntrypoint, HostPattern, HttpRule, HttpScheme, IntegrityFile,
    MANIFEST_VERSION, Quotas, SchemaValidator, SecretRequest, SecretUse, SkillManifest, StorageRequest, ToolEntrypoint,
    ToolLabels, ToolRisk,
};
pub use names::{PublisherName, RegistryName, SkillId, SkillVersion};
pub use provenance::{BuiltModule, Provenance};
pub use registry::{
    DirectoryRegistry, Fetched, FollowedRegistry, RegistryArtifact, RegistryBook, RegistryFetch, RegistryIndex,
    RegistryLifetimes, RegistryLocation, RegistryRole, RegistryRoles, RegistryState, RegistryWriter, RootPin, download,
};
pub use signature::{SignatureFile, SignedFile, Verified, sign, sign_with, verify};
pub use statements::{KeyRotation, PublisherStatement, RevocationList, RevokedArtifact, RevokedKey};
pub use store::{LoadedSkill, SkillStore};
