//! Accepting runs.

use std::sync::Arc;

use palyra_common::{Digest, RunId, RunMode, SessionId};
use palyra_journal::{JournalError, NewRecord};
use palyra_tools::Workspace;

use super::client_tools;
use super::driver::Driver;
use super::files::Attachment;
use super::given_history::{self, GivenExchange};
use super::images::{Images, Onlooker};
use super::locks::Held;
use super::sessions::{self, Known};
use super::{Engine, files};
use crate::error::AgentError;
use crate::machine::{Input, Machine};
use crate::projections::{self, RunRow, SessionState};
use crate::prompt::SYSTEM;
use crate::session::{LOCAL_USER, SessionCreated, SessionSettings, kind};
use crate::spec::{ClientTool, ContextItem, Idempotency, MACHINE_VERSION, MAIN_AGENT, ModelChoice, RunLimits, RunSpec};
use crate::tape::EntryRef;

/// Characters of a task that name its session.
const TITLE_CHARS: usize = 80;

/// A task to run.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// What is to be done.
    pub prompt: String,
    /// The directory to work in, absolute; empty means the one of the session's settings.
    pub workspace: String,
    /// Goes on in this session; otherwise a new one begins.
    pub session_id: Option<SessionId>,
    /// Goes on in the owner's session of this name, or begins it.
    pub session_key: Option<String>,
    /// Accepted only while the session has this version.
    pub expected_version: Option<u64>,
    /// Model to use instead of the session's or the provider's default.
    pub model: Option<String>,
    /// Bounds instead of the configured ones.
    pub max_turns: Option<u32>,
    /// See `max_turns`.
    pub max_tool_calls: Option<u32>,
    /// See `max_turns`.
    pub wall_clock_ms: Option<u64>,
    /// How untrusted results are treated, if not as the session or the configuration says.
    pub mode: Option<RunMode>,
    /// Whose run it is; the local user if nobody else is named.
    pub owner: Option<String>,
    /// The agent that carries it out, by name.
    pub agent: Option<String>,
    /// Tools of the caller, whose calls are handed back; see [`Engine::deliver_client_results`].
    pub client_tools: Vec<ClientTool>,
    /// What was said before, as the caller tells it, instead of what the session holds.
    pub history: Vec<GivenExchange>,
    /// The same key of the same owner gives the same run.
    pub idempotency_key: Option<String>,
}

impl NewRun {
    /// Digest of everything that makes two requests the same.
    fn digest(&self) -> Digest {
        let optional = |value: Option<String>| value.unwrap_or_default();
        let mut parts: Vec<Vec<u8>> = [
            self.prompt.clone(),
            self.workspace.clone(),
            optional(self.session_id.map(|id| id.to_string())),
            optional(self.session_key.clone()),
            optional(self.model.clone()),
            format!("{:?} {:?} {:?}", self.max_turns, self.max_tool_calls, self.wall_clock_ms),
            optional(self.mode.map(|mode| mode.to_string())),
            optional(self.owner.clone()),
        ]
        .map(String::into_bytes)
        .into();
        // Only where they are given, so that a key from before these fields still fits its request.
        if !self.client_tools.is_empty() || !self.history.is_empty() {
            parts.push(serde_json::to_vec(&self.client_tools).unwrap_or_default());
            parts.push(serde_json::to_vec(&self.history).unwrap_or_default());
        }
        parts.extend(self.agent.as_ref().map(|agent| agent.clone().into_bytes()));
        Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn owner(&self) -> &str {
        self.owner.as_deref().unwrap_or(LOCAL_USER)
    }
}

/// What the journal knows before a run is accepted.
#[derive(Default)]
struct Before {
    session: Option<SessionState>,
    known: Known,
    /// The run that the idempotency key was used for, and the digest of the request it came with.
    existing: Option<(RunRow, Digest)>,
}

impl Engine {
    /// Accepts a run. When this returns, the run is on the journal and will be carried out, whatever happens to the process.
    ///
    /// # Errors
    /// When the request is wrong or new work cannot be taken now.
    pub async fn create_run(&self, new: NewRun) -> Result<RunRow, AgentError> {
        self.to_the_end(|engine| async move {
            let _held = engine.hold_for(&new).await?;
            engine.create_run_held(new, RunId::generate(), Vec::new()).await
        })
        .await
    }

