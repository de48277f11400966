//! Changes: planned from the index, committed to the journal, applied, bound anew.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use palyra_common::{Digest, ErrorCategory, SkillStatus, StableErrorEnvelope};
use palyra_plugins_runtime::{CallOptions, Plugin, PluginKind};
use palyra_skills::{
    AuditVerdict, DescribedTool, InitialStatus, InstallRequest, Origin, SkillError, SkillEvent, SkillId, SkillIndex,
    SkillManifest, Tofu, UpdateRequest, audit_described_tools, examine,
};

use super::{Skills, bind, log};
use crate::dispatch::{Refusal, Result};

/// How an archive is to be installed.
pub(crate) struct Installing {
    pub(crate) by: String,
    pub(crate) origin: Origin,
    /// The key that a person looked at and accepts, where its publisher is new.
    pub(crate) accept_key: Option<String>,
    pub(crate) start: InitialStatus,
}

/// What a change came to.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) events: Vec<SkillEvent>,
}

impl Skills {
    /// Plans a change and carries it out; nobody else changes anything meanwhile.
    pub(crate) async fn change(
        self: &Arc<Self>,
        by: &str,
        plan: impl FnOnce(&SkillIndex) -> std::result::Result<Vec<SkillEvent>, SkillError>,
    ) -> Result<Changed> {
        let _turn = self.changing.lock().await;
        let events = self.with_index(plan)?;
        self.commit(by, events).await
    }

    /// Installs an archive, or updates the skill that it is a newer version of.
    pub(crate) async fn install(
        self: &Arc<Self>,
        bytes: Vec<u8>,
        installing: Installing,
    ) -> Result<(SkillId, Changed)> {
        let _turn = self.changing.lock().await;
        let skills = Arc::clone(self);
        let read = move || {
            let archive = skills.store.put(&bytes)?;
            let examined = examine(&archive, &skills.policy.audit())?;
            // Compiled before anything is journaled: a module that cannot be loaded is no skill.
            let runtime = skills.runtime()?.runtime;
            let mut modules = Vec::new();
            for (path, wasm) in archive.modules() {
                modules.push((path.to_owned(), runtime.prepare(wasm)?));
            }
            Ok::<_, Refusal>((archive.manifest().clone(), examined, modules))
        };
        let (manifest, examined, modules) = blocking(read).await??;
        self.check_descriptions(&manifest, &modules).await?;
        let skill_id = manifest.skill_id;
        let now = self.clock.now();
        let Installing { by, origin, accept_key, start } = installing;
        let key = examined.verified().key_id.to_string();
        let tofu = if self.trust_on_first_use && accept_key.as_deref() == Some(key.as_str()) {
            Tofu::Pin
        } else {
            Tofu::Refuse
        };
        let planned = self.with_index(|index| match index.skill(&skill_id) {
            Ok(_) => index.plan_update(&examined, &UpdateRequest { by: by.clone(), origin }, now),
            Err(_) => {
                let request = InstallRequest { by: by.clone(), tofu, origin, start, grants: None };
                index.plan_install(&examined, &request, now)
            }
        });
        let events = match planned {
            Ok(events) => events,
            Err(error) => {
                self.sweep();
                return Err(error.into());
            }
        };
        Ok((skill_id, self.commit(&by, events).await?))
    }

    /// Asks every module which tools it has. One that does not know those of its manifest is another skill's, or a broken one.
    async fn check_descriptions(&self, manifest: &SkillManifest, modules: &[(String, Arc<Plugin>)]) -> Result<()> {
        let runtime = self.runtime()?.runtime;
        for (path, plugin) in modules.iter().filter(|(_, plugin)| plugin.kind() == PluginKind::Component) {
            if !plugin.exports_tool() {
                continue;
            }
            let options = CallOptions { limits: self.policy.limits(manifest.quotas), ..CallOptions::default() };
            let described = runtime.describe(plugin, options).await?.value;
            let described: Vec<DescribedTool> = described
                .into_iter()
                .map(|tool| DescribedTool {
                    id: tool.id,
                    description: tool.description,
                    input_schema: tool.input_schema,
                    output_schema: tool.output_schema,
                })
                .collect();
            let report = audit_described_tools(manifest, path, &described);
            if report.verdict == AuditVerdict::Fail {
                return Err(StableErrorEnvelope::new(
                    "skill_module_mismatch",
                    ErrorCategory::Validation,
                    format!("the manifest and the module do not belong together: {}", report.summary()),
                )
                .hint("build and pack the skill again")
                .into());
            }
        }
        Ok(())
    }

    /// Audits an installed skill again, and puts it into quarantine if it fails or was tampered with.
    pub(crate) async fn audit(self: &Arc<Self>, skill_id: &SkillId, by: &str) -> Result<Changed> {
        let record = self.with_index(|index| index.skill(skill_id).cloned())?;
        let (skills, looked_at) = (Arc::clone(self), record.clone());
        let loaded = blocking(move || skills.load(&looked_at)).await?;
        self.change(by, |index| {
            // It may have been replaced while it was looked at; then there is nothing to say about it.
            if index.skill(skill_id)?.artifact.archive != record.artifact.archive {
                return Ok(Vec::new());
            }
            match &loaded {
                Ok(loaded) => index.plan_audited(skill_id, loaded.examined.report()),
                Err(error) => index.plan_load_failed(skill_id, error),
            }
        })
        .await
    }

