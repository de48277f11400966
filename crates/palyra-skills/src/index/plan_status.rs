//! Decisions about whether a skill may run, and about what it is given.

use palyra_common::SkillStatus;

use super::{QuarantineCause, SkillEvent, SkillIndex, SkillRecord};
use crate::{AuditReport, Capabilities, SkillError, SkillId, SkillManifest};

/// Who is named where a check and not a person changed something.
const CHECK: &str = "palyra";
/// Longest value of a setting.
const MAX_VALUE: usize = 64 << 10;

/// Why a skill is audited again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditCause {
    /// A person asks; the answer is recorded whatever it is.
    Asked,
    /// It is time, or the skill is loaded; only news are recorded.
    Routine,
}

impl SkillIndex {
    /// Decides about enabling a skill. Out of quarantine, and against an audit, it takes a reason; a publisher that is not trusted cannot be enabled past.
    pub fn plan_enable(&self, skill: &SkillId, by: &str, reason: Option<&str>) -> Result<Vec<SkillEvent>, SkillError> {
        let record = self.skill(skill)?;
        self.check_trust(record)?;
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        let against = record.status == SkillStatus::Quarantined || record.has_open_failures();
        if record.status == SkillStatus::Enabled && !against {
            return Ok(Vec::new());
        }
        let reason = match (reason, against) {
            (Some(reason), _) => reason.to_owned(),
            (None, false) => "enabled".to_owned(),
            (None, true) => return Err(SkillError::ReasonMissing { what: "enabling a quarantined skill" }),
        };
        let accepted = record.artifact.audit.failures();
        Ok(vec![change(record, SkillStatus::Enabled, reason, by, accepted)])
    }

    /// Decides about disabling a skill. What is in quarantine stays there: it is stronger.
    pub fn plan_disable(&self, skill: &SkillId, by: &str, reason: Option<&str>) -> Result<Vec<SkillEvent>, SkillError> {
        let record = self.skill(skill)?;
        match record.status {
            SkillStatus::Enabled => {
                let reason = reason.unwrap_or("disabled by a person").to_owned();
                Ok(vec![change(record, SkillStatus::Disabled, reason, by, Vec::new())])
            }
            SkillStatus::Disabled => Ok(Vec::new()),
            SkillStatus::Quarantined => {
                Err(SkillError::Quarantined { skill: skill.clone(), reason: record.status_reason.clone() })
            }
        }
    }

    /// Decides about putting a skill into quarantine by hand.
    pub fn plan_quarantine(&self, skill: &SkillId, by: &str, reason: &str) -> Result<Vec<SkillEvent>, SkillError> {
        let record = self.skill(skill)?;
        if reason.trim().is_empty() {
            return Err(SkillError::ReasonMissing { what: "quarantine" });
        }
        Ok(vec![change(record, SkillStatus::Quarantined, reason.trim().to_owned(), by, Vec::new())])
    }

    /// Takes in a new audit of an installed skill. What fails anew, beyond what a person has accepted, goes into quarantine.
    pub fn plan_audited(
        &self,
        skill: &SkillId,
        report: &AuditReport,
        cause: AuditCause,
    ) -> Result<Vec<SkillEvent>, SkillError> {
        let record = self.skill(skill)?;
        let mut events = Vec::new();
        if record.artifact.audit != *report || cause == AuditCause::Asked {
            events.push(SkillEvent::AuditRecorded {
                skill_id: skill.clone(),
                version: record.artifact.version.clone(),
                report: report.clone(),
            });
        }
        let fails = report.failures().iter().any(|failure| !record.accepted.contains(failure));
        if fails && !record.is_held() {
            events.push(change(record, SkillStatus::Quarantined, report.summary(), CHECK, Vec::new()));
        }
        Ok(events)
    }

    /// Takes in that an installed skill could not be loaded. If what is on disk is not what was installed, it goes into quarantine.
    pub fn plan_load_failed(&self, skill: &SkillId, error: &SkillError) -> Result<Vec<SkillEvent>, SkillError> {
        let record = self.skill(skill)?;
        if !error.means_tampering() || record.is_held() {
            return Ok(Vec::new());
        }
        Ok(vec![change(record, SkillStatus::Quarantined, error.to_string(), CHECK, Vec::new())])
    }

    /// Decides about a setting; the manifest says which there are.
    pub fn plan_set_config(
        &self,
        manifest: &SkillManifest,
        key: &str,
        value: Option<&str>,
        by: &str,
    ) -> Result<Vec<SkillEvent>, SkillError> {
        let skill = manifest.skill_id.clone();
        self.skill(&skill)?;
        if !manifest.config.iter().any(|setting| setting.key == key)
            || value.is_some_and(|value| value.len() > MAX_VALUE)
        {
            return Err(SkillError::ConfigUnknown { skill, key: crate::error::shown(key) });
        }
        let (key, value) = (key.to_owned(), value.map(str::to_owned));
        Ok(vec![SkillEvent::ConfigSet { skill_id: skill, key, value, by: by.to_owned() }])
    }

    /// Decides about grants; never more than the manifest asks for.
    pub fn plan_set_grants(
        &self,
        manifest: &SkillManifest,
        grants: &Capabilities,
        by: &str,
    ) -> Result<Vec<SkillEvent>, SkillError> {
        let skill = manifest.skill_id.clone();
        self.skill(&skill)?;
        if let Some(what) = grants.not_within(&manifest.capabilities).into_iter().next() {
            return Err(SkillError::GrantRefused { skill, what });
        }
        Ok(vec![SkillEvent::GrantsSet { skill_id: skill, grants: grants.clone(), by: by.to_owned() }])
    }

    /// Puts every skill into quarantine that a condition names and that is not held there yet.
    pub(super) fn quarantine_where(
        &self,
        reason: &str,
        mut concerned: impl FnMut(&SkillRecord) -> bool,
    ) -> Vec<SkillEvent> {
        self.skills
            .values()
            .filter(|record| !record.is_held() && concerned(record))
            .map(|record| change(record, SkillStatus::Quarantined, reason.to_owned(), CHECK, Vec::new()))
            .collect()
    }

    /// Puts the skill into quarantine whose installed version was revoked, and notes the status it had.
    pub(super) fn quarantine_revoked_version(&self, reason: &str, record: &SkillRecord) -> Option<SkillEvent> {
        let before = match record.status {
            SkillStatus::Quarantined => return None,
            before @ (SkillStatus::Enabled | SkillStatus::Disabled) => before,
        };
        let mut event = change(record, SkillStatus::Quarantined, reason.to_owned(), CHECK, Vec::new());
        if let SkillEvent::StatusChanged { cause, .. } = &mut event {
            *cause = QuarantineCause::VersionRevoked { before };
        }
        Some(event)
    }
}

fn change(
    record: &SkillRecord,
    status: SkillStatus,
    reason: String,
    by: &str,
    accepted: Vec<palyra_common::Digest>,
) -> SkillEvent {
    SkillEvent::StatusChanged {
        skill_id: record.skill_id.clone(),
        version: record.artifact.version.clone(),
        status,
        reason,
        by: by.to_owned(),
        accepted,
        cause: QuarantineCause::Suspicion,
    }
}