    /// The locks under which a run is accepted: of its idempotency key, its session's key and its session.
    async fn hold_for(&self, new: &NewRun) -> Result<Vec<Held>, AgentError> {
        let locks = &self.shared.locks;
        let mut held = Vec::new();
        if let Some(key) = &new.idempotency_key {
            held.push(locks.idempotency(new.owner(), key).await);
        }
        let mut session = new.session_id;
        if let (None, Some(key)) = (session, &new.session_key) {
            held.push(locks.key(new.owner(), key).await);
            let (owner, key) = (new.owner().to_owned(), key.clone());
            let found =
                self.query(move |reader| projections::session_by_key(reader.connection(), &owner, &key)).await?;
            session = found.map(|found| found.row.session_id);
        }
        if let Some(session) = session {
            held.push(locks.session(session).await);
        }
        Ok(held)
    }

    /// Accepts a run under the given id, with records that are committed with it. The caller holds the locks.
    pub(super) async fn create_run_held(
        &self,
        mut new: NewRun,
        run_id: RunId,
        beside: Vec<NewRecord>,
    ) -> Result<RunRow, AgentError> {
        if self.shared.stopping.is_cancelled() {
            return Err(AgentError::Stopping);
        }
        if new.prompt.trim().is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        client_tools::check(&new.client_tools)?;
        check_agent(new.agent.as_deref())?;
        let options = &self.shared.options;
        options.journal.admission()?;
        let agent = new.agent.clone().unwrap_or_else(|| MAIN_AGENT.to_owned());
        let window = options.provider.describe_for(&agent, new.model.as_deref()).context_tokens;
        let Before { session, known, existing } = self.look_up(&new, window as usize).await?;
        let request = new.digest();
        match (existing, &new.idempotency_key) {
            (Some((run, earlier)), _) if earlier == request => return Ok(run),
            (Some(_), Some(key)) => return Err(AgentError::IdempotencyConflict(key.clone())),
            _ => {}
        }
        let mode = self.settle(&mut new, session.as_ref())?;
        // The session may have named a model.
        let info = options.provider.describe_for(&agent, new.model.as_deref());
        let (workspace, project, found) = self.open_workspace(&new).await?;
        let session_id = session.as_ref().map_or_else(SessionId::generate, |session| session.row.session_id);
        let onlooker =
            Onlooker { run_id, session_id, owner: new.owner(), agent: &agent, model: &info.model, prompt: &new.prompt };
        let (attachments, images) = self.take_in(found, &onlooker).await?;
        let spec = RunSpec {
            run_id,
            session_id,
            machine_version: MACHINE_VERSION,
            owner: new.owner().to_owned(),
            agent,
            mode,
            frame_seed: Digest::of_parts(
                &[RunId::generate(), RunId::generate()].map(|id| id.to_string()).each_ref().map(|id| id.as_bytes()),
            ),
            prompt: new.prompt.clone(),
            attachments,
            workspace: workspace.root().display().to_string(),
            system: SYSTEM.to_owned(),
            project,
            history: known.exchanges,
            history_omitted: known.omitted,
            client_tools: new.client_tools.clone(),
            limits: self.limits(&new),
            model: ModelChoice { provider: info.name, name: info.model, context_tokens: info.context_tokens },
            idempotency: new.idempotency_key.clone().map(|key| Idempotency { key, request }),
        };
        let mut records = Vec::new();
        if session.is_none() {
            let created = SessionCreated {
                session_id: spec.session_id,
                owner: spec.owner.clone(),
                key: new.session_key,
                title: title_of(&new.prompt),
                mode: None,
                settings: SessionSettings::default(),
                fork: None,
            };
            records.push(self.session_record(kind::CREATED, spec.session_id, &created)?);
        }
        records.extend(beside);
        self.accept(spec, workspace, images, records).await
    }

    /// Checks the session, takes from it what the request leaves open, and says how untrusted results are treated.
    fn settle(&self, new: &mut NewRun, session: Option<&SessionState>) -> Result<RunMode, AgentError> {
        let configured = self.shared.options.mode;
        let Some(row) = session.map(|session| &session.row) else {
            return match new.expected_version {
                // A session that is not there has no version to expect.
                Some(expected) if expected > 0 => {
                    let name = new.session_key.clone().unwrap_or_else(|| "(new)".to_owned());
                    Err(AgentError::SessionNotFound(name))
                }
                _ => Ok(new.mode.unwrap_or(configured)),
            };
        };
        sessions::check_version(row, new.expected_version)?;
        if row.archived_at.is_some() {
            return Err(AgentError::SessionArchived(row.session_id));
        }
        if new.workspace.is_empty() {
            new.workspace = row.settings.workspace.clone().ok_or(AgentError::WorkspaceMissing(row.session_id))?;
        }
        new.model = new.model.take().or_else(|| row.settings.model.clone());
        Ok(new.mode.or(row.mode).unwrap_or(configured))
    }

