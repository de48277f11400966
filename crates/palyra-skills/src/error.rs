//! Everything a skill, a key, a registry or a folder of instructions can fail with, with the stable code each failure carries.
//!
//! Text out of an archive is a stranger's: it is shortened, escaped and put in backticks where it appears at all.

use std::io;
use std::path::{Path, PathBuf};

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

use crate::{KeyId, PublisherName, SkillId, SkillVersion};

/// How much of a stranger's text is shown.
const SHOWN: usize = 120;

/// A stranger's text as it may be shown: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The error of this crate.
#[derive(Debug, Error)]
pub enum SkillError {
    /// A text that is no name of its kind.
    #[error("`{text}` is not {kind}: {reason}")]
    NameInvalid {
        /// What it was to be, such as `a skill's id`.
        kind: &'static str,
        /// The text given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The bytes are not an archive in the one form that is read.
    #[error("this is not a skill archive: {reason}")]
    ArchiveMalformed {
        /// What is wrong.
        reason: String,
    },
    /// A limit on archives.
    #[error("the skill archive is too large: {what} exceeds the limit of {limit}")]
    ArchiveTooLarge {
        /// What is too large.
        what: String,
        /// The limit, with its unit.
        limit: String,
    },
    /// A path inside an archive that no archive may have.
    #[error("the skill archive has a path that is refused, `{path}`: {reason}")]
    PathRefused {
        /// The path, escaped.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// A field of the manifest.
    #[error("the skill manifest is wrong at `{field}`: {reason}")]
    ManifestInvalid {
        /// Path of the field.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// Manifest and files say different things.
    #[error("manifest and files of the skill differ at `{path}`: {reason}")]
    IntegrityMismatch {
        /// The file.
        path: String,
        /// How.
        reason: &'static str,
    },
    /// No module to go with an entry point.
    #[error("the module of `{entrypoint}` cannot be told: {reason}")]
    ModuleMissing {
        /// The entry point.
        entrypoint: String,
        /// Why.
        reason: String,
    },
    /// There is no signature.
    #[error("the skill `{skill}` is not signed")]
    Unsigned {
        /// The skill.
        skill: SkillId,
    },
    /// The signature does not hold.
    #[error("the signature of the skill does not hold: {reason}")]
    SignatureInvalid {
        /// Why.
        reason: String,
    },
    /// The files are not those that were signed.
    #[error("the file `{path}` is not what was signed: {reason}")]
    SignatureMismatch {
        /// The file.
        path: String,
        /// How it differs.
        reason: &'static str,
    },
    /// A key that cannot be read.
    #[error("this key is unusable: {reason}")]
    KeyInvalid {
        /// Why.
        reason: String,
    },
    /// A private key that others can read.
    #[error("the private key `{}` can be read by other users (mode {mode:o})", path.display())]
    KeyExposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The machine gives no randomness.
    #[error("the system gives no randomness for a key: {0}")]
    Randomness(String),
    /// A statement (rotation, revocation, registry file) that cannot be understood.
    #[error("this is not {kind}: {reason}")]
    StatementInvalid {
        /// What it was to be.
        kind: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A publisher nobody has trusted.
    #[error("the publisher `{publisher}` with key {key} is not trusted")]
    PublisherUnknown {
        /// The publisher.
        publisher: PublisherName,
        /// Its key.
        key: KeyId,
    },
    /// A publisher whose trust was taken back.
    #[error("trust in the publisher `{publisher}` was taken back: {reason}")]
    PublisherDistrusted {
        /// The publisher.
        publisher: PublisherName,
        /// Why.
        reason: String,
    },
    /// Another key than the one remembered.
    #[error(
        "THE KEY OF PUBLISHER `{publisher}` HAS CHANGED: known is {known}, this is {found}; somebody may be posing as the publisher"
    )]
    KeyChanged {
        /// The publisher.
        publisher: PublisherName,
        /// The keys that are remembered.
        known: String,
        /// The key of this archive.
        found: KeyId,
    },
    /// A key that was revoked.
    #[error("the key {key} was revoked: {reason}")]
    KeyRevoked {
        /// The key.
        key: KeyId,
        /// Why.
        reason: String,
    },
    /// A key that was replaced by another.
    #[error("the key {key} of publisher `{publisher}` was replaced; nothing new is accepted under it")]
    KeyRetired {
        /// The publisher.
        publisher: PublisherName,
        /// The old key.
        key: KeyId,
    },
    /// A key that stands for somebody else.
    #[error("the key {key} already stands for the publisher `{owner}`")]
    KeyTaken {
        /// The key.
        key: KeyId,
        /// Whose it is.
        owner: PublisherName,
    },
    /// A rotation that does not count.
    #[error("the change of keys is refused: {reason}")]
    RotationRefused {
        /// Why.
        reason: String,
    },
    /// A list of revocations that does not count.
    #[error("the list of revocations is refused: {reason}")]
    RevocationRefused {
        /// Why.
        reason: String,
    },
    /// An artifact that was revoked.
    #[error("this version of the skill was revoked: {reason}")]
    ArtifactRevoked {
        /// Why.
        reason: String,
    },
    /// No such skill.
    #[error("there is no skill `{skill}`")]
    NotFound {
        /// The id asked for.
        skill: SkillId,
    },
    /// No such publisher.
    #[error("there is no publisher `{publisher}`")]
    PublisherNotFound {
        /// The name asked for.
        publisher: PublisherName,
    },
    /// It is there already.
    #[error("the skill `{skill}` {version} is installed already")]
    AlreadyInstalled {
        /// The skill.
        skill: SkillId,
        /// The installed version.
        version: SkillVersion,
    },
    /// An older version than the installed one.
    #[error("the skill `{skill}` is installed as {installed}; {offered} is older")]
    DowngradeRefused {
        /// The skill.
        skill: SkillId,
        /// What is installed.
        installed: SkillVersion,
        /// What was offered.
        offered: SkillVersion,
    },
    /// The same version with other contents.
    #[error("the skill `{skill}` {version} is installed with other contents; a version never changes")]
    VersionConflict {
        /// The skill.
        skill: SkillId,
        /// The version.
        version: SkillVersion,
    },
    /// An update signed by somebody else.
    #[error("the skill `{skill}` belongs to publisher `{owner}`, not to `{found}`")]
    PublisherChanged {
        /// The skill.
        skill: SkillId,
        /// Whose it is.
        owner: PublisherName,
        /// Who signed this.
        found: PublisherName,
    },
    /// Not for this Palyra.
    #[error("the skill needs {needs}; this is {have}")]
    Incompatible {
        /// What it needs.
        needs: String,
        /// What there is.
        have: String,
    },
    /// A person has to say why.
    #[error("say why: {what} needs a reason")]
    ReasonMissing {
        /// What needs it.
        what: &'static str,
    },
    /// Not in the state the skill is in.
    #[error("the skill `{skill}` is in quarantine: {reason}")]
    Quarantined {
        /// The skill.
        skill: SkillId,
        /// Why.
        reason: String,
    },
    /// Switched off by a person.
    #[error("the skill `{skill}` is disabled: {reason}")]
    Disabled {
        /// The skill.
        skill: SkillId,
        /// Why.
        reason: String,
    },
    /// A setting the manifest does not know.
    #[error("the skill `{skill}` has no setting `{key}`")]
    ConfigUnknown {
        /// The skill.
        skill: SkillId,
        /// The key given.
        key: String,
    },
    /// A grant beyond the manifest.
    #[error("the skill `{skill}` does not ask for {what}; it cannot be granted")]
    GrantRefused {
        /// The skill.
        skill: SkillId,
        /// What was to be granted.
        what: String,
    },
    /// Stored contents are not what was stored.
    #[error("the stored skill was changed on disk: {reason}")]
    Tampered {
        /// What differs.
        reason: String,
    },
    /// Nothing is stored under a digest.
    #[error("no skill archive is stored under {digest}")]
    NotStored {
        /// The digest.
        digest: palyra_common::Digest,
    },
    /// A file cannot be read or written.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File {
        /// `read`, `write` or the like.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A place that is no registry.
    #[error("`{location}` is not a place for a registry: {reason}")]
    RegistryLocation {
        /// The text given.
        location: String,
        /// Why.
        reason: &'static str,
    },
    /// The registry could not be reached.
    #[error("the registry gave no `{path}`: {reason}")]
    RegistryUnreachable {
        /// The file asked for.
        path: String,
        /// Why.
        reason: String,
    },
    /// A registry file whose signatures do not suffice.
    #[error("`{path}` of the registry carries {have} of {need} signatures that count")]
    RegistryUntrusted {
        /// The file.
        path: String,
        /// Signatures that count.
        have: usize,
        /// The threshold.
        need: usize,
    },
    /// A registry file that is older than one seen before.
    #[error("`{path}` of the registry is version {found}, but {seen} was seen before; somebody is replaying old files")]
    RegistryRollback {
        /// The file.
        path: String,
        /// The highest version seen.
        seen: u64,
        /// The version found.
        found: u64,
    },
    /// A registry file past its date.
    #[error("`{path}` of the registry expired at {expired}; it may be held back from newer files")]
    RegistryExpired {
        /// The file.
        path: String,
        /// When.
        expired: String,
    },
    /// A registry file that is not the one that was announced.
    #[error("`{path}` of the registry is not the file that was announced: {reason}")]
    RegistryMismatch {
        /// The file.
        path: String,
        /// How it differs.
        reason: String,
    },
    /// The registry does not list it.
    #[error("the registry does not list `{wanted}`")]
    RegistryArtifactNotFound {
        /// What was asked for.
        wanted: String,
    },
    /// A folder that is not a skill of instructions.
    #[error("`{}` is not a folder of an agent skill: {reason}", path.display())]
    AgentSkillInvalid {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl SkillError {
    pub(crate) fn name(kind: &'static str, text: &str, reason: &str) -> Self {
        Self::NameInvalid { kind, text: shown(text), reason: reason.to_owned() }
    }

    pub(crate) fn archive(reason: impl Into<String>) -> Self {
        Self::ArchiveMalformed { reason: reason.into() }
    }

    pub(crate) fn path(path: &str, reason: &'static str) -> Self {
        Self::PathRefused { path: shown(path), reason }
    }

    pub(crate) fn manifest(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::ManifestInvalid { field: field.into(), reason: reason.into() }
    }

    pub(crate) fn file(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { doing, path: path.to_owned(), source }
    }

    /// Whether this error, met while loading an installed skill, means that what is on disk is not what was installed. The skill then belongs into
    /// quarantine.
    #[must_use]
    pub const fn means_tampering(&self) -> bool {
        matches!(
            self,
            Self::Tampered { .. }
                | Self::ArchiveMalformed { .. }
                | Self::ArchiveTooLarge { .. }
                | Self::PathRefused { .. }
                | Self::ManifestInvalid { .. }
                | Self::IntegrityMismatch { .. }
                | Self::ModuleMissing { .. }
                | Self::Unsigned { .. }
                | Self::SignatureInvalid { .. }
                | Self::SignatureMismatch { .. }
        )
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NameInvalid { .. } => "skill_name_invalid",
            Self::ArchiveMalformed { .. } => "skill_archive_malformed",
            Self::ArchiveTooLarge { .. } => "skill_archive_too_large",
            Self::PathRefused { .. } => "skill_path_refused",
            Self::ManifestInvalid { .. } => "skill_manifest_invalid",
            Self::IntegrityMismatch { .. } => "skill_integrity_mismatch",
            Self::ModuleMissing { .. } => "skill_module_missing",
            Self::Unsigned { .. } => "skill_unsigned",
            Self::SignatureInvalid { .. } => "skill_signature_invalid",
            Self::SignatureMismatch { .. } => "skill_signature_mismatch",
            Self::KeyInvalid { .. } => "skill_key_invalid",
            Self::KeyExposed { .. } => "skill_key_exposed",
            Self::Randomness(_) => "randomness_unavailable",
            Self::StatementInvalid { .. } => "skill_statement_invalid",
            Self::PublisherUnknown { .. } => "skill_publisher_unknown",
            Self::PublisherDistrusted { .. } => "skill_publisher_distrusted",
            Self::KeyChanged { .. } => "skill_key_changed",
            Self::KeyRevoked { .. } => "skill_key_revoked",
            Self::KeyRetired { .. } => "skill_key_retired",
            Self::KeyTaken { .. } => "skill_key_taken",
            Self::RotationRefused { .. } => "skill_rotation_refused",
            Self::RevocationRefused { .. } => "skill_revocation_refused",
            Self::ArtifactRevoked { .. } => "skill_artifact_revoked",
            Self::NotFound { .. } => "skill_not_found",
            Self::PublisherNotFound { .. } => "skill_publisher_not_found",
            Self::AlreadyInstalled { .. } => "skill_already_installed",
            Self::DowngradeRefused { .. } => "skill_downgrade_refused",
            Self::VersionConflict { .. } => "skill_version_conflict",
            Self::PublisherChanged { .. } => "skill_publisher_changed",
            Self::Incompatible { .. } => "skill_incompatible",
            Self::ReasonMissing { .. } => "skill_reason_missing",
            Self::Quarantined { .. } => "skill_quarantined",
            Self::Disabled { .. } => "skill_disabled",
            Self::ConfigUnknown { .. } => "skill_config_unknown",
            Self::GrantRefused { .. } => "skill_grant_refused",
            Self::Tampered { .. } => "skill_tampered",
            Self::NotStored { .. } => "skill_not_stored",
            Self::File { .. } => "skill_file_unusable",
            Self::RegistryLocation { .. } => "registry_location_invalid",
            Self::RegistryUnreachable { .. } => "registry_unreachable",
            Self::RegistryUntrusted { .. } => "registry_untrusted",
            Self::RegistryRollback { .. } => "registry_rollback",
            Self::RegistryExpired { .. } => "registry_expired",
            Self::RegistryMismatch { .. } => "registry_mismatch",
            Self::RegistryArtifactNotFound { .. } => "registry_artifact_not_found",
            Self::AgentSkillInvalid { .. } => "agent_skill_invalid",
        }
    }

    fn category(&self) -> ErrorCategory {
        match self {
            Self::NameInvalid { .. }
            | Self::ArchiveMalformed { .. }
            | Self::ArchiveTooLarge { .. }
            | Self::PathRefused { .. }
            | Self::ManifestInvalid { .. }
            | Self::IntegrityMismatch { .. }
            | Self::ModuleMissing { .. }
            | Self::KeyInvalid { .. }
            | Self::StatementInvalid { .. }
            | Self::ReasonMissing { .. }
            | Self::ConfigUnknown { .. }
            | Self::GrantRefused { .. }
            | Self::RegistryLocation { .. }
            | Self::AgentSkillInvalid { .. } => ErrorCategory::Validation,
            Self::Unsigned { .. }
            | Self::SignatureInvalid { .. }
            | Self::SignatureMismatch { .. }
            | Self::KeyExposed { .. }
            | Self::PublisherUnknown { .. }
            | Self::PublisherDistrusted { .. }
            | Self::KeyChanged { .. }
            | Self::KeyRevoked { .. }
            | Self::KeyRetired { .. }
            | Self::KeyTaken { .. }
            | Self::RotationRefused { .. }
            | Self::RevocationRefused { .. }
            | Self::ArtifactRevoked { .. }
            | Self::PublisherChanged { .. }
            | Self::DowngradeRefused { .. }
            | Self::Quarantined { .. }
            | Self::Tampered { .. }
            | Self::RegistryUntrusted { .. }
            | Self::RegistryRollback { .. }
            | Self::RegistryExpired { .. }
            | Self::RegistryMismatch { .. } => ErrorCategory::Policy,
            Self::NotFound { .. }
            | Self::PublisherNotFound { .. }
            | Self::NotStored { .. }
            | Self::RegistryArtifactNotFound { .. } => ErrorCategory::NotFound,
            Self::AlreadyInstalled { .. }
            | Self::VersionConflict { .. }
            | Self::Incompatible { .. }
            | Self::Disabled { .. } => ErrorCategory::Conflict,
            Self::RegistryUnreachable { .. } | Self::Randomness(_) => ErrorCategory::Availability,
            Self::File { .. } => ErrorCategory::Dependency,
        }
    }

    const fn advice(&self) -> &'static str {
        match self {
            Self::NameInvalid { .. } => "correct the name",
            Self::ArchiveMalformed { .. } | Self::PathRefused { .. } => "make the archive with `palyra skills pack`",
            Self::ArchiveTooLarge { .. } => "leave out what the skill does not need",
            Self::ManifestInvalid { .. } => "correct `skill.toml`; docs/skills.md lists its fields",
            Self::IntegrityMismatch { .. } => "pack the skill again with `palyra skills pack`",
            Self::ModuleMissing { .. } => "name the module of each entry point in `skill.toml`",
            Self::Unsigned { .. } => "sign it with `palyra skills sign`",
            Self::SignatureInvalid { .. } | Self::SignatureMismatch { .. } => {
                "do not install it; get the skill from its publisher again"
            }
            Self::KeyInvalid { .. } => "make a key with `palyra skills keygen`",
            Self::KeyExposed { .. } => "close it with `chmod 600`, and replace the key if others use this machine",
            Self::Randomness(_) => "try again; a system without randomness is not fit to make keys",
            Self::StatementInvalid { .. } => "get the file again from whoever signed it",
            Self::PublisherUnknown { .. } => {
                "compare the key with the publisher's and run `palyra skills trust`, or allow trust on first use"
            }
            Self::PublisherDistrusted { .. } => {
                "if that was a mistake, trust the publisher anew with `palyra skills trust`"
            }
            Self::KeyChanged { .. } => {
                "ask the publisher over another channel; a planned change comes with a rotation signed by the old key"
            }
            Self::KeyRevoked { .. } => "get a version signed with a current key",
            Self::KeyRetired { .. } => "get a version signed with the publisher's new key",
            Self::KeyTaken { .. } => "ask the publisher for the right key",
            Self::RotationRefused { .. } => "have the publisher sign the rotation with the key you trust",
            Self::RevocationRefused { .. } => "get the newest list from the publisher",
            Self::ArtifactRevoked { .. } => "install another version",
            Self::NotFound { .. } => "see `palyra skills list`",
            Self::PublisherNotFound { .. } => "see `palyra skills publishers`",
            Self::AlreadyInstalled { .. } => "use `palyra skills update` for a newer version",
            Self::DowngradeRefused { .. } => "remove the skill first if you really want the older version",
            Self::VersionConflict { .. } => "ask the publisher for a new version number",
            Self::PublisherChanged { .. } => "remove the skill first if it really changed hands",
            Self::Incompatible { .. } => "update Palyra, or install a version made for this one",
            Self::ReasonMissing { .. } => "add `--reason`",
            Self::Quarantined { .. } => "read `palyra skills info`, then enable it with `--reason` or remove it",
            Self::Disabled { .. } => "enable it with `palyra skills enable`",
            Self::ConfigUnknown { .. } => "see the settings in `palyra skills info`",
            Self::GrantRefused { .. } => "see what the skill asks for in `palyra skills info`",
            Self::Tampered { .. } => "remove the skill and install it again from its publisher",
            Self::NotStored { .. } => "install the skill again",
            Self::File { .. } => "check that the place exists and belongs to you",
            Self::RegistryLocation { .. } => "use a directory, `file:///…` or `https://…`",
            Self::RegistryUnreachable { .. } => "check the address and the network, then try again",
            Self::RegistryUntrusted { .. } => "do not use this registry until its owner has explained it",
            Self::RegistryRollback { .. } => "try another mirror; report it to the owner of the registry",
            Self::RegistryExpired { .. } => "check this machine's clock; then ask the owner to sign the registry anew",
            Self::RegistryMismatch { .. } => "try again; if it stays, report it to the owner of the registry",
            Self::RegistryArtifactNotFound { .. } => "see `palyra skills registry list DIRECTORY`",
            Self::AgentSkillInvalid { .. } => "correct the folder; docs/skills.md says what is read",
        }
    }
}

impl ToStableError for SkillError {
    fn to_stable(&self) -> StableErrorEnvelope {
        StableErrorEnvelope::new(self.code(), self.category(), self.to_string()).hint(self.advice())
    }
}
