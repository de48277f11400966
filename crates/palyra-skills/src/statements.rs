//! What publishers say about their own keys and artifacts: a change of keys, and a list of revocations.

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::envelope::{Envelope, Statement};
use crate::{KeyId, PublicKey, PublisherKey, PublisherName, SkillError};

/// Most entries of a list of revocations.
const MAX_REVOCATIONS: usize = 10_000;
/// Longest reason: a publisher's words end up on operators' screens.
const MAX_REASON: usize = 500;

/// What publishers hand to those who trust them. This is what a file claims to be; who signed it is for the index to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublisherStatement {
    /// A change of keys.
    Rotation(KeyRotation),
    /// A list of revocations.
    Revocations(RevocationList),
}

impl PublisherStatement {
    /// Reads what an envelope claims.
    pub fn claimed(envelope: &Envelope) -> Result<Self, SkillError> {
        if envelope.is::<KeyRotation>() {
            return envelope.unverified().map(Self::Rotation);
        }
        if envelope.is::<RevocationList>() {
            return envelope.unverified().map(Self::Revocations);
        }
        let reason = "it is neither a key rotation nor a revocation list".to_owned();
        Err(SkillError::StatementInvalid { kind: "a publisher's statement", reason })
    }

    /// Whose it claims to be.
    #[must_use]
    pub const fn publisher(&self) -> &PublisherName {
        match self {
            Self::Rotation(rotation) => &rotation.publisher,
            Self::Revocations(list) => &list.publisher,
        }
    }
}

/// Whether a reason may be shown as it stands.
pub(crate) fn fits(reason: &str) -> bool {
    reason.chars().count() <= MAX_REASON && !reason.chars().any(char::is_control)
}

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
    const KIND: &'static str = "a key rotation";
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
    const KIND: &'static str = "a revocation list";
}

impl RevocationList {
    /// What a publisher begins with: a list of nothing, which is not published.
    #[must_use]
    pub const fn none(publisher: PublisherName) -> Self {
        Self { publisher, number: 0, issued_at: Timestamp(0), keys: Vec::new(), artifacts: Vec::new() }
    }

    /// The next list: everything of this one and what is new. Whoever missed a list misses nothing, so lists only grow; what is listed keeps its reason.
    #[must_use]
    pub fn and(mut self, keys: Vec<RevokedKey>, artifacts: Vec<RevokedArtifact>, at: Timestamp) -> Self {
        for key in keys {
            if !self.keys.iter().any(|known| known.key_id == key.key_id) {
                self.keys.push(key);
            }
        }
        for artifact in artifacts {
            if !self.artifacts.iter().any(|known| known.content == artifact.content) {
                self.artifacts.push(artifact);
            }
        }
        self.number = self.number.saturating_add(1);
        self.issued_at = at;
        self
    }

    /// Signs the list.
    pub fn sign(&self, key: &PublisherKey) -> Result<Envelope, SkillError> {
        self.check()?;
        Envelope::sign(self, &[key])
    }

    /// Reads a list that one of these keys has signed.
    pub fn open(envelope: &Envelope, keys: &[PublicKey]) -> Result<Self, SkillError> {
        let list: Self = envelope.unverified()?;
        list.check()?;
        if envelope.signers(keys)? == 0 {
            return Err(refused("it is not signed with a key of the publisher"));
        }
        Ok(list)
    }

    fn check(&self) -> Result<(), SkillError> {
        if self.keys.len() + self.artifacts.len() > MAX_REVOCATIONS {
            return Err(refused("it has more than 10,000 entries"));
        }
        let mut reasons =
            self.keys.iter().map(|key| &key.reason).chain(self.artifacts.iter().map(|artifact| &artifact.reason));
        if !reasons.all(|reason| fits(reason)) {
            return Err(refused("a reason has more than 500 characters, or more than one line"));
        }
        Ok(())
    }

    /// The publisher it claims to be from, to look up the keys with.
    pub fn claimed_publisher(envelope: &Envelope) -> Result<PublisherName, SkillError> {
        envelope.unverified::<Self>().map(|list| list.publisher)
    }
}

fn refused(reason: &str) -> SkillError {
    SkillError::RevocationRefused { reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_794_700_000_000);

    fn revoked(number: u8, reason: &str) -> RevokedKey {
        RevokedKey { key_id: PublisherKey::from_seed(&[number; 32]).public().id(), reason: reason.to_owned() }
    }

    #[test]
    fn lists_only_grow_and_count_on() {
        let acme: PublisherName = "acme".parse().unwrap();
        let first = RevocationList::none(acme).and(vec![revoked(1, "lost")], Vec::new(), NOW);
        let artifact = RevokedArtifact { content: Digest::of(b"x"), reason: "it leaks".to_owned() };
        let second = first.clone().and(vec![revoked(1, "stolen"), revoked(2, "old")], vec![artifact.clone()], NOW);
        let third = second.clone().and(Vec::new(), vec![artifact], NOW);
        assert_eq!((first.number, second.number, third.number), (1, 2, 3));
        assert_eq!(second.keys, [revoked(1, "lost"), revoked(2, "old")]);
        assert_eq!((third.keys, third.artifacts), (second.keys, second.artifacts));
    }

    #[test]
    fn a_statement_says_what_it_is_and_reasons_are_one_short_line() {
        let (old, new) = (PublisherKey::from_seed(&[1; 32]), PublisherKey::from_seed(&[2; 32]));
        let acme: PublisherName = "acme".parse().unwrap();
        let rotation = KeyRotation::sign(acme.clone(), &old, &new, NOW).unwrap();
        assert!(matches!(PublisherStatement::claimed(&rotation).unwrap(), PublisherStatement::Rotation(_)));
        let list = RevocationList::none(acme.clone()).and(vec![revoked(1, "lost")], Vec::new(), NOW);
        let signed = list.sign(&old).unwrap();
        let claimed = PublisherStatement::claimed(&signed).unwrap();
        assert_eq!(claimed.publisher(), &acme);
        assert_eq!(claimed, PublisherStatement::Revocations(list.clone()));
        for bad in ["two\nlines".to_owned(), "\u{1b}[2J".to_owned(), "x".repeat(501)] {
            let list = RevocationList::none(acme.clone()).and(vec![revoked(1, &bad)], Vec::new(), NOW);
            assert_eq!(list.sign(&old).unwrap_err().code(), "skill_revocation_refused");
            // Nor from somebody whose tools do not look.
            let forged = Envelope::sign(&list, &[&old]).unwrap();
            assert!(RevocationList::open(&forged, &[old.public()]).is_err());
        }
    }
}