    async fn accept(
        &self,
        spec: RunSpec,
        workspace: Arc<Workspace>,
        images: Images,
        beside: Vec<NewRecord>,
    ) -> Result<RunRow, AgentError> {
        let shared = &self.shared;
        let at = shared.options.clock.now();
        let run_id = spec.run_id;
        let machine = Machine::accept(spec.clone(), at);
        let accepted = Input::Accepted(Box::new(spec));
        let mut driver = Driver::new(Arc::clone(shared), machine, workspace, 0).with_images(images);
        driver.stage(EntryRef::Input(&accepted), at)?;
        // A free slot lets the run begin in the same commit in which it is accepted.
        let slot = Arc::clone(&shared.slots).try_acquire_owned().ok();
        let actions = match slot {
            Some(slot) => driver.begin(slot, at).await?,
            None => Vec::new(),
        };
        driver.commit_with(beside).await?;
        let row = driver.row();
        driver.spawn(run_id, actions);
        Ok(row)
    }

    /// One read for all that the journal has to say about a request.
    async fn look_up(&self, new: &NewRun, window: usize) -> Result<Before, AgentError> {
        let (id, key, idempotency) = (new.session_id, new.session_key.clone(), new.idempotency_key.clone());
        let (owner, given) = (new.owner().to_owned(), new.history.clone());
        if id.is_none() && key.is_none() && idempotency.is_none() && given.is_empty() {
            return Ok(Before::default());
        }
        let before = self
            .shared
            .options
            .journal
            .read(move |reader| {
                let db = reader.connection();
                let existing = match idempotency.as_deref() {
                    Some(key) => match projections::idempotent_run(db, &owner, key)? {
                        Some((run, request)) => projections::run(db, run)?.map(|row| (row, request)),
                        None => None,
                    },
                    None => None,
                };
                let session = match (id, key.as_deref()) {
                    (Some(id), _) => projections::session(db, id)?,
                    (None, Some(key)) => projections::session_by_key(db, &owner, key)?,
                    (None, None) => None,
                };
                let known = match &session {
                    _ if !given.is_empty() => given_history::known(db, &owner, given, window)?,
                    Some(session) => sessions::known(db, session, window)?,
                    None => Known::default(),
                };
                Ok::<_, JournalError>(Before { session, known, existing })
            })
            .await?;
        match (new.session_id, &before.session) {
            (Some(id), None) => Err(AgentError::SessionNotFound(id.to_string())),
            _ => Ok(before),
        }
    }

    async fn open_workspace(
        &self,
        new: &NewRun,
    ) -> Result<(Arc<Workspace>, Vec<ContextItem>, Vec<Attachment>), AgentError> {
        let (path, prompt) = (new.workspace.clone(), new.prompt.clone());
        let names = self.shared.options.project_files.clone();
        let protected = self.shared.options.protected.clone();
        tokio::task::spawn_blocking(move || {
            let workspace = Arc::new(Workspace::open_protecting(&path, &protected)?);
            let project = files::project_files(&workspace, &names);
            let attachments = files::references(&workspace, &prompt)?;
            Ok((workspace, project, attachments))
        })
        .await
        .map_err(|error| AgentError::Internal(error.to_string()))?
    }

    /// A request may tighten the configured bounds, not loosen them.
    fn limits(&self, new: &NewRun) -> RunLimits {
        let configured = self.shared.options.limits.clone();
        RunLimits {
            max_turns: new.max_turns.unwrap_or(u32::MAX).min(configured.max_turns),
            max_tool_calls: new.max_tool_calls.unwrap_or(u32::MAX).min(configured.max_tool_calls),
            wall_clock_ms: new.wall_clock_ms.unwrap_or(u64::MAX).min(configured.wall_clock_ms),
            ..configured
        }
    }
}

/// The beginning of a task on one line; what cannot be shown counts as a blank.
fn title_of(prompt: &str) -> String {
    let words = prompt.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").chars().take(TITLE_CHARS).collect()
}

/// Names of agents stand in files, budgets and reports.
fn check_agent(name: Option<&str>) -> Result<(), AgentError> {
    let fits = |name: &str| {
        (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match name {
        Some(name) if !fits(name) => Err(AgentError::AgentNameInvalid(name.to_owned())),
        _ => Ok(()),
    }
}
