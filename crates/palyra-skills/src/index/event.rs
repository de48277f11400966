//! What happens to skills and publishers, as the daemon journals it.
//!
//! An event is complete in itself: the index is the fold of its events and needs nothing else, neither an archive nor a clock.

use palyra_common::{Digest, SkillStatus};
use serde::{Deserialize, Serialize};

use crate::{AuditReport, Capabilities, KeyId, PublicKey, PublisherName, RegistryName, SkillId, SkillVersion};

/// Where an archive came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// A file that somebody gave.
    File {
        /// Its name.
        name: String,
    },
    /// A registry.
    Registry {
        /// Which.
        name: RegistryName,
    },
}

/// Who takes something back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RevocationSource {
    /// A person here.
    Operator {
        /// Who.
        by: String,
    },
    /// The publisher's own list.
    Publisher {
        /// Who.
        name: PublisherName,
        /// The list's number.
        number: u64,
    },
    /// The registry that an artifact came from.
    Registry {
        /// Which.
        name: RegistryName,
    },
}

/// What put a skill into quarantine, as far as it decides how the skill gets out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum QuarantineCause {
    /// Something that only a person can judge: a failed audit, a changed file, a key or a publisher that is not trusted any more, a person's own doubt.
    #[default]
    Suspicion,
    /// The installed version was revoked, and nothing else is held against the skill. A version that is not revoked ends it.
    VersionRevoked {
        /// The status before, which the skill then has again.
        before: SkillStatus,
    },
}

impl QuarantineCause {
    fn is_suspicion(&self) -> bool {
        *self == Self::Suspicion
    }
}

/// An artifact as it is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledArtifact {
    /// A few words for people.
    pub name: String,
    /// The version.
    pub version: SkillVersion,
    /// Who signed it.
    pub publisher: PublisherName,
    /// With which key.
    pub key_id: KeyId,
    /// The digest of the archive in the store.
    pub archive: Digest,
    /// The digest of its contents.
    pub content: Digest,
    /// Where it came from.
    pub origin: Origin,
    /// What the audit said.
    pub audit: AuditReport,
    /// Ids of its tools.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Ids of its hooks.
    #[serde(default)]
    pub hooks: Vec<String>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum SkillEvent {
    /// A skill was installed.
    Installed {
        /// Which.
        skill_id: SkillId,
        /// What.
        artifact: InstalledArtifact,
        /// In which state it begins.
        status: SkillStatus,
        /// Why in that state.
        reason: String,
        /// What the operator grants of what it asks for.
        grants: Capabilities,
        /// Who did it.
        by: String,
    },
    /// A skill was replaced by a newer version of itself. Grants and settings stay as they were.
    Updated {
        /// Which.
        skill_id: SkillId,
        /// What it is now.
        artifact: InstalledArtifact,
        /// The state it has now.
        status: SkillStatus,
        /// Why in that state.
        reason: String,
        /// Who did it.
        by: String,
    },
    /// A skill was removed.
    Removed {
        /// Which.
        skill_id: SkillId,
        /// Which version.
        version: SkillVersion,
        /// Who did it.
        by: String,
    },
    /// A skill may run now, or may not any more.
    StatusChanged {
        /// Which.
        skill_id: SkillId,
        /// Which version.
        version: SkillVersion,
        /// The new state.
        status: SkillStatus,
        /// Why.
        reason: String,
        /// Who did it: a person, or `palyra` for a check.
        by: String,
        /// What the audit held against it and the person accepts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted: Vec<Digest>,
        /// Why it is in quarantine, where it is.
        #[serde(default, skip_serializing_if = "QuarantineCause::is_suspicion")]
        cause: QuarantineCause,
    },
    /// A skill was audited again.
    AuditRecorded {
        /// Which.
        skill_id: SkillId,
        /// Which version.
        version: SkillVersion,
        /// What the audit said.
        report: AuditReport,
    },
    /// A skill was loaded, and its manifest names other entry points than are known of it: an older daemon installed it and did not note them.
    Described {
        /// Which.
        skill_id: SkillId,
        /// Ids of its tools.
        tools: Vec<String>,
        /// Ids of its hooks.
        hooks: Vec<String>,
    },
    /// The operator trusts a key.
    PublisherTrusted {
        /// Whose.
        publisher: PublisherName,
        /// Which.
        key: PublicKey,
        /// Who did it.
        by: String,
    },
    /// A key was new and is remembered from now on.
    PublisherPinned {
        /// Whose.
        publisher: PublisherName,
        /// Which.
        key: PublicKey,
        /// Who allowed it.
        by: String,
    },
    /// The operator takes trust in a publisher back.
    PublisherUntrusted {
        /// Whose.
        publisher: PublisherName,
        /// Why.
        reason: String,
        /// Who did it.
        by: String,
    },
    /// A publisher changed its key.
    KeyRotated {
        /// Whose.
        publisher: PublisherName,
        /// The old key.
        from: KeyId,
        /// The new one.
        to: PublicKey,
    },
    /// A key is never to be trusted again.
    KeyRevoked {
        /// Which.
        key_id: KeyId,
        /// For whom: one publisher, or none for everybody.
        publisher: Option<PublisherName>,
        /// Why.
        reason: String,
        /// Who said so.
        source: RevocationSource,
    },
    /// An artifact is never to be used again.
    ArtifactRevoked {
        /// Whose.
        publisher: PublisherName,
        /// The digest of its contents.
        content: Digest,
        /// Why.
        reason: String,
        /// Who said so.
        source: RevocationSource,
    },
    /// A publisher's list of revocations was taken in.
    RevocationsSeen {
        /// Whose.
        publisher: PublisherName,
        /// Which.
        number: u64,
    },
    /// A setting of a skill was changed.
    ConfigSet {
        /// Which skill.
        skill_id: SkillId,
        /// Which setting.
        key: String,
        /// Its value, or none to go back to the default.
        value: Option<String>,
        /// Who did it.
        by: String,
    },
    /// What the operator grants a skill was changed.
    GrantsSet {
        /// Which skill.
        skill_id: SkillId,
        /// What is granted now.
        grants: Capabilities,
        /// Who did it.
        by: String,
    },
}

impl SkillEvent {
    /// The skill it is about, if it is about one.
    #[must_use]
    pub const fn skill_id(&self) -> Option<&SkillId> {
        match self {
            Self::Installed { skill_id, .. }
            | Self::Updated { skill_id, .. }
            | Self::Removed { skill_id, .. }
            | Self::StatusChanged { skill_id, .. }
            | Self::AuditRecorded { skill_id, .. }
            | Self::Described { skill_id, .. }
            | Self::ConfigSet { skill_id, .. }
            | Self::GrantsSet { skill_id, .. } => Some(skill_id),
            Self::PublisherTrusted { .. }
            | Self::PublisherPinned { .. }
            | Self::PublisherUntrusted { .. }
            | Self::KeyRotated { .. }
            | Self::KeyRevoked { .. }
            | Self::ArtifactRevoked { .. }
            | Self::RevocationsSeen { .. } => None,
        }
    }
}
