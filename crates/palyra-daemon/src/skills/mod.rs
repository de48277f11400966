//! The skills of this daemon: which are installed, which may run, and what they are bound to.
//!
//! `palyra-skills` decides, the journal remembers, the runtime runs; here they meet. Every change is planned from the index, committed to the journal, applied
//! to the index and then bound anew, one change at a time. A daemon without skills never starts the runtime.

mod bind;
mod call;
mod change;
mod hooks;
mod log;
mod notices;
mod policy;
mod registries;
mod uploads;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use palyra_common::config::Config;
use palyra_common::{Clock, ErrorCategory, HookEvent, StableErrorEnvelope, ToStableError as _};
use palyra_egress::{Egress, PrivateHost, SecretSource};
use palyra_executors::{SkillRuntime, SkillServices, SkillStorage};
use palyra_journal::Journal;
use palyra_plugins_runtime::PluginError;
use palyra_skills::{ArchiveLimits, LoadedSkill, SkillError, SkillId, SkillIndex, SkillRecord, SkillStore};
use palyra_tools::Tool;
use tokio::sync::Mutex;

pub(crate) use self::bind::PluginBindingsIndex;
pub(crate) use self::call::ModuleSource;
pub(crate) use self::change::{Changed, Installing, new_status};
pub(crate) use self::hooks::SkillHooks;
pub(crate) use self::log::SkillLog;
pub(crate) use self::policy::WasmPluginRunnerPolicy;
pub(crate) use self::uploads::{MAX_ARCHIVE, MAX_PIECE, UploadError, Uploads};
pub(crate) use self::watch::{keep_audited, keep_told};
use crate::error::DaemonError;

/// What the skills of a daemon are made from.
pub(crate) struct SkillParts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) state_root: &'a Path,
    pub(crate) journal: Journal,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) egress: Egress,
    pub(crate) secrets: Arc<dyn SecretSource>,
    pub(crate) private_hosts: Vec<PrivateHost>,
}

/// The skills of a daemon.
pub(crate) struct Skills {
    journal: Journal,
    clock: Arc<dyn Clock>,
    directory: PathBuf,
    policy: WasmPluginRunnerPolicy,
    trust_on_first_use: bool,
    registries: Vec<String>,
    store: SkillStore,
    pub(crate) uploads: Uploads,
    index: RwLock<SkillIndex>,
    bindings: RwLock<PluginBindingsIndex>,
    /// Grows with every change of the bindings.
    generation: AtomicU64,
    egress: Egress,
    services: SkillServices,
    runtime: OnceLock<SkillRuntime>,
    /// Held by whoever changes something.
    changing: Mutex<()>,
    /// Held by whoever visits a registry.
    visiting: Mutex<()>,
    /// What loading skills found out and no hook was told of yet.
    found: std::sync::Mutex<Vec<palyra_skills::SkillEvent>>,
    /// Rung when there is more of it.
    found_more: tokio::sync::Notify,
    /// Whether the skills that were installed before this daemon started are bound.
    opened: tokio::sync::OnceCell<()>,
}

impl Skills {
    /// Reads what the journal knows. Nothing is bound yet.
    pub(crate) fn open(parts: SkillParts<'_>) -> Result<Self, DaemonError> {
        let kept = |error: SkillError| DaemonError::Kept(Box::new(error.to_stable()));
        let directory = parts.state_root.join("skills");
        let store = SkillStore::open(&directory, ArchiveLimits::default()).map_err(kept)?;
        let uploads = Uploads::open(directory.join("incoming"))
            .map_err(DaemonError::file("create", directory.join("incoming")))?;
        let storage = SkillStorage::open(&directory.join("storage.db")).map_err(|error| {
            let envelope = StableErrorEnvelope::new("skill_storage", ErrorCategory::Availability, error.to_string());
            DaemonError::Kept(Box::new(envelope))
        })?;
        let mut index = SkillIndex::default();
        for (at, event) in parts.journal.read_blocking(|reader| Ok(log::events(reader.connection())?))? {
            index.apply(&event, at);
        }
        Ok(Self {
            services: SkillServices {
                client: parts.egress.client(),
                secrets: parts.secrets,
                storage: Arc::new(storage),
                channels: Arc::new(notices::Notices(parts.journal.clone())),
                private_hosts: parts.private_hosts,
            },
            journal: parts.journal,
            clock: parts.clock,
            directory,
            policy: WasmPluginRunnerPolicy::of(parts.config),
            trust_on_first_use: parts.config.skills.trust_on_first_use,
            registries: parts.config.skills.registries.clone(),
            store,
            uploads,
            index: RwLock::new(index),
            bindings: RwLock::default(),
            generation: AtomicU64::new(0),
            egress: parts.egress,
            runtime: OnceLock::new(),
            changing: Mutex::default(),
            visiting: Mutex::default(),
            found: std::sync::Mutex::default(),
            found_more: tokio::sync::Notify::new(),
            opened: tokio::sync::OnceCell::new(),
        })
    }

    /// Looks at the index.
    pub(crate) fn with_index<T>(&self, look: impl FnOnce(&SkillIndex) -> T) -> T {
        look(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What may run at this moment.
    pub(crate) fn bindings(&self) -> PluginBindingsIndex {
        self.bindings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tools of all skills that may run, with a number that changes when they do. The first call binds what was installed before.
    pub(crate) async fn tools(self: &Arc<Self>) -> (u64, Vec<Arc<dyn Tool>>) {
        self.opened.get_or_init(|| self.bind_all()).await;
        let generation = self.generation.load(Ordering::Acquire);
        (generation, self.bindings().tools().cloned().collect())
    }

    /// Whether the tool is, by its name, one of a skill that is installed.
    pub(crate) fn may_have(&self, tool: &str) -> bool {
        self.with_index(|index| {
            index
                .skills()
                .any(|record| tool.strip_prefix(record.skill_id.as_str()).is_some_and(|rest| rest.starts_with('.')))
        })
    }

    /// Refuses a binding of a hook that the skill does not have or that is not for this event.
    pub(crate) fn check_hook(&self, plugin_id: &str, event: HookEvent) -> crate::dispatch::Result<()> {
        let (skill, hook) = plugin_id.split_once('#').map_or((plugin_id, None), |(skill, hook)| (skill, Some(hook)));
        let skill_id: SkillId = skill.parse()?;
        let record = self.with_index(|index| index.skill(&skill_id).cloned())?;
        let loaded = self.load(&record)?;
        let hooks = &loaded.archive.manifest().hooks;
        let fits = |id: &str, events: &[HookEvent]| hook.is_none_or(|hook| hook == id) && events.contains(&event);
        if hooks.iter().any(|hook| fits(&hook.id, &hook.events)) {
            return Ok(());
        }
        let message = format!("the skill `{plugin_id}` has no hook for `{event}`");
        Err(StableErrorEnvelope::new("skill_hook_missing", ErrorCategory::NotFound, message)
            .hint(format!("`palyra skills info {skill_id}` lists its hooks"))
            .into())
    }

    /// The archive of an installed skill, verified and audited anew.
    pub(crate) fn load(&self, record: &SkillRecord) -> Result<LoadedSkill, SkillError> {
        self.store.load(record, &self.policy.audit())
    }

    /// The runtime, started when the first skill needs it.
    fn runtime(&self) -> Result<SkillRuntime, PluginError> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime.clone());
        }
        let runtime = self.policy.runtime(&self.directory)?;
        let shared = SkillRuntime { runtime, services: self.services.clone() };
        // Whoever was first is the one.
        Ok(self.runtime.get_or_init(|| shared).clone())
    }
}
