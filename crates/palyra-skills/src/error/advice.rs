//! What to do about each failure, in one sentence for the person who met it.

use std::io;

use super::SkillError;

impl SkillError {
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::NameInvalid { .. } => "fix the name",
            Self::ArchiveMalformed { .. } | Self::PathRefused { .. } => "create the archive with `palyra skills pack`",
            Self::ArchiveTooLarge { .. } => "remove files that the skill does not need",
            Self::ManifestInvalid { .. } => "fix `skill.toml`; docs/skills.md lists its fields",
            Self::IntegrityMismatch { .. } => "pack the skill again with `palyra skills pack`",
            Self::ModuleMissing { .. } => {
                "build it with `palyra skills build`; with several modules, name the module of each entry point in `skill.toml`"
            }
            Self::Unsigned { .. } => "sign it with `palyra skills sign`",
            Self::SignatureInvalid { .. } | Self::SignatureMismatch { .. } => {
                "do not install it; get the skill from its publisher again"
            }
            Self::KeyInvalid { .. } => "use a key created by `palyra skills keygen`, or the file that contains it",
            Self::KeyExposed { .. } => "run `chmod 600` on it, and replace the key if others use this machine",
            Self::Randomness(_) => "try again; keys cannot be generated without randomness",
            Self::StatementInvalid { .. } => "get the file again from its signer",
            Self::PublisherUnknown { .. } => {
                "compare the key with the publisher's, then run `palyra skills trust PUBLISHER KEY` or install with `--accept-key KEY-ID`"
            }
            Self::PublisherDistrusted { .. } => "to trust the publisher again, run `palyra skills trust PUBLISHER KEY`",
            Self::KeyChanged { .. } => {
                "ask the publisher over another channel; a planned key rotation comes with a file signed by the old key, for `palyra skills import`"
            }
            Self::KeyRevoked { .. } => "get a version signed with a current key",
            Self::KeyRetired { .. } => "get a version signed with the publisher's new key",
            Self::KeyTaken { .. } => {
                "a key belongs to one publisher: name that publisher in `skill.toml`, or ask for the right key"
            }
            Self::RotationRefused { .. } => "the publisher must sign the rotation with the key you trust",
            Self::RevocationRefused { .. } => "get the newest list from the publisher",
            Self::ArtifactRevoked { .. } => "install another version",
            Self::NotFound { .. } => "see `palyra skills list`",
            Self::PublisherNotFound { .. } => "see `palyra skills publishers`",
            Self::AlreadyInstalled { .. } => "use `palyra skills update` for a newer version",
            Self::DowngradeRefused { .. } => "to downgrade, remove the skill first",
            Self::VersionConflict { .. } => "ask the publisher for a new version number",
            Self::PublisherChanged { .. } => "if the skill has moved to a new publisher, remove it first",
            Self::Incompatible { .. } => "update Palyra, or install a version made for this one",
            Self::ReasonMissing { .. } => "add `--reason`",
            Self::Quarantined { .. } => {
                "check `palyra skills info SKILL`, then run `palyra skills enable SKILL --reason …` or remove it"
            }
            Self::Disabled { .. } => "enable it with `palyra skills enable`",
            Self::ConfigUnknown { .. } => "see the settings in `palyra skills info`",
            Self::GrantRefused { .. } => "see what the skill asks for in `palyra skills info`",
            Self::Tampered { .. } => "remove the skill and install it again from its publisher",
            Self::NotStored { .. } => "install the skill again",
            Self::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                "choose another name; existing files are never overwritten"
            }
            Self::File { .. } => "check that the path exists and that you own it",
            Self::RegistryLocation { .. } => "use a directory, `file:///…` or `https://…`",
            Self::RegistryUnreachable { .. } => "check the address and the network, then try again",
            Self::RegistryUntrusted { .. } => "do not use this registry until its owner has explained it",
            Self::RegistryRollback { .. } => "try another mirror, and report it to the registry's owner",
            Self::RegistryExpired { .. } => {
                "check this machine's clock; then ask the registry's owner to sign it again"
            }
            Self::RegistryMismatch { .. } => "try again; if the error persists, report it to the registry's owner",
            Self::RegistryArtifactNotFound { .. } => "see `palyra skills registry list DIRECTORY`",
            Self::AgentSkillInvalid { .. } => "fix the folder; docs/skills.md describes the format",
        }
    }
}
