//! Commands about those who sign skills: whom to trust, what they say about their own keys, and keys that count no more.

use palyra_client::api::{
    ChangeSkillParams, ImportStatementParams, ImportStatementResponse, ListPublishersResponse, PublisherView,
    RevokeKeyParams, RevokeKeyResponse, TrustPublisherParams,
};
use palyra_common::{SkillStatus, SkillTrust};
use palyra_skills::{
    Envelope, KeyId, KeyState, PublicKey, PublisherName, PublisherRecord, PublisherStatement, SkillEvent, SkillIndex,
};

use super::refusal::Result;
use super::skills::tell_hooks;
use crate::app::App;
use crate::skills::{Changed, new_status};

pub(super) fn list(app: &App) -> ListPublishersResponse {
    let publishers =
        app.skills.with_index(|index| index.publishers().map(|(name, record)| view(index, name, record)).collect());
    ListPublishersResponse { publishers }
}

/// One publisher.
pub(super) fn named(app: &App, name: &str) -> Result<PublisherView> {
    one(app, &name.parse()?)
}

pub(super) async fn trust(app: &App, by: &str, params: TrustPublisherParams) -> Result<PublisherView> {
    let name: PublisherName = params.publisher.parse()?;
    let key: PublicKey = params.public_key.parse()?;
    app.skills.change(by, |index| index.plan_trust(&name, &key, by)).await?;
    one(app, &name)
}

pub(super) async fn untrust(app: &App, by: &str, name: &str, params: ChangeSkillParams) -> Result<PublisherView> {
    let name: PublisherName = name.parse()?;
    let reason = params.reason.as_deref().unwrap_or("revoked by a person");
    let changed = app.skills.change(by, |index| index.plan_untrust(&name, by, reason)).await?;
    tell_hooks(app, &changed).await;
    one(app, &name)
}

/// Takes in a publisher's own word. Who brought it does not matter: it counts by the keys that are trusted here.
pub(super) async fn import(app: &App, by: &str, params: &ImportStatementParams) -> Result<ImportStatementResponse> {
    let envelope = Envelope::parse(params.statement.as_bytes())?;
    let name = PublisherStatement::claimed(&envelope)?.publisher().clone();
    let changed = app.skills.change(by, |index| index.plan_statement(&envelope)).await?;
    tell_hooks(app, &changed).await;
    imported(app, &name, &changed)
}

/// What a statement came to that was taken in before; `changed` is what was committed of it.
pub(super) fn imported_before(
    app: &App,
    params: &ImportStatementParams,
    changed: &Changed,
) -> Result<ImportStatementResponse> {
    let envelope = Envelope::parse(params.statement.as_bytes())?;
    imported(app, PublisherStatement::claimed(&envelope)?.publisher(), changed)
}

fn imported(app: &App, name: &PublisherName, changed: &Changed) -> Result<ImportStatementResponse> {
    let mut response = ImportStatementResponse {
        publisher: one(app, name)?,
        new_key: None,
        revoked_keys: Vec::new(),
        revoked_archives: Vec::new(),
        quarantined: quarantined(changed),
    };
    for event in &changed.events {
        match event {
            SkillEvent::KeyRotated { to, .. } => response.new_key = Some(to.id().to_string()),
            SkillEvent::KeyRevoked { key_id, .. } => response.revoked_keys.push(key_id.to_string()),
            SkillEvent::ArtifactRevoked { content, .. } => response.revoked_archives.push(*content),
            _ => {}
        }
    }
    Ok(response)
}

/// Revokes a key by the operator's word, which counts whoever uses it.
pub(super) async fn revoke_key(app: &App, by: &str, params: &RevokeKeyParams) -> Result<RevokeKeyResponse> {
    let key: KeyId = params.key_id.parse()?;
    let changed = app.skills.change(by, |index| index.plan_revoke_key(&key, by, &params.reason)).await?;
    tell_hooks(app, &changed).await;
    Ok(key_revoked(&key, &changed))
}

/// What revoking a key came to that was done before; `changed` is what was committed of it.
pub(super) fn key_revoked_before(params: &RevokeKeyParams, changed: &Changed) -> Result<RevokeKeyResponse> {
    Ok(key_revoked(&params.key_id.parse()?, changed))
}

fn key_revoked(key: &KeyId, changed: &Changed) -> RevokeKeyResponse {
    RevokeKeyResponse { key_id: key.to_string(), quarantined: quarantined(changed) }
}

/// The skills that a change put into quarantine, each once.
fn quarantined(changed: &Changed) -> Vec<String> {
    let held = changed.events.iter().filter_map(new_status).filter(|(_, status)| *status == SkillStatus::Quarantined);
    let mut skills: Vec<String> = held.map(|(skill, _)| skill.to_string()).collect();
    skills.sort();
    skills.dedup();
    skills
}

fn one(app: &App, name: &PublisherName) -> Result<PublisherView> {
    Ok(app.skills.with_index(|index| index.publisher(name).map(|record| view(index, name, record)))?)
}

fn view(index: &SkillIndex, name: &PublisherName, record: &PublisherRecord) -> PublisherView {
    let revoked = |id: &KeyId| index.key_revoked(name, id).is_some();
    let current = record.keys.iter().find(|(id, key)| key.state == KeyState::Active && !revoked(id));
    let trust = match &record.distrusted {
        Some(_) => SkillTrust::Quarantine,
        None => current.map_or(SkillTrust::Quarantine, |(_, key)| key.trust),
    };
    // What the publisher took back itself, and what the operator revoked of it.
    let mut revoked_keys: Vec<&KeyId> =
        record.revoked_keys.keys().chain(record.keys.keys().filter(|id| revoked(id))).collect();
    revoked_keys.sort();
    revoked_keys.dedup();
    PublisherView {
        publisher: name.to_string(),
        key_id: current.map(|(id, _)| id.to_string()),
        trust,
        revoked_keys: revoked_keys.into_iter().map(ToString::to_string).collect(),
    }
}
