//! What publishers say about their own keys and artifacts: a change of keys, and a list of revocations.

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::envelope::{Envelope, Statement};
use crate::{KeyId, PublicKey, PublisherKey, PublisherName, SkillError};

/// Most entries of a list of revocations.
const MAX_REVOCATIONS: usize = 10_000;

/// A change of keys. Signed by the old key, which gives its trust away, and by the new one, which shows that it is held by whoever asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRotation {
    /// Whose keys.
    pub publisher: PublisherName,
    /// The old key.
    pub from: PublicKey,
    /// The new key.
    pub to: PublicKey,
    /// When, as the publisher's clock said.
    pub at: Timestamp,
}

impl Statement for KeyRotation {
    const TYPE: &'static str = "application/vnd.palyra.key-rotation+json";
    const KIND: &'static str = "a change of keys";
}

impl KeyRotation {
    /// Makes a signed change of keys.
    pub fn sign(
        publisher: PublisherName,
        old: &PublisherKey,
        new: &PublisherKey,
        at: Timestamp,
    ) -> Result<Envelope, SkillError> {
        Envelope::sign(&Self { publisher, from: old.public(), to: new.public(), at }, &[old, new])
    }

    /// Reads a change of keys that both keys have signed. Whether the old key is one that is trusted is for the index to say.
    pub fn open(envelope: &Envelope) -> Result<Self, SkillError> {
        let refused = |reason: &str| SkillError::RotationRefused { reason: reason.to_owned() };
        let rotation: Self = envelope.unverified()?;
        if rotation.from == rotation.to {
            return Err(refused("old and new key are the same"));
        }
        if envelope.signers([&rotation.from])? != 1 {
            return Err(refused("the old key has not signed it"));
        }
        if envelope.signers([&rotation.to])? != 1 {
            return Err(refused("the new key has not signed it"));
        }
        Ok(rotation)
    }
}

/// A key that is no longer to be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedKey {
    /// Which.
    pub key_id: KeyId,
    /// Why.
    pub reason: String,
}

/// An artifact that is no longer to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedArtifact {
    /// The digest of its contents, see [`SkillArchive::content`](crate::SkillArchive::content).
    pub content: Digest,
    /// Why.
    pub reason: String,
}

/// What a publisher takes back. Lists are numbered; a lower number than one seen before is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevocationList {
    /// Whose list.
    pub publisher: PublisherName,
    /// Which.
    pub number: u64,
    /// When, as the publisher's clock said.
    pub issued_at: Timestamp,
    /// Keys.
    #[serde(default)]
    pub keys: Vec<RevokedKey>,
    /// Artifacts.
    #[serde(default)]
    pub artifacts: Vec<RevokedArtifact>,
}

impl Statement for RevocationList {
    const TYPE: &'static str = "application/vnd.palyra.skill-revocations+json";
    const KIND: &'static str = "a list of revocations";
}

impl RevocationList {
    /// Signs the list.
    pub fn sign(&self, key: &PublisherKey) -> Result<Envelope, SkillError> {
        Envelope::sign(self, &[key])
    }

    /// Reads a list that one of these keys has signed.
    pub fn open(envelope: &Envelope, keys: &[PublicKey]) -> Result<Self, SkillError> {
        let refused = |reason: &str| SkillError::RevocationRefused { reason: reason.to_owned() };
        let list: Self = envelope.unverified()?;
        if list.keys.len() + list.artifacts.len() > MAX_REVOCATIONS {
            return Err(refused("it has more than 10,000 entries"));
        }
        if envelope.signers(keys)? == 0 {
            return Err(refused("no key of the publisher has signed it"));
        }
        Ok(list)
    }

    /// The publisher it claims to be from, to look up the keys with.
    pub fn claimed_publisher(envelope: &Envelope) -> Result<PublisherName, SkillError> {
        envelope.unverified::<Self>().map(|list| list.publisher)
    }
}
