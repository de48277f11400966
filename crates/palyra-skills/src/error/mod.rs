//! Everything a skill, a key, a registry or a folder of instructions can fail with. Stable codes and advice are beside.
//!
//! Text out of an archive is a stranger's: it is shortened, escaped and put in backticks where it appears at all.

mod advice;
mod codes;
mod make;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{KeyId, PublisherName, SkillId, SkillVersion};

pub(crate) use make::shown;

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
    #[error("the skill archive contains an invalid path, `{path}`: {reason}")]
    PathRefused {
        /// The path, escaped.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// A field of the manifest.
    #[error("invalid `{field}` in the skill manifest: {reason}")]
    ManifestInvalid {
        /// Path of the field.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// Manifest and files say different things.
    #[error("the skill's manifest and files do not match at `{path}`: {reason}")]
    IntegrityMismatch {
        /// The file.
        path: String,
        /// How.
        reason: &'static str,
    },
    /// No module to go with an entry point.
    #[error("cannot determine the module of `{entrypoint}`: {reason}")]
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
    #[error("the skill's signature is invalid: {reason}")]
    SignatureInvalid {
        /// Why.
        reason: String,
    },
    /// The files are not those that were signed.
    #[error("the file `{path}` does not match the signature: {reason}")]
    SignatureMismatch {
        /// The file.
        path: String,
        /// How it differs.
        reason: &'static str,
    },
    /// A key that cannot be read.
    #[error("invalid key: {reason}")]
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
    #[error("the operating system provides no random bytes for a key: {0}")]
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
    #[error("the publisher `{publisher}` is no longer trusted: {reason}")]
    PublisherDistrusted {
        /// The publisher.
        publisher: PublisherName,
        /// Why.
        reason: String,
    },
    /// Another key than the one remembered.
    #[error(
        "THE KEY OF PUBLISHER `{publisher}` HAS CHANGED: expected {known}, found {found}; someone may be impersonating the publisher"
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
    #[error("the key {key} of publisher `{publisher}` was replaced and no longer signs new skills")]
    KeyRetired {
        /// The publisher.
        publisher: PublisherName,
        /// The old key.
        key: KeyId,
    },
    /// A key that stands for somebody else.
    #[error("the key {key} already belongs to the publisher `{owner}`")]
    KeyTaken {
        /// The key.
        key: KeyId,
        /// Whose it is.
        owner: PublisherName,
    },
    /// A rotation that does not count.
    #[error("the key rotation is refused: {reason}")]
    RotationRefused {
        /// Why.
        reason: String,
    },
    /// A list of revocations that does not count.
    #[error("the revocation list is refused: {reason}")]
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
    #[error("the skill `{skill}` {version} is already installed")]
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
    #[error("the skill `{skill}` {version} is or was installed with different contents; a version must never change")]
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
    #[error("{what} requires a reason")]
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
    #[error("the stored skill was modified on disk: {reason}")]
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
    #[error("`{location}` is not a valid registry location: {reason}")]
    RegistryLocation {
        /// The text given.
        location: String,
        /// Why.
        reason: &'static str,
    },
    /// The registry could not be reached.
    #[error("cannot fetch `{path}` from the registry: {reason}")]
    RegistryUnreachable {
        /// The file asked for.
        path: String,
        /// Why.
        reason: String,
    },
    /// A registry file whose signatures do not suffice.
    #[error("`{path}` of the registry has {have} of {need} required signatures")]
    RegistryUntrusted {
        /// The file.
        path: String,
        /// Signatures that count.
        have: usize,
        /// The threshold.
        need: usize,
    },
    /// A registry file that is older than one seen before.
    #[error(
        "`{path}` of the registry is version {found}, but version {seen} was seen before; this may be a rollback attack"
    )]
    RegistryRollback {
        /// The file.
        path: String,
        /// The highest version seen.
        seen: u64,
        /// The version found.
        found: u64,
    },
    /// A registry file past its date.
    #[error("`{path}` of the registry expired at {expired}; newer files may be withheld")]
    RegistryExpired {
        /// The file.
        path: String,
        /// When.
        expired: String,
    },
    /// A registry file that is not the one that was announced.
    #[error("`{path}` of the registry does not match its metadata: {reason}")]
    RegistryMismatch {
        /// The file.
        path: String,
        /// How it differs.
        reason: String,
    },
    /// The registry does not list it.
    #[error("the registry does not contain `{wanted}`")]
    RegistryArtifactNotFound {
        /// What was asked for.
        wanted: String,
    },
    /// A folder that is not a skill of instructions.
    #[error("`{}` is not an agent skill folder: {reason}", path.display())]
    AgentSkillInvalid {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}
