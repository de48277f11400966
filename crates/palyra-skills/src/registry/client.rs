//! Reads a registry without believing it.
//!
//! What is remembered between two visits ([`RegistryState`]) is what makes attacks visible: the root that is trusted, and the highest versions seen. Each step is
//! checked before the next file is asked for, every file has a limit before it is fetched, and the state moves forward only.
//!
//! | attack | what stops it |
//! | --- | --- |
//! | older files are served again (rollback) | versions remembered in the state |
//! | newer files are held back (freeze) | the timestamp expires within days |
//! | files of different times are mixed | the timestamp names the index by version, length and digest; the index names its root |
//! | endless or swollen files | every length is known or bounded beforehand |
//! | another root is put in place | each root is signed by the one before |
//! | some keys are stolen | thresholds; a new root replaces keys, and versions pushed up by a thief are forgotten with them |

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use super::fetch::{Fetched, RegistryFetch};
use super::metadata::{RegistryArtifact, RegistryIndex, RegistryRole, Root, TimestampFile, paths};
use crate::envelope::{Envelope, Statement};
use crate::{ArchiveLimits, SkillArchive, SkillError, verify};

/// Largest root.
const MAX_ROOT: u64 = 256 << 10;
/// Largest timestamp.
const MAX_TIMESTAMP: u64 = 64 << 10;
/// Largest index: some 20,000 artifacts.
const MAX_INDEX: u64 = 16 << 20;
/// Most new roots that are followed in one visit.
const MAX_ROOT_STEPS: usize = 64;

/// How the first root is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootPin {
    /// It has this digest, told over another channel.
    Digest(Digest),
    /// It is whatever the registry shows first; from then on only its successors count.
    FirstUse,
}

/// What is remembered of a registry between visits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryState {
    root: Envelope,
    /// The digest of the root that was pinned first, for people to compare.
    pub pinned: Digest,
    timestamp_version: u64,
    timestamp_digest: Option<Digest>,
    index_version: u64,
}

impl RegistryState {
    /// Begins to follow a registry from one of its roots, usually the first.
    pub async fn begin(fetch: &dyn RegistryFetch, version: u64, pin: RootPin) -> Result<Self, SkillError> {
        let path = paths::root(version);
        let bytes = need(fetch, &path, MAX_ROOT).await?;
        let digest = Digest::of(&bytes);
        if let RootPin::Digest(expected) = pin
            && expected != digest
        {
            return Err(mismatch(&path, format!("its digest is {digest}, expected {expected}")));
        }
        let envelope = Envelope::parse(&bytes)?;
        let root = Root::unverified(&envelope)?;
        if root.version != version {
            return Err(mismatch(&path, format!("it is root {}", root.version)));
        }
        threshold(&path, &envelope, &root.roles.root)?;
        Ok(Self { root: envelope, pinned: digest, timestamp_version: 0, timestamp_digest: None, index_version: 0 })
    }

    /// The number of the root that is trusted now.
    pub fn root_version(&self) -> Result<u64, SkillError> {
        self.root().map(|root| root.version)
    }

    /// The trusted root; it was checked when it was taken in.
    fn root(&self) -> Result<Root, SkillError> {
        Root::unverified(&self.root)
    }

    /// Visits the registry and gives its index. The state is worth keeping even where this fails: it may have come forward.
    pub async fn refresh(&mut self, fetch: &dyn RegistryFetch, now: Timestamp) -> Result<RegistryIndex, SkillError> {
        let root = self.follow_roots(fetch).await?;
        fresh(&paths::root(root.version), root.expires, now)?;
        let timestamp = self.read_timestamp(fetch, &root, now).await?;
        self.read_index(fetch, &root, &timestamp, now).await
    }

    async fn follow_roots(&mut self, fetch: &dyn RegistryFetch) -> Result<Root, SkillError> {
        let mut root = self.root()?;
        for _ in 0..MAX_ROOT_STEPS {
            let path = paths::root(root.version.saturating_add(1));
            let Some(bytes) = get(fetch, &path, MAX_ROOT).await? else { return Ok(root) };
            let envelope = Envelope::parse(&bytes)?;
            let next = Root::unverified(&envelope)?;
            if next.version != root.version.saturating_add(1) {
                return Err(SkillError::RegistryRollback { path, seen: root.version, found: next.version });
            }
            threshold(&path, &envelope, &root.roles.root)?;
            threshold(&path, &envelope, &next.roles.root)?;
            if next.roles.timestamp != root.roles.timestamp || next.roles.index != root.roles.index {
                // Whoever held the old keys may have pushed the numbers to the top; they count no more.
                self.timestamp_version = 0;
                self.timestamp_digest = None;
                self.index_version = 0;
            }
            self.root = envelope;
            root = next;
        }
        Err(mismatch(&paths::root(root.version), "there are too many new roots to follow at once"))
    }

