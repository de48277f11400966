//! Changes: planned from the index, committed to the journal, applied, bound anew.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use palyra_common::{Digest, ErrorCategory, SkillStatus, StableErrorEnvelope};
use palyra_journal::FirstCommit;
use palyra_plugins_runtime::{CallOptions, Plugin, PluginKind};
use palyra_skills::{
    AuditCause, AuditVerdict, DescribedTool, Examined, InitialStatus, InstallRequest, Origin, SkillError, SkillEvent,
    SkillId, SkillIndex, SkillManifest, SkillRecord, Tofu, UpdateRequest, audit_described_tools, examine,
};

use super::bind::BoundSkill;
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

/// What loading a skill came to.
struct Made {
    /// The skill, or why it cannot run.
    bound: std::result::Result<BoundSkill, String>,
    /// What is to be recorded about it.
    events: Vec<SkillEvent>,
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
        let prepared = self.prepare(bytes, &installing).await;
        let (skill_id, events) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                self.sweep().await;
                return Err(refusal);
            }
        };
        Ok((skill_id, self.commit(&installing.by, events).await?))
    }

    /// Keeps an archive, decides about it, and only then compiles it and asks its modules what they are: nothing of a publisher that is refused ever runs, and a
    /// module that cannot be loaded is no skill.
    async fn prepare(self: &Arc<Self>, bytes: Vec<u8>, installing: &Installing) -> Result<(SkillId, Vec<SkillEvent>)> {
        let skills = Arc::clone(self);
        let read = move || {
            let lost = skills.is_lost(Digest::of(&bytes));
            let archive = skills.store.put(&bytes)?;
            let examined = examine(&archive, &skills.policy.audit())?;
            Ok::<_, Refusal>((archive, examined, lost))
        };
        let (archive, examined, lost) = blocking(read).await??;
        let manifest = archive.manifest().clone();
        let skill_id = manifest.skill_id.clone();
        let events = match self.plan_arrival(&examined, installing) {
            // The archive had gone from the disk and is back: nothing changes but that the skill runs again. That it was looked at is on record, for whoever asks
            // again and finds it there.
            Err(SkillError::AlreadyInstalled { .. }) if lost => {
                self.rebind(&skill_id).await;
                let asked = AuditCause::Asked;
                let audited = self.with_index(|index| index.plan_audited(&skill_id, examined.report(), asked))?;
                return Ok((skill_id, audited));
            }
            planned => planned?,
        };
        let runtime = self.runtime()?.runtime;
        let compile = move || {
            let modules = archive.modules();
            modules.map(|(path, wasm)| Ok((path.to_owned(), runtime.prepare(wasm)?))).collect::<Result<Vec<_>>>()
        };
        let modules = blocking(compile).await??;
        self.check_descriptions(&manifest, &modules).await?;
        Ok((skill_id, events))
    }

    /// Decides about an archive: a new skill, or a newer version of one that is there.
    fn plan_arrival(
        &self,
        examined: &Examined,
        installing: &Installing,
    ) -> std::result::Result<Vec<SkillEvent>, SkillError> {
        let now = self.clock.now();
        let Installing { by, origin, accept_key, start } = installing;
        let accepted = accept_key.as_deref() == Some(examined.verified().key_id.to_string().as_str());
        let tofu = if self.trust_on_first_use && accepted { Tofu::Pin } else { Tofu::Refuse };
        self.with_index(|index| match index.skill(&examined.manifest().skill_id) {
            Ok(_) => {
                let request = UpdateRequest { by: by.clone(), origin: origin.clone() };
                index.plan_update(examined, &request, now)
            }
            Err(_) => {
                let request =
                    InstallRequest { by: by.clone(), tofu, origin: origin.clone(), start: *start, grants: None };
                index.plan_install(examined, &request, now)
            }
        })
    }

    /// Whether this is the archive of an installed skill, and not on the disk any more.
    fn is_lost(&self, archive: Digest) -> bool {
        self.with_index(|index| index.skills().any(|skill| skill.artifact.archive == archive))
            && matches!(self.store.get(&archive), Err(SkillError::NotStored { .. }))
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
                    format!("the manifest and the module do not match: {}", report.summary()),
                )
                .hint("build and pack the skill again")
                .into());
            }
        }
        Ok(())
    }

    /// Audits an installed skill again, and puts it into quarantine if it fails or was tampered with.
    pub(crate) async fn audit(self: &Arc<Self>, skill_id: &SkillId, by: &str, cause: AuditCause) -> Result<Changed> {
        let record = self.with_index(|index| index.skill(skill_id).cloned())?;
        let (skills, looked_at) = (Arc::clone(self), record.clone());
        let loaded = match blocking(move || skills.load(&looked_at)).await? {
            // Neither good nor bad can be said of what cannot be read.
            Err(error) if !error.means_tampering() => return Err(error.into()),
            loaded => loaded,
        };
        self.change(by, |index| {
            // It may have been replaced while it was looked at; then there is nothing to say about it.
            if index.skill(skill_id)?.artifact.archive != record.artifact.archive {
                return Ok(Vec::new());
            }
            match &loaded {
                Ok(loaded) => index.plan_audited(skill_id, loaded.examined.report(), cause),
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
        let records = log::records(at, by, &events).map_err(|error| Refusal::internal(error.to_string()))?;
        self.journal.append(records).await?;
        {
            let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
            events.iter().for_each(|event| index.apply(event, at));
        }
        // An audit alone changes nothing about what runs; binding anew would take grants from calls that are under way.
        let changes = events.iter().filter(|event| !matches!(event, SkillEvent::AuditRecorded { .. }));
        let mut concerned: Vec<SkillId> = changes.filter_map(|event| event.skill_id().cloned()).collect();
        concerned.dedup();
        for event in &events {
            match event {
                SkillEvent::Removed { skill_id, .. } => self.forget(skill_id).await,
                // The version before is not needed any more.
                SkillEvent::Updated { .. } => self.sweep().await,
                _ => {}
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
                match blocking(move || skills.make(&record)).await.and_then(|made| made) {
                    Ok(Made { bound, events }) => {
                        self.note(events).await;
                        bound
                            .inspect_err(|why| tracing::error!(skill = %skill_id, why, "a skill could not be loaded"))
                            .ok()
                    }
                    // Not the skill's fault: it is bound again when the daemon can run plugins.
                    Err(refusal) => {
                        tracing::error!(skill = %skill_id, error = %refusal.envelope().message, "a skill could not be loaded");
                        None
                    }
                }
            }
        };
        self.bindings.write().unwrap_or_else(PoisonError::into_inner).put(skill_id.as_str(), bound);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Loads a skill, audits it anew and makes it callable. The audit may have learned since it was installed, and the operator's limits may have changed.
    fn make(&self, record: &SkillRecord) -> Result<Made> {
        let runtime = self.runtime()?;
        let skill_id = &record.skill_id;
        let failed = |error: &SkillError| {
            let events = self.with_index(|index| index.plan_load_failed(skill_id, error))?;
            Ok(Made { bound: Err(error.to_string()), events })
        };
        let loaded = match self.load(record) {
            Ok(loaded) => loaded,
            Err(error) => return failed(&error),
        };
        let report = loaded.examined.report();
        let mut events = self.with_index(|index| index.plan_audited(skill_id, report, AuditCause::Routine))?;
        events.extend(self.with_index(|index| index.plan_described(loaded.archive.manifest()))?);
        if events.iter().filter_map(new_status).any(|(_, status)| status == SkillStatus::Quarantined) {
            return Ok(Made { bound: Err(report.summary()), events });
        }
        match bind::bind(record, &loaded, &self.policy, &runtime) {
            Ok(bound) => Ok(Made { bound: Ok(bound), events }),
            Err(error) => failed(&error),
        }
    }

    /// Records what loading a skill found out; the caller holds the turn.
    async fn note(&self, events: Vec<SkillEvent>) {
        if events.is_empty() {
            return;
        }
        let at = self.clock.now();
        let noted = match log::records(at, "palyra", &events) {
            // Whichever command had it loaded: what was found is no part of that command.
            Ok(records) => FirstCommit::exempt(self.journal.append(records)).await.map_err(Refusal::from),
            Err(error) => Err(Refusal::internal(error.to_string())),
        };
        match noted {
            Ok(_) => {
                let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
                events.iter().for_each(|event| index.apply(event, at));
                // Hooks are told by a task of their own: whoever loads a skill may be the one that is about to ask a hook.
                self.found.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
                self.found_more.notify_one();
            }
            Err(refusal) => {
                tracing::error!(error = %refusal.envelope().message, "the result of loading a skill could not be recorded");
            }
        }
    }

    /// Waits until loading skills has found out something, and gives it.
    pub(super) async fn found(&self) -> Changed {
        loop {
            let events = std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner));
            if !events.is_empty() {
                return Changed { events };
            }
            self.found_more.notified().await;
        }
    }

    async fn forget(self: &Arc<Self>, skill_id: &SkillId) {
        let (storage, id) = (Arc::clone(&self.services.storage), skill_id.to_string());
        if let Ok(Err(error)) = blocking(move || storage.forget(&id)).await {
            tracing::error!(%error, skill = %skill_id, "a removed skill's stored data could not be deleted");
        }
        self.sweep().await;
    }

    /// Removes archives that no installed skill needs, with what was unpacked and compiled of them.
    async fn sweep(self: &Arc<Self>) {
        let skills = Arc::clone(self);
        let sweep = move || {
            let keep = skills.with_index(|index| index.skills().map(|skill| skill.artifact.archive).collect());
            let removed = skills.store.sweep(&keep)?;
            if let (false, Ok(shared)) = (removed.is_empty(), skills.runtime()) {
                removed.into_iter().try_for_each(|digest| shared.runtime.forget(digest))?;
            }
            Ok::<_, Refusal>(())
        };
        if let Err(refusal) = blocking(sweep).await.and_then(|swept| swept) {
            tracing::warn!(error = %refusal.envelope().message, "unused skill files could not be deleted");
        }
    }

    /// What a change came to whose first event is the record at `seq`, where the journal tells.
    pub(crate) async fn changed_at(&self, seq: u64) -> Result<Option<Changed>> {
        let events = self.journal.read(move |reader| log::committed_at(reader, seq)).await?;
        Ok(events.map(|events| Changed { events }))
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
