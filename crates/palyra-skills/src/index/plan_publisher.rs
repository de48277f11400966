//! Decisions about publishers: trust, its withdrawal, changes of keys, revocations.
//!
//! Whatever takes trust away also puts the skills concerned into quarantine, so that trust that comes back later does not let them run by itself.

use super::{KeyState, Origin, RevocationSource, SkillEvent, SkillIndex};
use crate::statements::{KeyRotation, PublisherStatement, RevocationList, fits};
use crate::{
    Envelope, KeyId, PublicKey, PublisherName, RegistryIndex, RegistryName, RevokedArtifact, RevokedKey, SkillError,
};

const KEY_REVOKED: &str = "the key it was signed with was revoked";

impl SkillIndex {
    /// Decides about trusting a key of a publisher.
    pub fn plan_trust(
        &self,
        publisher: &PublisherName,
        key: &PublicKey,
        by: &str,
    ) -> Result<Vec<SkillEvent>, SkillError> {
        let id = key.id();
        if let Some(reason) = self.key_revoked(publisher, &id) {
            return Err(SkillError::KeyRevoked { key: id, reason: reason.to_owned() });
        }
        if let Some(owner) = self.owner_of(&id).filter(|owner| *owner != publisher) {
            return Err(SkillError::KeyTaken { key: id, owner: owner.clone() });
        }
        let known = self.publishers.get(publisher).filter(|record| record.distrusted.is_none());
        if known.and_then(|record| record.keys.get(&id)).is_some_and(|known| known.state == KeyState::Retired) {
            return Err(SkillError::KeyRetired { publisher: publisher.clone(), key: id });
        }
        Ok(vec![SkillEvent::PublisherTrusted { publisher: publisher.clone(), key: *key, by: by.to_owned() }])
    }

