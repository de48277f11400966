//! Makes and changes a registry in a directory, which may then be served by any web server.
//!
//! Files are written so that a reader in between sees a complete registry: artifacts first, then the index under a name of its own, then the timestamp that names it,
//! in one rename. Older indexes and roots stay; roots have to, for those who come from far behind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use palyra_common::{Digest, Timestamp};

use super::client::threshold;
use super::metadata::{
    CurrentIndex, RegistryArtifact, RegistryIndex, RegistryRole, RegistryRoles, Root, TimestampFile, paths,
};
use crate::envelope::{Envelope, Statement};
use crate::files::{self, Existing, Readers};
use crate::{
    ArchiveLimits, PublisherKey, RevocationList, RevokedArtifact, SkillArchive, SkillError, SkillId, SkillVersion,
    verify,
};

/// Largest file of a registry other than an artifact.
const MAX_FILE: u64 = 32 << 20;
const DAY: Duration = Duration::from_secs(86_400);

/// How long the files of a registry count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistryLifetimes {
    /// The root.
    pub root: Duration,
    /// The index.
    pub index: Duration,
    /// The timestamp: how long somebody can hide news from a client.
    pub timestamp: Duration,
}

impl Default for RegistryLifetimes {
    fn default() -> Self {
        Self { root: 365 * DAY, index: 90 * DAY, timestamp: 7 * DAY }
    }
}

/// A registry that is being written.
#[derive(Debug)]
pub struct RegistryWriter {
    directory: PathBuf,
    lifetimes: RegistryLifetimes,
    root: Root,
    root_digest: Digest,
    index: RegistryIndex,
    timestamp_version: u64,
}

impl RegistryWriter {
    /// An unsigned first root for these roles; whoever holds root keys countersigns it.
    pub fn draft_first_root(
        roles: RegistryRoles,
        lifetimes: RegistryLifetimes,
        now: Timestamp,
    ) -> Result<Envelope, SkillError> {
        Envelope::sign(&Root { version: 1, expires: now.plus(lifetimes.root), roles }, &[])
    }

    /// Begins a registry with a first root that enough root keys have signed. `signers` are the keys of index and timestamp.
    pub fn create(
        directory: &Path,
        first_root: &Envelope,
        lifetimes: RegistryLifetimes,
        signers: &[&PublisherKey],
        now: Timestamp,
    ) -> Result<Self, SkillError> {
        let root = Root::unverified(first_root)?;
        let path = paths::root(1);
        if root.version != 1 {
            return Err(SkillError::RegistryMismatch { path, reason: format!("it is root {}", root.version) });
        }
        threshold(&path, first_root, &root.roles.root)?;
        for part in ["root", "index", "artifacts"] {
            files::make_directory(&directory.join(part), Readers::Everybody)?;
        }
        let bytes = first_root.to_bytes()?;
        let index = RegistryIndex {
            version: 0,
            expires: now,
            root_version: 1,
            artifacts: Vec::new(),
            revoked: Vec::new(),
            revocations: Vec::new(),
        };
        let mut writer = Self {
            directory: directory.to_owned(),
            lifetimes,
            root,
            root_digest: Digest::of(&bytes),
            index,
            timestamp_version: 0,
        };
        // Signed before anything is written: a registry without an index is none.
        let signed = writer.next_index(signers, now)?;
        files::write(&directory.join(path), &bytes, Existing::Refuse, Readers::Everybody)?;
        writer.write_index(signed, signers, now)?;
        Ok(writer)
    }

    /// Opens a registry to change it.
    pub fn open(directory: &Path, lifetimes: RegistryLifetimes) -> Result<Self, SkillError> {
        let read = |path: &str| -> Result<Option<(Envelope, Digest)>, SkillError> {
            let bytes = files::read(&directory.join(path), MAX_FILE)?;
            bytes.map(|bytes| Ok((Envelope::parse(&bytes)?, Digest::of(&bytes)))).transpose()
        };
        let missing =
            |path: &str| SkillError::RegistryUnreachable { path: path.to_owned(), reason: "no such file".to_owned() };
        let (mut envelope, root_digest) = read(&paths::root(1))?.ok_or_else(|| missing(&paths::root(1)))?;
        let mut version = 1;
        while let Some((next, _)) = read(&paths::root(version + 1))? {
            envelope = next;
            version += 1;
        }
        let root = Root::unverified(&envelope)?;
        let (timestamp, _) = read(paths::TIMESTAMP)?.ok_or_else(|| missing(paths::TIMESTAMP))?;
        let timestamp: TimestampFile = timestamp.unverified()?;
        let path = paths::index(timestamp.index.version);
        let (index, digest) = read(&path)?.ok_or_else(|| missing(&path))?;
        if digest != timestamp.index.sha256 {
            return Err(SkillError::RegistryMismatch {
                path,
                reason: "its digest does not match the timestamp".to_owned(),
            });
        }
        // Signing on top of an index that nobody with the right keys has signed would launder it.
        threshold(&path, &index, &root.roles.index)?;
        Ok(Self {
            directory: directory.to_owned(),
            lifetimes,
            root,
            root_digest,
            index: index.unverified()?,
            timestamp_version: timestamp.version,
        })
    }

