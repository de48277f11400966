//! The index of skills and publishers: the fold of their events, and the decisions about them.
//!
//! Two questions are kept apart. *Trust* is about who made a skill and follows from keys alone ([`SkillIndex::trust`]); *status* is about whether it may run
//! and changes by events alone. A skill runs only where both agree ([`SkillIndex::runnable`]).
//!
//! A decision never changes the index: `plan_…` returns the events that carry it out, the caller journals them and applies them then. INVARIANT: what a check has
//! put into quarantine leaves it only by a person's `plan_enable` with a reason, whatever happens in between: updates keep it there, and a skill that was removed
//! in quarantine is in quarantine when it comes back. The one exception is a skill whose version was revoked and against which nothing else is held
//! ([`QuarantineCause::VersionRevoked`]): an update to a version that is not revoked and passes its audit gives it the status back that it had.

mod event;
mod plan_artifact;
mod plan_publisher;
mod plan_status;

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::{Digest, SkillStatus, SkillTrust, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{Capabilities, KeyId, PublicKey, PublisherName, SkillError, SkillId, SkillVersion};

pub use event::{InstalledArtifact, Origin, QuarantineCause, RevocationSource, SkillEvent};
pub use plan_artifact::{InitialStatus, InstallRequest, Tofu, UpdateRequest};
pub use plan_status::AuditCause;

/// Whether anything new is accepted under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// Yes.
    Active,
    /// No, it was replaced; what it signed before and is installed stays.
    Retired,
    /// No, and what it signed does not run either: trust in the publisher was taken back and given anew to another key.
    Dropped,
}

/// A key of a publisher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The key.
    pub public_key: PublicKey,
    /// Trusted by the operator, or on first use.
    pub trust: SkillTrust,
    /// Whether anything new is accepted under it.
    pub state: KeyState,
    /// Since when it is known.
    pub since: Timestamp,
}

/// A publisher.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PublisherRecord {
    /// Its keys.
    pub keys: BTreeMap<KeyId, KeyRecord>,
    /// Why trust was taken back, if it was.
    pub distrusted: Option<String>,
    /// The number of the last list of revocations.
    pub revocations_seen: u64,
    /// Keys it has revoked itself, with the reason; known ones and others.
    pub revoked_keys: BTreeMap<KeyId, String>,
    /// Artifacts of it that were revoked, by the digest of their contents, with the reason.
    pub revoked_artifacts: BTreeMap<Digest, String>,
}

/// An installed skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRecord {
    /// The id.
    pub skill_id: SkillId,
    /// What is installed.
    pub artifact: InstalledArtifact,
    /// Whether it may run.
    pub status: SkillStatus,
    /// Why it has this status.
    pub status_reason: String,
    /// Who gave it this status.
    pub status_by: String,
    /// Why it is in quarantine, where it is.
    #[serde(default)]
    pub quarantine_cause: QuarantineCause,
    /// What the operator grants of what it asks for.
    pub grants: Capabilities,
    /// Settings that differ from their defaults.
    pub config: BTreeMap<String, String>,
    /// What the audit held against it and a person accepted.
    pub accepted: BTreeSet<Digest>,
    /// When it was first installed.
    pub installed_at: Timestamp,
    /// When it was last audited.
    pub audited_at: Timestamp,
    /// When anything about it last changed.
    pub changed_at: Timestamp,
}

impl SkillRecord {
    /// Whether the last audit holds something against it that nobody has accepted.
    #[must_use]
    pub fn has_open_failures(&self) -> bool {
        self.artifact.audit.failures().iter().any(|failure| !self.accepted.contains(failure))
    }

    /// Whether it is in quarantine until a person lets it out.
    fn is_held(&self) -> bool {
        self.status == SkillStatus::Quarantined && self.quarantine_cause == QuarantineCause::Suspicion
    }
}

/// The index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SkillIndex {
    skills: BTreeMap<SkillId, SkillRecord>,
    publishers: BTreeMap<PublisherName, PublisherRecord>,
    /// Keys that the operator has revoked, with the reason.
    revoked_keys: BTreeMap<KeyId, String>,
    /// Skills that were removed while in quarantine, with the reason.
    held: BTreeMap<SkillId, String>,
    /// What every version that was ever installed contains: a version stays what it was, also after it was removed.
    #[serde(default)]
    contents: BTreeMap<SkillId, BTreeMap<SkillVersion, Digest>>,
}

impl SkillIndex {
    /// All skills by id.
    pub fn skills(&self) -> impl Iterator<Item = &SkillRecord> {
        self.skills.values()
    }

    /// One skill.
    pub fn skill(&self, skill: &SkillId) -> Result<&SkillRecord, SkillError> {
        self.skills.get(skill).ok_or_else(|| SkillError::NotFound { skill: skill.clone() })
    }

    /// All publishers by name.
    pub fn publishers(&self) -> impl Iterator<Item = (&PublisherName, &PublisherRecord)> {
        self.publishers.iter()
    }