    /// Commits events; the caller holds the turn.
    async fn commit(self: &Arc<Self>, by: &str, events: Vec<SkillEvent>) -> Result<Changed> {
        if events.is_empty() {
            return Ok(Changed { events });
        }
        let at = self.clock.now();
        let records: std::result::Result<Vec<_>, _> = events.iter().map(|event| log::record(at, by, event)).collect();
        let records = records.map_err(|error| Refusal::internal(error.to_string()))?;
        self.journal.append(records).await?;
        {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            events.iter().for_each(|event| index.apply(event, at));
        }
        let mut concerned: Vec<SkillId> = events.iter().filter_map(|event| event.skill_id().cloned()).collect();
        concerned.dedup();
        for event in &events {
            if let SkillEvent::Removed { skill_id, .. } = event {
                self.forget(skill_id).await;
            }
        }
        for skill_id in &concerned {
            self.rebind(skill_id).await;
        }
        Ok(Changed { events })
    }

    /// Binds everything that may run.
    pub(super) async fn bind_all(self: &Arc<Self>) {
        let _turn = self.changing.lock().await;
        let all: Vec<SkillId> = self.with_index(|index| index.skills().map(|skill| skill.skill_id.clone()).collect());
        for skill_id in all {
            self.rebind(&skill_id).await;
        }
    }

    /// Binds a skill as it is now; one that may not run, or cannot, is bound to nothing.
    async fn rebind(self: &Arc<Self>, skill_id: &SkillId) {
        let runnable = self.with_index(|index| index.runnable(skill_id).cloned());
        let bound = match runnable {
            Err(_) => None,
            Ok(record) => {
                let skills = Arc::clone(self);
                let made = blocking(move || {
                    let runtime = skills.runtime()?;
                    let bound =
                        skills.load(&record).and_then(|loaded| bind::bind(&record, &loaded, &skills.policy, &runtime));
                    Ok::<_, Refusal>(bound)
                });
                match made.await.and_then(|made| made) {
                    Ok(Ok(bound)) => Some(bound),
                    Ok(Err(error)) => {
                        tracing::error!(skill = %skill_id, %error, "a skill cannot be loaded and is held back");
                        self.hold_back(skill_id, &error).await;
                        None
                    }
                    // Not the skill's fault: it is bound again when the daemon can run plugins.
                    Err(refusal) => {
                        tracing::error!(skill = %skill_id, error = %refusal.envelope().message, "a skill is not bound");
                        None
                    }
                }
            }
        };
        self.bindings.write().unwrap_or_else(PoisonError::into_inner).put(skill_id.as_str(), bound);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Puts a skill into quarantine that could not be loaded; the caller holds the turn.
    async fn hold_back(&self, skill_id: &SkillId, error: &SkillError) {
        let at = self.clock.now();
        let planned = self.with_index(|index| index.plan_load_failed(skill_id, error)).unwrap_or_default();
        let records = planned.iter().filter_map(|event| log::record(at, "palyra", event).ok()).collect();
        match self.journal.append(records).await {
            Ok(_) => {
                let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
                planned.iter().for_each(|event| index.apply(event, at));
            }
            Err(error) => tracing::error!(%error, "the quarantine of a skill could not be recorded"),
        }
    }

    async fn forget(self: &Arc<Self>, skill_id: &SkillId) {
        let (storage, id) = (Arc::clone(&self.services.storage), skill_id.to_string());
        if let Ok(Err(error)) = blocking(move || storage.forget(&id)).await {
            tracing::error!(%error, skill = %skill_id, "what a removed skill stored stays behind");
        }
        self.sweep();
    }

    /// Removes archives that no installed skill needs.
    fn sweep(&self) {
        let keep = self.with_index(|index| index.skills().map(|skill| skill.artifact.archive).collect());
        if let Err(error) = self.store.sweep(&keep) {
            tracing::warn!(%error, "archives that nobody needs stay behind");
        }
    }

    /// The archive that was handed over under a digest.
    pub(crate) async fn uploaded(self: &Arc<Self>, digest: Digest) -> Result<Option<Vec<u8>>> {
        let skills = Arc::clone(self);
        let read = blocking(move || skills.uploads.read(digest)).await?;
        read.map_err(|error| Refusal::internal(format!("an archive cannot be read: {error}")))
    }
}

/// The status that each event brought about, for hooks that want to know.
pub(crate) fn new_status(event: &SkillEvent) -> Option<(&SkillId, SkillStatus)> {
    match event {
        SkillEvent::Installed { skill_id, status, .. }
        | SkillEvent::Updated { skill_id, status, .. }
        | SkillEvent::StatusChanged { skill_id, status, .. } => Some((skill_id, *status)),
        _ => None,
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Refusal::internal(error.to_string()))
}
