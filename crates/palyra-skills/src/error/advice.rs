//! What to do about each failure, in one sentence for the person who met it.

use std::io;

use super::SkillError;

impl SkillError {
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::NameInvalid { .. } => "correct the name",
            Self::ArchiveMalformed { .. } | Self::PathRefused { .. } => "make the archive with `palyra skills pack`",
            Self::ArchiveTooLarge { .. } => "leave out what the skill does not need",
            Self::ManifestInvalid { .. } => "correct `skill.toml`; docs/skills.md lists its fields",
            Self::IntegrityMismatch { .. } => "pack the skill again with `palyra skills pack`",
            Self::ModuleMissing { .. } => {
                "build it with `palyra skills build`; with several modules, name that of each entry point in `skill.toml`"
            }
            Self::Unsigned { .. } => "sign it with `palyra skills sign`",
            Self::SignatureInvalid { .. } | Self::SignatureMismatch { .. } => {
                "do not install it; get the skill from its publisher again"
            }
            Self::KeyInvalid { .. } => "name a key that `palyra skills keygen` made, or the file that it is in",
            Self::KeyExposed { .. } => "close it with `chmod 600`, and replace the key if others use this machine",
            Self::Randomness(_) => "try again; a system without randomness is not fit to make keys",
            Self::StatementInvalid { .. } => "get the file again from whoever signed it",
            Self::PublisherUnknown { .. } => {
                "compare the key with the publisher's; then `palyra skills trust PUBLISHER KEY`, or install with `--accept-key KEY-ID`"
            }
            Self::PublisherDistrusted { .. } => {
                "if that was a mistake, trust the publisher anew with `palyra skills trust`"
            }
            Self::KeyChanged { .. } => {
                "ask the publisher over another channel; a planned change comes with a file that the old key has signed, for `palyra skills import`"
            }
            Self::KeyRevoked { .. } => "get a version signed with a current key",
            Self::KeyRetired { .. } => "get a version signed with the publisher's new key",
            Self::KeyTaken { .. } => {
                "a key stands for one publisher: name that one in `skill.toml`, or ask for the right key"
            }
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
            Self::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                "choose another name; what is there is never overwritten"
            }
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