    /// One publisher.
    pub fn publisher(&self, publisher: &PublisherName) -> Result<&PublisherRecord, SkillError> {
        self.publishers.get(publisher).ok_or_else(|| SkillError::PublisherNotFound { publisher: publisher.clone() })
    }

    /// Why a publisher's key was revoked, if it was. What one publisher revokes says nothing about another's keys.
    #[must_use]
    pub fn key_revoked(&self, publisher: &PublisherName, key: &KeyId) -> Option<&str> {
        let own = || self.publishers.get(publisher)?.revoked_keys.get(key);
        self.revoked_keys.get(key).or_else(own).map(String::as_str)
    }

    /// Why an artifact was revoked, if it was.
    #[must_use]
    pub fn artifact_revoked(&self, publisher: &PublisherName, content: &Digest) -> Option<&str> {
        self.publishers.get(publisher)?.revoked_artifacts.get(content).map(String::as_str)
    }

    /// How far the key behind a publisher's artifact is trusted now.
    #[must_use]
    pub fn key_trust(&self, publisher: &PublisherName, key: &KeyId) -> SkillTrust {
        match self.publishers.get(publisher) {
            Some(record) if record.distrusted.is_none() && self.key_revoked(publisher, key).is_none() => {
                let known = record.keys.get(key).filter(|key| key.state != KeyState::Dropped);
                known.map_or(SkillTrust::Quarantine, |key| key.trust)
            }
            _ => SkillTrust::Quarantine,
        }
    }

    /// How far an installed skill is trusted now.
    #[must_use]
    pub fn trust(&self, record: &SkillRecord) -> SkillTrust {
        let InstalledArtifact { publisher, key_id, content, .. } = &record.artifact;
        match self.artifact_revoked(publisher, content) {
            Some(_) => SkillTrust::Quarantine,
            None => self.key_trust(publisher, key_id),
        }
    }

    /// The skill, if it may run; otherwise why not.
    pub fn runnable(&self, skill: &SkillId) -> Result<&SkillRecord, SkillError> {
        let record = self.skill(skill)?;
        self.check_trust(record)?;
        match record.status {
            SkillStatus::Enabled => Ok(record),
            SkillStatus::Disabled => {
                Err(SkillError::Disabled { skill: skill.clone(), reason: record.status_reason.clone() })
            }
            SkillStatus::Quarantined => {
                Err(SkillError::Quarantined { skill: skill.clone(), reason: record.status_reason.clone() })
            }
        }
    }

    /// Whether keys and revocations let a skill run.
    fn check_trust(&self, record: &SkillRecord) -> Result<(), SkillError> {
        let artifact = &record.artifact;
        if let Some(reason) = self.artifact_revoked(&artifact.publisher, &artifact.content) {
            return Err(SkillError::ArtifactRevoked { reason: reason.to_owned() });
        }
        if let Some(reason) = self.key_revoked(&artifact.publisher, &artifact.key_id) {
            return Err(SkillError::KeyRevoked { key: artifact.key_id, reason: reason.to_owned() });
        }
        if let Some(reason) = self.publishers.get(&artifact.publisher).and_then(|record| record.distrusted.as_ref()) {
            return Err(SkillError::PublisherDistrusted {
                publisher: artifact.publisher.clone(),
                reason: reason.clone(),
            });
        }
        match self.trust(record) {
            SkillTrust::Quarantine => {
                Err(SkillError::PublisherUnknown { publisher: artifact.publisher.clone(), key: artifact.key_id })
            }
            SkillTrust::Tofu | SkillTrust::Trusted => Ok(()),
        }
    }

    /// The publisher that a key stands for.
    fn owner_of(&self, key: &KeyId) -> Option<&PublisherName> {
        self.publishers.iter().find(|(_, record)| record.keys.contains_key(key)).map(|(name, _)| name)
    }

