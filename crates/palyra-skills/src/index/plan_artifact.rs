//! Decisions about artifacts: install, update, remove.

use palyra_common::{SkillStatus, Timestamp};

use super::{InstalledArtifact, KeyState, Origin, QuarantineCause, SkillEvent, SkillIndex};
use crate::{AuditVerdict, Capabilities, Examined, SkillError, SkillId, SkillManifest};

/// Whether a publisher nobody knows may be remembered from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tofu {
    /// No: only publishers that the operator has trusted.
    Refuse,
    /// Yes: the key is remembered, and another one refused from then on.
    Pin,
}

/// In which state a skill begins that nothing stands against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialStatus {
    /// It may run at once.
    Enabled,
    /// It waits until somebody enables it.
    Disabled,
}

/// How a skill is to be installed.
#[derive(Debug, Clone)]
pub struct InstallRequest {
    /// Who installs it.
    pub by: String,
    /// Whether its publisher may be new.
    pub tofu: Tofu,
    /// Where the archive came from.
    pub origin: Origin,
    /// In which state it begins.
    pub start: InitialStatus,
    /// What is granted; without it [`Capabilities::granted_by_default`] of what the skill asks for.
    pub grants: Option<Capabilities>,
}

/// How a skill is to be updated.
#[derive(Debug, Clone)]
pub struct UpdateRequest {
    /// Who updates it.
    pub by: String,
    /// Where the archive came from.
    pub origin: Origin,
}

/// The version that skills are compared with.
fn palyra_version() -> Result<semver::Version, SkillError> {
    let text = env!("CARGO_PKG_VERSION");
    semver::Version::parse(text).map_err(|error| SkillError::name("a version", text, &error.to_string()))
}

impl SkillIndex {
    /// Decides about a new skill. `now` is kept out of the events; they get their time from the journal.
    pub fn plan_install(
        &self,
        examined: &Examined,
        request: &InstallRequest,
        now: Timestamp,
    ) -> Result<Vec<SkillEvent>, SkillError> {
        let manifest = &examined.manifest;
        let skill_id = manifest.skill_id.clone();
        if let Some(installed) = self.skills.get(&skill_id) {
            let version = installed.artifact.version.clone();
            return Err(SkillError::AlreadyInstalled { skill: skill_id, version });
        }
        self.check_contents(examined)?;
        manifest.check_compat(&palyra_version()?)?;
        check_time(examined, now)?;
        let mut events = self.plan_key(examined, request)?;
        let grants = match &request.grants {
            None => manifest.capabilities.granted_by_default(),
            Some(grants) => match grants.not_within(&manifest.capabilities).into_iter().next() {
                None => grants.clone(),
                Some(what) => return Err(SkillError::GrantRefused { skill: skill_id, what }),
            },
        };
        let (status, reason) = match (self.held.get(&skill_id), examined.report.verdict, request.start) {
            (Some(reason), ..) => (SkillStatus::Quarantined, held(reason)),
            (None, AuditVerdict::Fail, _) => (SkillStatus::Quarantined, examined.report.summary()),
            (None, _, InitialStatus::Enabled) => (SkillStatus::Enabled, "installed".to_owned()),
            (None, _, InitialStatus::Disabled) => (SkillStatus::Disabled, "installed, not enabled yet".to_owned()),
        };
        events.push(SkillEvent::Installed {
            skill_id,
            artifact: artifact_of(examined, &request.origin),
            status,
            reason,
            grants,
            by: request.by.clone(),
        });
        Ok(events)
    }

    /// Whether a version that was installed before still contains the same.
    fn check_contents(&self, examined: &Examined) -> Result<(), SkillError> {
        let (skill, version) = (examined.manifest.skill_id.clone(), examined.manifest.version.clone());
        match self.contents.get(&skill).and_then(|versions| versions.get(&version)) {
            Some(known) if *known != examined.content => Err(SkillError::VersionConflict { skill, version }),
            _ => Ok(()),
        }
    }

    /// Takes in the manifest of an installed skill that was loaded; says something where what is known of its entry points differs.
    pub fn plan_described(&self, manifest: &SkillManifest) -> Result<Vec<SkillEvent>, SkillError> {
        let known = &self.skill(&manifest.skill_id)?.artifact;
        let (tools, hooks) = (tool_ids(manifest), hook_ids(manifest));
        if known.tools == tools && known.hooks == hooks {
            return Ok(Vec::new());
        }
        Ok(vec![SkillEvent::Described { skill_id: manifest.skill_id.clone(), tools, hooks }])
    }