    async fn read_timestamp(
        &mut self,
        fetch: &dyn RegistryFetch,
        root: &Root,
        now: Timestamp,
    ) -> Result<TimestampFile, SkillError> {
        let path = paths::TIMESTAMP;
        let bytes = need(fetch, path, MAX_TIMESTAMP).await?;
        let timestamp: TimestampFile = open(path, &bytes, &root.roles.timestamp)?;
        if timestamp.version < self.timestamp_version {
            let (seen, found) = (self.timestamp_version, timestamp.version);
            return Err(SkillError::RegistryRollback { path: path.to_owned(), seen, found });
        }
        let payload = Digest::of(serde_json::to_string(&timestamp).unwrap_or_default().as_bytes());
        if timestamp.version == self.timestamp_version && self.timestamp_digest.is_some_and(|seen| seen != payload) {
            return Err(mismatch(path, "there are two different ones with the same version"));
        }
        if timestamp.index.version < self.index_version {
            let (seen, found) = (self.index_version, timestamp.index.version);
            return Err(SkillError::RegistryRollback { path: paths::index(found), seen, found });
        }
        fresh(path, timestamp.expires, now)?;
        self.timestamp_version = timestamp.version;
        self.timestamp_digest = Some(payload);
        Ok(timestamp)
    }

    async fn read_index(
        &mut self,
        fetch: &dyn RegistryFetch,
        root: &Root,
        timestamp: &TimestampFile,
        now: Timestamp,
    ) -> Result<RegistryIndex, SkillError> {
        let announced = &timestamp.index;
        let path = paths::index(announced.version);
        if announced.length > MAX_INDEX {
            return Err(mismatch(&path, "its announced size is above 16 MiB"));
        }
        let bytes = exactly(fetch, &path, announced.length, &announced.sha256).await?;
        let index: RegistryIndex = open(&path, &bytes, &root.roles.index)?;
        if index.version != announced.version {
            return Err(mismatch(&path, format!("it is index {}", index.version)));
        }
        if index.root_version > root.version {
            return Err(mismatch(
                &path,
                format!("it was signed under root {}, which is not available", index.root_version),
            ));
        }
        fresh(&path, index.expires, now)?;
        self.index_version = index.version;
        Ok(index)
    }
}

/// Brings an artifact that an index lists and checks that it is that one.
pub async fn download(
    fetch: &dyn RegistryFetch,
    artifact: &RegistryArtifact,
    limits: &ArchiveLimits,
) -> Result<(Vec<u8>, SkillArchive), SkillError> {
    let path = paths::artifact(&artifact.sha256);
    limits.check("the archive", artifact.length, limits.archive_bytes)?;
    let bytes = exactly(fetch, &path, artifact.length, &artifact.sha256).await?;
    let archive = SkillArchive::read_with(&bytes, limits)?;
    let verified = verify(&archive)?;
    let manifest = archive.manifest();
    let same = manifest.skill_id == artifact.skill_id
        && manifest.version == artifact.version
        && verified.publisher == artifact.publisher
        && verified.key_id == artifact.key_id
        && archive.content() == artifact.content;
    if !same {
        return Err(mismatch(&path, "its skill, version or publisher differs from the index"));
    }
    Ok((bytes, archive))
}

fn mismatch(path: &str, reason: impl Into<String>) -> SkillError {
    SkillError::RegistryMismatch { path: path.to_owned(), reason: reason.into() }
}

/// A file, or nothing where there is none.
async fn get(fetch: &dyn RegistryFetch, path: &str, limit: u64) -> Result<Option<Vec<u8>>, SkillError> {
    let unreachable = |reason: String| SkillError::RegistryUnreachable { path: path.to_owned(), reason };
    match fetch.fetch(path, limit).await.map_err(unreachable)? {
        Fetched::Missing => Ok(None),
        // The port is asked to stop at the limit; that it did is checked here.
        Fetched::Bytes(bytes) if bytes.len() as u64 <= limit => Ok(Some(bytes)),
        Fetched::Bytes(_) | Fetched::TooLarge => Err(mismatch(path, format!("it is longer than {limit} bytes"))),
    }
}

async fn need(fetch: &dyn RegistryFetch, path: &str, limit: u64) -> Result<Vec<u8>, SkillError> {
    get(fetch, path, limit)
        .await?
        .ok_or_else(|| SkillError::RegistryUnreachable { path: path.to_owned(), reason: "no such file".to_owned() })
}

/// A file whose length and digest are known.
async fn exactly(fetch: &dyn RegistryFetch, path: &str, length: u64, sha256: &Digest) -> Result<Vec<u8>, SkillError> {
    let bytes = need(fetch, path, length).await?;
    if bytes.len() as u64 != length {
        return Err(mismatch(path, format!("it has {} bytes, expected {length}", bytes.len())));
    }
    if Digest::of(&bytes) != *sha256 {
        return Err(mismatch(path, "its digest does not match"));
    }
    Ok(bytes)
}

/// Opens a file that enough keys of a role have signed.
fn open<T: Statement>(path: &str, bytes: &[u8], role: &RegistryRole) -> Result<T, SkillError> {
    let envelope = Envelope::parse(bytes)?;
    threshold(path, &envelope, role)?;
    envelope.unverified()
}

pub(super) fn threshold(path: &str, envelope: &Envelope, role: &RegistryRole) -> Result<(), SkillError> {
    let (have, need) = (envelope.signers(&role.keys)?, role.threshold);
    if have >= need { Ok(()) } else { Err(SkillError::RegistryUntrusted { path: path.to_owned(), have, need }) }
}

fn fresh(path: &str, expires: Timestamp, now: Timestamp) -> Result<(), SkillError> {
    if now < expires {
        return Ok(());
    }
    Err(SkillError::RegistryExpired { path: path.to_owned(), expired: expires.to_rfc3339() })
}
