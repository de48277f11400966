//! What each failure is called, what kind it is, and whether it means tampering. Codes are stable: programs and the pages of docs/errors rely on them.

use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};

use super::SkillError;

impl SkillError {
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

    pub(super) fn category(&self) -> ErrorCategory {
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
}

impl ToStableError for SkillError {
    fn to_stable(&self) -> StableErrorEnvelope {
        StableErrorEnvelope::new(self.code(), self.category(), self.to_string()).hint(self.advice())
    }
}