    /// What is listed now.
    #[must_use]
    pub const fn index(&self) -> &RegistryIndex {
        &self.index
    }

    /// The digest of the first root, for clients to pin.
    #[must_use]
    pub const fn first_root_digest(&self) -> Digest {
        self.root_digest
    }

    /// Adds a signed archive.
    pub fn publish(
        &mut self,
        bytes: &[u8],
        limits: &ArchiveLimits,
        signers: &[&PublisherKey],
        now: Timestamp,
    ) -> Result<RegistryArtifact, SkillError> {
        let archive = SkillArchive::read_with(bytes, limits)?;
        let verified = verify(&archive)?;
        let manifest = archive.manifest();
        let (skill, version) = (manifest.skill_id.clone(), manifest.version.clone());
        if let Some(listed) = self.listed(&skill, &version) {
            return Err(match listed.content == archive.content() {
                true => SkillError::AlreadyInstalled { skill, version },
                false => SkillError::VersionConflict { skill, version },
            });
        }
        if let Some(other) =
            self.index.artifacts.iter().find(|other| other.skill_id == skill && other.publisher != verified.publisher)
        {
            return Err(SkillError::PublisherChanged {
                skill,
                owner: other.publisher.clone(),
                found: verified.publisher,
            });
        }
        let artifact = RegistryArtifact {
            skill_id: skill,
            version,
            name: manifest.name.clone(),
            description: manifest.description.clone(),
            publisher: verified.publisher,
            key_id: verified.key_id,
            length: bytes.len() as u64,
            sha256: archive.digest(),
            content: archive.content(),
        };
        files::write(
            &self.directory.join(paths::artifact(&artifact.sha256)),
            bytes,
            Existing::Replace,
            Readers::Everybody,
        )?;
        let before = self.index.clone();
        self.index.artifacts.push(artifact.clone());
        self.commit(before, signers, now)?;
        Ok(artifact)
    }

    /// Takes an artifact back: it stays listed, is offered no more, and clients put it into quarantine.
    pub fn revoke(
        &mut self,
        skill: &SkillId,
        version: &SkillVersion,
        reason: &str,
        signers: &[&PublisherKey],
        now: Timestamp,
    ) -> Result<(), SkillError> {
        let listed = self
            .listed(skill, version)
            .ok_or_else(|| SkillError::RegistryArtifactNotFound { wanted: format!("{skill} {version}") })?;
        let revoked = RevokedArtifact { content: listed.content, reason: reason.to_owned() };
        let before = self.index.clone();
        self.index.revoked.retain(|other| other.content != revoked.content);
        self.index.revoked.push(revoked);
        self.commit(before, signers, now)
    }

    /// Passes on a publisher's list of revocations in the place of an older one. Whether its keys are the right ones is known to those who trust the publisher; here it
    /// has to be newer, and from somebody who has published something.
    pub fn announce(
        &mut self,
        list: &Envelope,
        signers: &[&PublisherKey],
        now: Timestamp,
    ) -> Result<RevocationList, SkillError> {
        let refused = |reason: String| SkillError::RevocationRefused { reason };
        let claimed: RevocationList = list.unverified()?;
        let publisher = &claimed.publisher;
        if !self.index.artifacts.iter().any(|artifact| artifact.publisher == *publisher) {
            return Err(refused(format!("the registry has no skill of the publisher `{publisher}`")));
        }
        let before = self.index.clone();
        for known in &before.revocations {
            let known: RevocationList = known.unverified()?;
            if known.publisher == *publisher && known.number >= claimed.number {
                return Err(refused(format!(
                    "list {} is already published; this is list {}",
                    known.number, claimed.number
                )));
            }
        }
        self.index
            .revocations
            .retain(|known| RevocationList::claimed_publisher(known).is_ok_and(|known| known != *publisher));
        self.index.revocations.push(list.clone());
        self.commit(before, signers, now)?;
        Ok(claimed)
    }

    /// Signs index and timestamp anew, so that they count for longer.
    pub fn renew(&mut self, signers: &[&PublisherKey], now: Timestamp) -> Result<(), SkillError> {
        self.commit(self.index.clone(), signers, now)
    }

    /// Signs the timestamp alone anew, for which the index key is not needed.
    pub fn renew_timestamp(&mut self, signers: &[&PublisherKey], now: Timestamp) -> Result<(), SkillError> {
        let path = self.directory.join(paths::index(self.index.version));
        let bytes = files::read(&path, MAX_FILE)?.unwrap_or_default();
        let current =
            CurrentIndex { version: self.index.version, length: bytes.len() as u64, sha256: Digest::of(&bytes) };
        self.write_timestamp(current, signers, now)
    }