    /// Decides about taking trust in a publisher back, or refusing it from the start.
    pub fn plan_untrust(
        &self,
        publisher: &PublisherName,
        by: &str,
        reason: &str,
    ) -> Result<Vec<SkillEvent>, SkillError> {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err(SkillError::ReasonMissing { what: "revoking trust in a publisher" });
        }
        let mut events = vec![SkillEvent::PublisherUntrusted {
            publisher: publisher.clone(),
            reason: reason.to_owned(),
            by: by.to_owned(),
        }];
        let told = format!("its publisher is no longer trusted: {reason}");
        events.extend(self.quarantine_where(&told, |record| record.artifact.publisher == *publisher));
        Ok(events)
    }

    /// Takes in what a publisher hands out: a change of keys or a list of revocations.
    pub fn plan_statement(&self, envelope: &Envelope) -> Result<Vec<SkillEvent>, SkillError> {
        match PublisherStatement::claimed(envelope)? {
            PublisherStatement::Rotation(_) => self.plan_rotate(envelope),
            PublisherStatement::Revocations(_) => self.plan_revocations(envelope),
        }
    }

    /// Takes in a publisher's change of keys.
    pub fn plan_rotate(&self, envelope: &Envelope) -> Result<Vec<SkillEvent>, SkillError> {
        let rotation = KeyRotation::open(envelope)?;
        let refused = |reason: String| SkillError::RotationRefused { reason };
        let record = self.publisher(&rotation.publisher)?;
        let (from, to) = (rotation.from.id(), rotation.to.id());
        if let Some(reason) = &record.distrusted {
            return Err(SkillError::PublisherDistrusted { publisher: rotation.publisher, reason: reason.clone() });
        }
        for key in [from, to] {
            if let Some(reason) = self.key_revoked(&rotation.publisher, &key) {
                return Err(SkillError::KeyRevoked { key, reason: reason.to_owned() });
            }
        }
        match record.keys.get(&from).map(|key| key.state) {
            Some(KeyState::Active) => {}
            Some(KeyState::Retired) => return Err(refused(format!("the key {from} has already been replaced"))),
            Some(KeyState::Dropped) | None => {
                return Err(refused(format!("{from} is not a key of the publisher `{}`", rotation.publisher)));
            }
        }
        if let Some(owner) = self.owner_of(&to) {
            return Err(SkillError::KeyTaken { key: to, owner: owner.clone() });
        }
        Ok(vec![SkillEvent::KeyRotated { publisher: rotation.publisher, from, to: rotation.to }])
    }

    /// Decides about revoking a key by hand.
    pub fn plan_revoke_key(&self, key: &KeyId, by: &str, reason: &str) -> Result<Vec<SkillEvent>, SkillError> {
        let reason = reason.trim();
        if reason.is_empty() {
            return Err(SkillError::ReasonMissing { what: "revoking a key" });
        }
        let mut events = vec![SkillEvent::KeyRevoked {
            key_id: *key,
            publisher: None,
            reason: reason.to_owned(),
            source: RevocationSource::Operator { by: by.to_owned() },
        }];
        events.extend(self.quarantine_where(KEY_REVOKED, |record| record.artifact.key_id == *key));
        Ok(events)
    }

    /// Takes in a publisher's list of revocations. A publisher speaks about its own keys and artifacts alone: what it lists counts for itself only.
    pub fn plan_revocations(&self, envelope: &Envelope) -> Result<Vec<SkillEvent>, SkillError> {
        let publisher = RevocationList::claimed_publisher(envelope)?;
        let record = self.publisher(&publisher)?;
        // A key that was replaced may still warn of itself; one that was revoked may be in anybody's hands.
        let keys: Vec<PublicKey> = record
            .keys
            .iter()
            .filter(|(id, key)| key.state != KeyState::Dropped && self.key_revoked(&publisher, id).is_none())
            .map(|(_, key)| key.public_key)
            .collect();
        let list = RevocationList::open(envelope, &keys)?;
        if list.number <= record.revocations_seen {
            let reason = format!("list {} was already seen; this is list {}", record.revocations_seen, list.number);
            return Err(SkillError::RevocationRefused { reason });
        }
        let source = RevocationSource::Publisher { name: publisher.clone(), number: list.number };
        let mut events: Vec<SkillEvent> = Vec::new();
        // Lists repeat what the ones before them said.
        for RevokedKey { key_id, reason } in
            list.keys.iter().filter(|key| !record.revoked_keys.contains_key(&key.key_id))
        {
            events.push(SkillEvent::KeyRevoked {
                key_id: *key_id,
                publisher: Some(publisher.clone()),
                reason: reason.clone(),
                source: source.clone(),
            });
        }
        events.extend(self.quarantine_where(KEY_REVOKED, |record| {
            record.artifact.publisher == publisher && list.keys.iter().any(|key| key.key_id == record.artifact.key_id)
        }));
        for artifact in &list.artifacts {
            events.extend(self.revoke_artifact(&publisher, artifact, &source));
        }
        events.push(SkillEvent::RevocationsSeen { publisher, number: list.number });
        Ok(events)
    }

    /// Takes in everything that a visited registry says about what must not run: what it has taken back itself, and the lists of publishers that it passes on. Those
    /// count by their publishers' keys alone; one that is not news, or not signed by anybody known here, changes nothing.
    #[must_use]
    pub fn plan_visit(&self, registry: &RegistryName, index: &RegistryIndex) -> Vec<SkillEvent> {
        let mut events = self.plan_registry_revocations(registry, &index.revoked);
        for list in &index.revocations {
            events.extend(self.plan_revocations(list).unwrap_or_default());
        }
        events
    }

    /// Takes in what a registry has taken back. It speaks about artifacts alone that were installed from it.
    #[must_use]
    pub fn plan_registry_revocations(&self, registry: &RegistryName, artifacts: &[RevokedArtifact]) -> Vec<SkillEvent> {
        let source = RevocationSource::Registry { name: registry.clone() };
        let from_there = Origin::Registry { name: registry.clone() };
        let mut events = Vec::new();
        for artifact in artifacts {
            let installed = self
                .skills
                .values()
                .find(|record| record.artifact.content == artifact.content && record.artifact.origin == from_there);
            if let Some(record) = installed {
                events.extend(self.revoke_artifact(&record.artifact.publisher, artifact, &source));
            }
        }
        events
    }

    fn revoke_artifact(
        &self,
        publisher: &PublisherName,
        artifact: &RevokedArtifact,
        source: &RevocationSource,
    ) -> Vec<SkillEvent> {
        if self.artifact_revoked(publisher, &artifact.content).is_some() {
            return Vec::new();
        }
        let reason = if fits(&artifact.reason) { artifact.reason.as_str() } else { "the reason cannot be displayed" };
        let mut events = vec![SkillEvent::ArtifactRevoked {
            publisher: publisher.clone(),
            content: artifact.content,
            reason: reason.to_owned(),
            source: source.clone(),
        }];
        let told = format!("this version was revoked: {reason}");
        let concerned = self
            .skills
            .values()
            .filter(|record| record.artifact.content == artifact.content && record.artifact.publisher == *publisher);
        events.extend(concerned.filter_map(|record| self.quarantine_revoked_version(&told, record)));
        events
    }
}
