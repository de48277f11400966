//! Commands about skills. Who publishes them is another topic.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_agent::HookOccurrence;
use palyra_client::api::{
    CallSkillParams, CallSkillResponse, ChangeSkillParams, ConfigureSkillParams, InstallSkillParams,
    ListSkillsResponse, SkillDetail, SkillFindingView, SkillPowersView, SkillSecretView, SkillView, UploadSkillParams,
    UploadSkillResponse,
};
use palyra_common::{
    Clock as _, Digest, ErrorCategory, HookEvent, SecretRef, SkillStatus, StableErrorEnvelope, SystemClock,
};
use palyra_executors::SECRET_SETTING;
use palyra_journal::FirstCommit;
use palyra_skills::{
    AuditCause, Capabilities, HttpRule, InitialStatus, Origin, SecretUse, SkillEvent, SkillId, SkillIndex,
    SkillManifest, SkillRecord,
};
use serde_json::json;

use super::refusal::{Refusal, Result};
use crate::app::App;
use crate::skills::{Changed, Installing, MAX_ARCHIVE, MAX_PIECE, ModuleSource, UploadError, new_status};

pub(super) fn list(app: &App) -> ListSkillsResponse {
    let skills = app.skills.with_index(|index| index.skills().map(|skill| view(index, skill)).collect());
    ListSkillsResponse { skills }
}

pub(super) async fn get(app: &App, id: &str) -> Result<SkillDetail> {
    detail(app, &id.parse()?).await
}

/// One skill, in the words of lists.
pub(super) fn one(app: &App, id: &str) -> Result<SkillView> {
    let skill_id: SkillId = id.parse()?;
    Ok(app.skills.with_index(|index| index.skill(&skill_id).map(|skill| view(index, skill)))?)
}

/// Takes a piece of an archive.
pub(super) async fn upload(app: &App, params: UploadSkillParams) -> Result<UploadSkillResponse> {
    if params.size == 0 || params.size > MAX_ARCHIVE {
        return Err(Refusal::field("size", format!("an archive must have 1 to {MAX_ARCHIVE} bytes")));
    }
    let data = STANDARD
        .decode(&params.data)
        .map_err(|error| Refusal::field("data", format!("it is not valid base64: {error}")))?;
    if data.len() > MAX_PIECE {
        return Err(Refusal::field("data", format!("a chunk may have at most {MAX_PIECE} bytes")));
    }
    let skills = std::sync::Arc::clone(&app.skills);
    let taken =
        tokio::task::spawn_blocking(move || skills.uploads.take(params.digest, params.size, params.offset, &data));
    let (received, complete) = taken.await.map_err(|error| Refusal::internal(error.to_string()))?.map_err(|error| {
        let category = match error {
            UploadError::File(_) => ErrorCategory::Availability,
            UploadError::Gap { .. } => ErrorCategory::Conflict,
            UploadError::TooLong | UploadError::OtherDigest => ErrorCategory::Validation,
        };
        Refusal::from(
            StableErrorEnvelope::new("skill_upload_refused", category, error.to_string())
                .hint("upload the archive again from its beginning"),
        )
    })?;
    Ok(UploadSkillResponse { received, complete })
}

/// Installs a skill, or another version of it.
pub(super) async fn install(app: &App, by: &str, params: InstallSkillParams) -> Result<SkillDetail> {
    let (bytes, origin) = match (params.archive, &params.from_registry) {
        (Some(digest), None) => (uploaded(app, digest).await?, Origin::File { name: digest.to_string() }),
        (None, Some(wanted)) => {
            // What a visit commits is the registry's doing and holds whether or not anything is installed; it does not count as a part of this command.
            let (found, changed) = FirstCommit::exempt(app.skills.from_registry(wanted, by)).await?;
            // What the registry takes back is taken back, whatever becomes of what was wanted from it.
            tell_hooks(app, &changed).await;
            found?
        }
        _ => return Err(Refusal::field("archive", "give either an uploaded `archive` or `from_registry`")),
    };
    let start = if params.keep_disabled { InitialStatus::Disabled } else { InitialStatus::Enabled };
    let installing = Installing { by: by.to_owned(), origin, accept_key: params.accept_key, start };
    let (skill_id, changed) = app.skills.install(bytes, installing).await?;
    if let Some(digest) = params.archive {
        app.skills.uploads.forget(digest);
    }
    tell_hooks(app, &changed).await;
    detail(app, &skill_id).await
}