    /// Takes an event in. Never fails: an event about something unknown changes nothing.
    pub fn apply(&mut self, event: &SkillEvent, at: Timestamp) {
        match event {
            SkillEvent::Installed { skill_id, artifact, status, reason, grants, by } => {
                let record = SkillRecord {
                    skill_id: skill_id.clone(),
                    artifact: artifact.clone(),
                    status: *status,
                    status_reason: reason.clone(),
                    status_by: by.clone(),
                    quarantine_cause: QuarantineCause::Suspicion,
                    grants: grants.clone(),
                    config: BTreeMap::new(),
                    accepted: BTreeSet::new(),
                    installed_at: at,
                    audited_at: at,
                    changed_at: at,
                };
                self.remember_contents(skill_id, artifact);
                self.skills.insert(skill_id.clone(), record);
            }
            SkillEvent::Updated { skill_id, artifact, status, reason, by } => {
                self.remember_contents(skill_id, artifact);
                self.change(skill_id, at, |record| {
                    record.artifact = artifact.clone();
                    record.status = *status;
                    record.status_reason.clone_from(reason);
                    record.status_by.clone_from(by);
                    record.quarantine_cause = QuarantineCause::Suspicion;
                    record.accepted.clear();
                    record.audited_at = at;
                });
            }
            SkillEvent::Removed { skill_id, .. } => {
                if let Some(record) = self.skills.remove(skill_id)
                    && record.is_held()
                {
                    self.held.insert(skill_id.clone(), record.status_reason);
                }
            }
            SkillEvent::StatusChanged { skill_id, status, reason, by, accepted, cause, .. } => {
                if *status == SkillStatus::Enabled {
                    self.held.remove(skill_id);
                }
                self.change(skill_id, at, |record| {
                    // One plan may hold several reasons for quarantine; the strongest counts, in whichever order they come.
                    let stays_held = record.is_held() && *status == SkillStatus::Quarantined;
                    record.quarantine_cause = if stays_held { QuarantineCause::Suspicion } else { *cause };
                    record.status = *status;
                    record.status_reason.clone_from(reason);
                    record.status_by.clone_from(by);
                    record.accepted.extend(accepted.iter().copied());
                });
            }
            SkillEvent::AuditRecorded { skill_id, report, .. } => {
                self.change(skill_id, at, |record| {
                    record.artifact.audit = report.clone();
                    record.audited_at = at;
                });
            }
            SkillEvent::Described { skill_id, tools, hooks } => self.change(skill_id, at, |record| {
                record.artifact.tools.clone_from(tools);
                record.artifact.hooks.clone_from(hooks);
            }),
            SkillEvent::ConfigSet { skill_id, key, value, .. } => self.change(skill_id, at, |record| {
                match value {
                    Some(value) => record.config.insert(key.clone(), value.clone()),
                    None => record.config.remove(key),
                };
            }),
            SkillEvent::GrantsSet { skill_id, grants, .. } => {
                self.change(skill_id, at, |record| record.grants = grants.clone());
            }
            SkillEvent::PublisherTrusted { .. }
            | SkillEvent::PublisherPinned { .. }
            | SkillEvent::PublisherUntrusted { .. }
            | SkillEvent::KeyRotated { .. }
            | SkillEvent::KeyRevoked { .. }
            | SkillEvent::ArtifactRevoked { .. }
            | SkillEvent::RevocationsSeen { .. } => self.apply_to_publishers(event, at),
        }
    }

    fn remember_contents(&mut self, skill: &SkillId, artifact: &InstalledArtifact) {
        let versions = self.contents.entry(skill.clone()).or_default();
        // The first contents count: later ones under the same number are what is refused.
        versions.entry(artifact.version.clone()).or_insert(artifact.content);
    }

    fn change(&mut self, skill: &SkillId, at: Timestamp, change: impl FnOnce(&mut SkillRecord)) {
        if let Some(record) = self.skills.get_mut(skill) {
            change(record);
            record.changed_at = at;
        }
    }

    fn apply_to_publishers(&mut self, event: &SkillEvent, at: Timestamp) {
        let key_record =
            |key: &PublicKey, trust| KeyRecord { public_key: *key, trust, state: KeyState::Active, since: at };
        match event {
            SkillEvent::PublisherTrusted { publisher, key, .. } => {
                let record = self.publishers.entry(publisher.clone()).or_default();
                // Trust that was taken back comes back for the one key that is named, not for all that were known before.
                if record.distrusted.take().is_some() {
                    record.keys.values_mut().for_each(|key| key.state = KeyState::Dropped);
                }
                record.keys.insert(key.id(), key_record(key, SkillTrust::Trusted));
            }
            SkillEvent::PublisherPinned { publisher, key, .. } => {
                let record = self.publishers.entry(publisher.clone()).or_default();
                if record.distrusted.is_none() && record.keys.is_empty() {
                    record.keys.insert(key.id(), key_record(key, SkillTrust::Tofu));
                }
            }
            SkillEvent::PublisherUntrusted { publisher, reason, .. } => {
                self.publishers.entry(publisher.clone()).or_default().distrusted = Some(reason.clone());
            }
            SkillEvent::KeyRotated { publisher, from, to } => {
                if let Some(record) = self.publishers.get_mut(publisher)
                    && let Some(old) = record.keys.get_mut(from)
                {
                    old.state = KeyState::Retired;
                    let trust = old.trust;
                    record.keys.insert(to.id(), key_record(to, trust));
                }
            }
            SkillEvent::KeyRevoked { key_id, publisher, reason, .. } => {
                let revoked = match publisher {
                    None => &mut self.revoked_keys,
                    Some(publisher) => &mut self.publishers.entry(publisher.clone()).or_default().revoked_keys,
                };
                revoked.entry(*key_id).or_insert_with(|| reason.clone());
            }
            SkillEvent::ArtifactRevoked { publisher, content, reason, .. } => {
                let revoked = &mut self.publishers.entry(publisher.clone()).or_default().revoked_artifacts;
                revoked.entry(*content).or_insert_with(|| reason.clone());
            }
            SkillEvent::RevocationsSeen { publisher, number } => {
                if let Some(record) = self.publishers.get_mut(publisher) {
                    record.revocations_seen = record.revocations_seen.max(*number);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
