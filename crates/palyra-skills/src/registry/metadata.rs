//! The three signed files of a registry.
//!
//! *Root* says which keys speak for the registry and how many of them it takes; it is signed by itself and by its predecessor. *Timestamp* is small, lives for days and
//! names the one index that is current. *Index* lists the artifacts with length and digest. This is The Update Framework without delegations: where one index
//! lists everything, its snapshot role would repeat what the timestamp says.

use palyra_common::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::envelope::{Envelope, Statement};
use crate::{KeyId, PublicKey, PublisherName, RevokedArtifact, SkillError, SkillId, SkillVersion};

/// Most keys of one role.
const MAX_KEYS: usize = 32;

/// Keys that speak together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryRole {
    /// The keys.
    pub keys: Vec<PublicKey>,
    /// How many of them it takes.
    pub threshold: usize,
}

impl RegistryRole {
    /// One key that speaks alone.
    #[must_use]
    pub fn of_one(key: PublicKey) -> Self {
        Self { keys: vec![key], threshold: 1 }
    }

    fn check(&self, name: &str) -> Result<(), String> {
        let mut ids: Vec<KeyId> = self.keys.iter().map(PublicKey::id).collect();
        ids.sort();
        ids.dedup();
        if ids.len() != self.keys.len() || self.keys.len() > MAX_KEYS {
            return Err(format!("the role `{name}` has a duplicate key, or more than {MAX_KEYS} keys"));
        }
        if self.threshold == 0 || self.threshold > self.keys.len() {
            return Err(format!("the role `{name}` has a threshold of zero or above its number of keys"));
        }
        Ok(())
    }
}

/// Who speaks for a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryRoles {
    /// For the root itself; kept offline.
    pub root: RegistryRole,
    /// For the index.
    pub index: RegistryRole,
    /// For the timestamp; may be kept where it is renewed.
    pub timestamp: RegistryRole,
}

impl RegistryRoles {
    /// All roles in one hand, for a registry of one's own.
    #[must_use]
    pub fn of_one(key: PublicKey) -> Self {
        let role = RegistryRole::of_one(key);
        Self { root: role.clone(), index: role.clone(), timestamp: role }
    }
}

/// The root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Root {
    pub(crate) version: u64,
    pub(crate) expires: Timestamp,
    pub(crate) roles: RegistryRoles,
}

impl Statement for Root {
    const TYPE: &'static str = "application/vnd.palyra.registry-root+json";
    const KIND: &'static str = "the root of a registry";
}

impl Root {
    /// Reads a root and checks that it makes sense; who signed it is asked elsewhere.
    pub(crate) fn unverified(envelope: &Envelope) -> Result<Self, SkillError> {
        let root: Self = envelope.unverified()?;
        let invalid = |reason| SkillError::StatementInvalid { kind: Self::KIND, reason };
        let roles = &root.roles;
        for (role, name) in [(&roles.root, "root"), (&roles.index, "index"), (&roles.timestamp, "timestamp")] {
            role.check(name).map_err(invalid)?;
        }
        Ok(root)
    }
}

/// What the timestamp says about the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CurrentIndex {
    pub(crate) version: u64,
    pub(crate) length: u64,
    pub(crate) sha256: Digest,
}

/// The timestamp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimestampFile {
    pub(crate) version: u64,
    pub(crate) expires: Timestamp,
    pub(crate) index: CurrentIndex,
}

impl Statement for TimestampFile {
    const TYPE: &'static str = "application/vnd.palyra.registry-timestamp+json";
    const KIND: &'static str = "the timestamp of a registry";
}

/// An artifact as a registry lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryArtifact {
    /// The skill.
    pub skill_id: SkillId,
    /// Its version.
    pub version: SkillVersion,
    /// A few words for people.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Who signed it.
    pub publisher: PublisherName,
    /// With which key.
    pub key_id: KeyId,
    /// Bytes of the archive.
    pub length: u64,
    /// Digest of the archive.
    pub sha256: Digest,
    /// Digest of its contents.
    pub content: Digest,
}

/// The index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryIndex {
    /// Which index this is.
    pub version: u64,
    /// Until when it counts.
    pub expires: Timestamp,
    /// The root under which it was signed; an older root must not be all that a client gets to see.
    pub root_version: u64,
    /// What there is.
    pub artifacts: Vec<RegistryArtifact>,
    /// What was taken back.
    #[serde(default)]
    pub revoked: Vec<RevokedArtifact>,
    /// The newest list of revocations of each publisher that has one, as the publisher signed it. The registry passes them on and vouches for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revocations: Vec<Envelope>,
}

impl Statement for RegistryIndex {
    const TYPE: &'static str = "application/vnd.palyra.registry-index+json";
    const KIND: &'static str = "the index of a registry";
}

impl RegistryIndex {
    /// Why an artifact was revoked, if it was.
    #[must_use]
    pub fn revocation_reason(&self, artifact: &RegistryArtifact) -> Option<&str> {
        let revoked = self.revoked.iter().find(|revoked| revoked.content == artifact.content);
        revoked.map(|revoked| revoked.reason.as_str())
    }

    /// An artifact by id and version, or the newest that is not a pre-release; never one that was taken back.
    pub fn find(&self, skill: &SkillId, version: Option<&SkillVersion>) -> Result<&RegistryArtifact, SkillError> {
        let listed = self.artifacts.iter().filter(|artifact| {
            let wanted = match version {
                Some(version) => artifact.version == *version,
                None => artifact.version.0.pre.is_empty(),
            };
            artifact.skill_id == *skill && wanted
        });
        if let (Some(_), Some(reason)) = (version, listed.clone().find_map(|artifact| self.revocation_reason(artifact)))
        {
            return Err(SkillError::ArtifactRevoked { reason: reason.to_owned() });
        }
        let offered = listed.filter(|artifact| self.revocation_reason(artifact).is_none());
        offered.max_by(|left, right| left.version.cmp(&right.version)).ok_or_else(|| {
            let wanted = version.map_or_else(|| skill.to_string(), |version| format!("{skill} {version}"));
            SkillError::RegistryArtifactNotFound { wanted }
        })
    }

    /// The newest artifacts whose id, name or description have this word.
    #[must_use]
    pub fn search(&self, word: &str) -> Vec<&RegistryArtifact> {
        let word = word.to_lowercase();
        let mut found: Vec<&RegistryArtifact> = self
            .artifacts
            .iter()
            .filter(|artifact| {
                let text = format!("{} {} {}", artifact.skill_id, artifact.name, artifact.description).to_lowercase();
                text.contains(&word) && self.find(&artifact.skill_id, None).is_ok_and(|newest| newest == *artifact)
            })
            .collect();
        found.sort_by(|left, right| left.skill_id.cmp(&right.skill_id));
        found
    }
}

/// Paths of a registry's files.
pub(crate) mod paths {
    use palyra_common::Digest;

    pub(crate) const TIMESTAMP: &str = "timestamp.json";

    pub(crate) fn root(version: u64) -> String {
        format!("root/{version}.json")
    }

    pub(crate) fn index(version: u64) -> String {
        format!("index/{version}.json")
    }

    /// Named by digest, never by what an index says: a path out of an index could lead anywhere.
    pub(crate) fn artifact(sha256: &Digest) -> String {
        format!("artifacts/{}.palyra-skill", sha256.to_hex())
    }
}