async fn uploaded(app: &App, digest: Digest) -> Result<Vec<u8>> {
    app.skills.uploaded(digest).await?.ok_or_else(|| {
        let message = format!("no archive {digest} was uploaded");
        StableErrorEnvelope::new("skill_upload_missing", ErrorCategory::NotFound, message)
            .hint("upload it with `skill.upload` first; `palyra skills install FILE` does both")
            .into()
    })
}

/// Removes a skill; the answer is what it was.
pub(super) async fn remove(app: &App, by: &str, id: &str) -> Result<SkillView> {
    let skill_id: SkillId = id.parse()?;
    let before = one(app, id)?;
    app.skills.change(by, |index| index.plan_remove(&skill_id, by)).await?;
    Ok(before)
}

/// What becomes of a skill.
#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    Enabled,
    Disabled,
    Quarantined,
}

pub(super) async fn switch(app: &App, by: &str, id: &str, to: To, params: ChangeSkillParams) -> Result<SkillView> {
    let skill_id: SkillId = id.parse()?;
    let reason = params.reason.as_deref();
    let changed = app
        .skills
        .change(by, |index| match to {
            To::Enabled => index.plan_enable(&skill_id, by, reason),
            To::Disabled => index.plan_disable(&skill_id, by, reason),
            To::Quarantined => index.plan_quarantine(&skill_id, by, reason.unwrap_or("quarantined by a person")),
        })
        .await?;
    tell_hooks(app, &changed).await;
    one(app, id)
}

pub(super) async fn audit(app: &App, by: &str, id: &str) -> Result<SkillDetail> {
    let skill_id: SkillId = id.parse()?;
    let changed = app.skills.audit(&skill_id, by, AuditCause::Asked).await?;
    tell_hooks(app, &changed).await;
    detail(app, &skill_id).await
}

/// Sets what a skill may use; never more than its manifest asks for.
pub(super) async fn configure(app: &App, by: &str, id: &str, params: ConfigureSkillParams) -> Result<SkillDetail> {
    let skill_id: SkillId = id.parse()?;
    let manifest = manifest_of(app, &skill_id).await?;
    for reference in params.secrets.values().filter(|text| !text.is_empty()) {
        // The text is not repeated: it may be a pasted secret.
        reference.parse::<SecretRef>().map_err(|error| Refusal::field("secrets", error.to_string()))?;
    }
    app.skills
        .change(by, |index| {
            let mut events = Vec::new();
            for (key, value) in &params.config {
                let value = (!value.is_empty()).then_some(value.as_str());
                events.extend(index.plan_set_config(&manifest, key, value, by)?);
            }
            for (name, reference) in &params.secrets {
                if !manifest.capabilities.secrets.iter().any(|secret| secret.name == *name) {
                    return Err(palyra_skills::SkillError::GrantRefused {
                        skill: skill_id.clone(),
                        what: format!("the secret `{name}`"),
                    });
                }
                events.push(SkillEvent::ConfigSet {
                    skill_id: skill_id.clone(),
                    key: format!("{SECRET_SETTING}{name}"),
                    value: (!reference.is_empty()).then(|| reference.clone()),
                    by: by.to_owned(),
                });
            }
            let grants = narrowed(&index.skill(&skill_id)?.grants, &manifest.capabilities, &params)?;
            if let Some(grants) = grants {
                events.extend(index.plan_set_grants(&manifest, &grants, by)?);
            }
            Ok(events)
        })
        .await?;
    detail(app, &skill_id).await
}

/// The grants that the parameters ask for; `None` if they are silent about grants.
fn narrowed(
    now: &Capabilities,
    asked: &Capabilities,
    params: &ConfigureSkillParams,
) -> std::result::Result<Option<Capabilities>, palyra_skills::SkillError> {
    if params.http.is_none() && params.channels.is_none() && params.reveal.is_none() {
        return Ok(None);
    }
    let mut grants = now.clone();
    if let Some(rules) = &params.http {
        grants.http = rules.iter().map(|rule| rule.parse::<HttpRule>()).collect::<std::result::Result<_, _>>()?;
    }
    if let Some(channels) = &params.channels {
        grants.channels.clone_from(channels);
    }
    if let Some(reveal) = &params.reveal {
        grants.secrets.clone_from(&asked.secrets);
        for secret in &mut grants.secrets {
            secret.usage = if reveal.contains(&secret.name) { SecretUse::Reveal } else { SecretUse::Bind };
        }
    }
    Ok(Some(grants))
}