    /// An unsigned next root for these roles. It takes the signatures of enough old and enough new root keys.
    pub fn draft_next_root(&self, roles: RegistryRoles, now: Timestamp) -> Result<Envelope, SkillError> {
        let version = self.root.version.saturating_add(1);
        Envelope::sign(&Root { version, expires: now.plus(self.lifetimes.root), roles }, &[])
    }

    /// Puts a signed next root in place and signs index and timestamp anew under it.
    pub fn adopt_root(
        &mut self,
        envelope: &Envelope,
        signers: &[&PublisherKey],
        now: Timestamp,
    ) -> Result<(), SkillError> {
        let next = Root::unverified(envelope)?;
        let path = paths::root(next.version);
        if next.version != self.root.version.saturating_add(1) {
            return Err(SkillError::RegistryMismatch {
                path,
                reason: format!("the current root is {}", self.root.version),
            });
        }
        threshold(&path, envelope, &self.root.roles.root)?;
        threshold(&path, envelope, &next.roles.root)?;
        let before = std::mem::replace(&mut self.root, next);
        let signed = match self.next_index(signers, now) {
            Ok(signed) => signed,
            Err(error) => {
                self.root = before;
                return Err(error);
            }
        };
        files::write(&self.directory.join(path), &envelope.to_bytes()?, Existing::Refuse, Readers::Everybody)?;
        self.write_index(signed, signers, now)
    }

    fn listed(&self, skill: &SkillId, version: &SkillVersion) -> Option<&RegistryArtifact> {
        self.index.artifacts.iter().find(|artifact| artifact.skill_id == *skill && artifact.version == *version)
    }

    /// Signs and writes the index as it is now; if that fails, the one before is back.
    fn commit(&mut self, before: RegistryIndex, signers: &[&PublisherKey], now: Timestamp) -> Result<(), SkillError> {
        let written = self.next_index(signers, now).and_then(|signed| self.write_index(signed, signers, now));
        if written.is_err() {
            self.index = before;
        }
        written
    }

    /// The next index with its signatures, in memory only.
    fn next_index(&self, signers: &[&PublisherKey], now: Timestamp) -> Result<(RegistryIndex, Vec<u8>), SkillError> {
        let next = RegistryIndex {
            version: self.index.version.saturating_add(1),
            expires: now.plus(self.lifetimes.index),
            root_version: self.root.version,
            ..self.index.clone()
        };
        let bytes = signed(&paths::index(next.version), &next, &self.root.roles.index, signers)?;
        // The timestamp has to follow, so its keys are asked for before anything is written.
        let probe = CurrentIndex { version: next.version, length: 0, sha256: Digest([0; 32]) };
        signed(paths::TIMESTAMP, &self.timestamp(probe, now), &self.root.roles.timestamp, signers)?;
        Ok((next, bytes))
    }

    fn write_index(
        &mut self,
        (next, bytes): (RegistryIndex, Vec<u8>),
        signers: &[&PublisherKey],
        now: Timestamp,
    ) -> Result<(), SkillError> {
        files::write(&self.directory.join(paths::index(next.version)), &bytes, Existing::Replace, Readers::Everybody)?;
        let current = CurrentIndex { version: next.version, length: bytes.len() as u64, sha256: Digest::of(&bytes) };
        self.write_timestamp(current, signers, now)?;
        self.index = next;
        Ok(())
    }

    fn timestamp(&self, index: CurrentIndex, now: Timestamp) -> TimestampFile {
        TimestampFile {
            version: self.timestamp_version.saturating_add(1),
            expires: now.plus(self.lifetimes.timestamp),
            index,
        }
    }

    fn write_timestamp(
        &mut self,
        index: CurrentIndex,
        signers: &[&PublisherKey],
        now: Timestamp,
    ) -> Result<(), SkillError> {
        let timestamp = self.timestamp(index, now);
        let bytes = signed(paths::TIMESTAMP, &timestamp, &self.root.roles.timestamp, signers)?;
        files::write(&self.directory.join(paths::TIMESTAMP), &bytes, Existing::Replace, Readers::Everybody)?;
        self.timestamp_version = timestamp.version;
        Ok(())
    }
}

/// A statement signed by those of the keys that the role knows, if they suffice.
fn signed<T: Statement>(
    path: &str,
    statement: &T,
    role: &RegistryRole,
    signers: &[&PublisherKey],
) -> Result<Vec<u8>, SkillError> {
    let keys: Vec<&PublisherKey> = signers.iter().copied().filter(|key| role.keys.contains(&key.public())).collect();
    let envelope = Envelope::sign(statement, &keys)?;
    threshold(path, &envelope, role)?;
    envelope.to_bytes()
}