    /// Decides about a newer version of an installed skill.
    pub fn plan_update(
        &self,
        examined: &Examined,
        request: &UpdateRequest,
        now: Timestamp,
    ) -> Result<Vec<SkillEvent>, SkillError> {
        let manifest = &examined.manifest;
        let record = self.skill(&manifest.skill_id)?;
        let (installed, skill) = (&record.artifact, manifest.skill_id.clone());
        if installed.publisher != manifest.publisher {
            let (owner, found) = (installed.publisher.clone(), manifest.publisher.clone());
            return Err(SkillError::PublisherChanged { skill, owner, found });
        }
        let offered = manifest.version.clone();
        if offered < installed.version {
            return Err(SkillError::DowngradeRefused { skill, installed: installed.version.clone(), offered });
        }
        if offered == installed.version {
            return Err(match installed.content == examined.content {
                true => SkillError::AlreadyInstalled { skill, version: offered },
                false => SkillError::VersionConflict { skill, version: offered },
            });
        }
        self.check_contents(examined)?;
        manifest.check_compat(&palyra_version()?)?;
        check_time(examined, now)?;
        self.check_key(examined)?;
        let (status, reason) = match (record.status, examined.report.verdict) {
            _ if record.is_held() => (SkillStatus::Quarantined, record.status_reason.clone()),
            (_, AuditVerdict::Fail) => (SkillStatus::Quarantined, examined.report.summary()),
            (SkillStatus::Quarantined, AuditVerdict::Pass | AuditVerdict::Warn) => match record.quarantine_cause {
                QuarantineCause::Suspicion => (SkillStatus::Quarantined, record.status_reason.clone()),
                QuarantineCause::VersionRevoked { before } => {
                    (before, format!("updated from {}, which was revoked", installed.version))
                }
            },
            (status @ (SkillStatus::Enabled | SkillStatus::Disabled), AuditVerdict::Pass | AuditVerdict::Warn) => {
                (status, record.status_reason.clone())
            }
        };
        Ok(vec![SkillEvent::Updated {
            skill_id: skill,
            artifact: artifact_of(examined, &request.origin),
            status,
            reason,
            by: request.by.clone(),
        }])
    }

    /// Decides about removing a skill.
    pub fn plan_remove(&self, skill: &SkillId, by: &str) -> Result<Vec<SkillEvent>, SkillError> {
        let record = self.skill(skill)?;
        Ok(vec![SkillEvent::Removed {
            skill_id: skill.clone(),
            version: record.artifact.version.clone(),
            by: by.to_owned(),
        }])
    }

    /// Whether the key of an artifact is good, or may be remembered; the event that remembers it.
    fn plan_key(&self, examined: &Examined, request: &InstallRequest) -> Result<Vec<SkillEvent>, SkillError> {
        match (self.check_key(examined), request.tofu) {
            (Ok(()), _) => Ok(Vec::new()),
            (Err(SkillError::PublisherUnknown { publisher, .. }), Tofu::Pin) => Ok(vec![SkillEvent::PublisherPinned {
                publisher,
                key: examined.verified.public_key,
                by: request.by.clone(),
            }]),
            (Err(error), _) => Err(error),
        }
    }

    /// Whether something new is accepted from this publisher under this key.
    fn check_key(&self, examined: &Examined) -> Result<(), SkillError> {
        let (publisher, key) = (&examined.verified.publisher, examined.verified.key_id);
        if let Some(reason) = self.artifact_revoked(publisher, &examined.content) {
            return Err(SkillError::ArtifactRevoked { reason: reason.to_owned() });
        }
        if let Some(reason) = self.key_revoked(publisher, &key) {
            return Err(SkillError::KeyRevoked { key, reason: reason.to_owned() });
        }
        if let Some(owner) = self.owner_of(&key).filter(|owner| *owner != publisher) {
            return Err(SkillError::KeyTaken { key, owner: owner.clone() });
        }
        let Some(record) = self.publishers.get(publisher) else {
            return Err(SkillError::PublisherUnknown { publisher: publisher.clone(), key });
        };
        if let Some(reason) = &record.distrusted {
            return Err(SkillError::PublisherDistrusted { publisher: publisher.clone(), reason: reason.clone() });
        }
        match record.keys.get(&key).map(|key| key.state) {
            Some(KeyState::Active) => Ok(()),
            Some(KeyState::Retired) => Err(SkillError::KeyRetired { publisher: publisher.clone(), key }),
            Some(KeyState::Dropped) | None => {
                let active = record.keys.iter().filter(|(_, key)| key.state == KeyState::Active);
                let known: Vec<String> = active.map(|(id, _)| id.to_string()).collect();
                Err(SkillError::KeyChanged { publisher: publisher.clone(), known: known.join(", "), found: key })
            }
        }
    }
}

/// A day: how far the clock of a signer may be ahead of ours.
const CLOCK_SKEW_MS: i64 = 86_400_000;

fn check_time(examined: &Examined, now: Timestamp) -> Result<(), SkillError> {
    let at = examined.verified.signed_at;
    if at.0 > now.0.saturating_add(CLOCK_SKEW_MS) {
        return Err(SkillError::SignatureInvalid {
            reason: format!("it is dated {}, which is in the future", at.to_rfc3339()),
        });
    }
    Ok(())
}

fn artifact_of(examined: &Examined, origin: &Origin) -> InstalledArtifact {
    InstalledArtifact {
        name: examined.manifest.name.clone(),
        version: examined.manifest.version.clone(),
        publisher: examined.verified.publisher.clone(),
        key_id: examined.verified.key_id,
        archive: examined.archive,
        content: examined.content,
        origin: origin.clone(),
        audit: examined.report.clone(),
        tools: tool_ids(&examined.manifest),
        hooks: hook_ids(&examined.manifest),
    }
}

fn tool_ids(manifest: &SkillManifest) -> Vec<String> {
    manifest.tools.iter().map(|tool| tool.id.clone()).collect()
}

fn hook_ids(manifest: &SkillManifest) -> Vec<String> {
    manifest.hooks.iter().map(|hook| hook.id.clone()).collect()
}

/// Why a skill that comes back stays in quarantine; said once, however often it was removed and installed.
fn held(reason: &str) -> String {
    const REMOVED: &str = "it was removed while in quarantine: ";
    if reason.starts_with(REMOVED) { reason.to_owned() } else { format!("{REMOVED}{reason}") }
}