pub(super) async fn call(app: &App, id: &str, params: CallSkillParams) -> Result<CallSkillResponse> {
    let source = match params.module {
        None => ModuleSource::Installed,
        Some(module) => ModuleSource::Inline(
            STANDARD
                .decode(module)
                .map_err(|error| Refusal::field("module", format!("it is not valid base64: {error}")))?,
        ),
    };
    app.skills.run_wasm_plugin(&id.parse()?, &params.tool, params.input, source).await
}

/// Tells hooks what became of skills. What they answer changes nothing.
pub(crate) async fn tell_hooks(app: &App, changed: &Changed) {
    for (skill_id, status) in changed.events.iter().filter_map(new_status) {
        let event = match status {
            SkillStatus::Enabled => HookEvent::SkillEnabled,
            SkillStatus::Disabled => HookEvent::SkillDisabled,
            SkillStatus::Quarantined => HookEvent::SkillQuarantined,
        };
        let payload = json!({"skill_id": skill_id.as_str(), "status": status});
        let occurrence = HookOccurrence::new(event, SystemClock.now(), payload);
        if let Err(error) = app.engine.dispatch_event(occurrence).await {
            tracing::warn!(%error, "hooks could not be notified of a skill");
        }
    }
}

async fn manifest_of(app: &App, skill_id: &SkillId) -> Result<SkillManifest> {
    let record = app.skills.with_index(|index| index.skill(skill_id).cloned())?;
    let skills = std::sync::Arc::clone(&app.skills);
    let loaded = tokio::task::spawn_blocking(move || skills.load(&record)).await;
    let loaded = loaded.map_err(|error| Refusal::internal(error.to_string()))??;
    Ok(loaded.archive.manifest().clone())
}

async fn detail(app: &App, skill_id: &SkillId) -> Result<SkillDetail> {
    let manifest = manifest_of(app, skill_id).await;
    let (record, skill) =
        app.skills.with_index(|index| index.skill(skill_id).map(|skill| (skill.clone(), view(index, skill))))?;
    let report = &record.artifact.audit;
    Ok(SkillDetail {
        // A skill whose archive does not read any more still has to be looked at.
        capabilities: manifest.map(|manifest| powers(&manifest.capabilities, &record)).unwrap_or_default(),
        granted: powers(&record.grants, &record),
        config: record.config.iter().filter(|(key, _)| !key.starts_with(SECRET_SETTING)).map(pair).collect(),
        findings: report
            .findings
            .iter()
            .map(|finding| SkillFindingView {
                code: finding.code.to_string(),
                severity: finding.severity.to_string(),
                message: finding.message.clone(),
            })
            .collect(),
        audited_at: Some(record.audited_at),
        skill,
    })
}

fn pair((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}

fn powers(capabilities: &Capabilities, record: &SkillRecord) -> SkillPowersView {
    SkillPowersView {
        http: capabilities.http.iter().map(ToString::to_string).collect(),
        secrets: capabilities
            .secrets
            .iter()
            .map(|secret| SkillSecretView {
                name: secret.name.clone(),
                reveal: secret.usage == SecretUse::Reveal,
                reference: record.config.get(&format!("{SECRET_SETTING}{}", secret.name)).cloned(),
            })
            .collect(),
        storage: capabilities.storage.iter().map(|space| space.name.clone()).collect(),
        channels: capabilities.channels.clone(),
    }
}

fn view(index: &SkillIndex, record: &SkillRecord) -> SkillView {
    let artifact = &record.artifact;
    SkillView {
        skill_id: record.skill_id.to_string(),
        name: artifact.name.clone(),
        version: artifact.version.to_string(),
        publisher: artifact.publisher.to_string(),
        key_id: artifact.key_id.to_string(),
        trust: index.trust(record),
        status: record.status,
        reason: record.status_reason.clone(),
        audit: artifact.audit.verdict.to_string(),
        digest: artifact.archive,
        registry: match &artifact.origin {
            Origin::Registry { name } => Some(name.to_string()),
            Origin::File { .. } => None,
        },
        installed_at: record.installed_at,
        tools: artifact.tools.iter().map(|tool| format!("{}.{tool}", record.skill_id)).collect(),
        hooks: artifact.hooks.clone(),
    }
}
