//! Accepting runs.

use std::sync::Arc;

use palyra_common::{Digest, RunId, RunMode, SessionId};
use palyra_journal::{JournalError, NewRecord};
use palyra_tools::Workspace;

use super::client_tools;
use super::driver::Driver;
use super::files::Attachment;
use super::given_files::{self, GivenFile};
use super::given_history::{self, GivenExchange};
use super::images::{Images, Looked, Onlooker};
use super::instructions::{WithheldInstructions, project_files};
use super::locks::Held;
use super::sessions::{self, Known};
use super::{Engine, Shared, files, request_size, surroundings};
use crate::agents::{AgentProfile, RunAgent};
use crate::error::AgentError;
use crate::machine::{Input, Machine};
use crate::projections::{self, RunRow, SessionState};
use crate::prompt::SYSTEM;
use crate::session::{LOCAL_USER, SessionCreated, SessionSettings, kind};
use crate::spec::{
    ClientTool, ContextItem, Idempotency, MACHINE_VERSION, MAIN_AGENT, ModelChoice, Objective, OutsideSender,
    RunLimits, RunSpec, ToolSelection,
};
use crate::started_with::StartedWith;
use crate::tape::{EntryRef, Note};

/// Characters of a task that name its session.
const TITLE_CHARS: usize = 80;

/// A task to run.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// What is to be done.
    pub prompt: String,
    /// The directory to work in, absolute; empty means the one of the session's settings or of the agent.
    pub workspace: String,
    /// With what it is asked for. Without a word about it the run may work only where its owner was granted a root.
    pub started_with: StartedWith,
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
    /// The agent that carries it out, by name, if not the session's.
    pub agent: Option<String>,
    /// Who wrote the task, if it was not the owner. Its words are then nobody's orders, and files that it refers to are not read.
    pub from: Option<OutsideSender>,
    /// Tools of the caller, whose calls are handed back; see [`Engine::deliver_client_results`].
    pub client_tools: Vec<ClientTool>,
    /// Files that the owner handed over with the task; whoever asks has checked that they are theirs.
    pub attachments: Vec<GivenFile>,
    /// What was said before, as the caller tells it, instead of what the session holds.
    pub history: Vec<GivenExchange>,
    /// What has to be there before the run may end with its answer.
    pub objective: Option<Objective>,
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
        for file in &self.attachments {
            parts.extend([file.name.clone().into_bytes(), file.artifact.to_string().into_bytes()]);
        }
        parts.extend(self.agent.as_ref().map(|agent| agent.clone().into_bytes()));
        parts.extend(self.objective.as_ref().map(|objective| serde_json::to_vec(objective).unwrap_or_default()));
        Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn owner(&self) -> &str {
        self.owner.as_deref().unwrap_or(LOCAL_USER)
    }
}

/// By whom a run is carried out.
struct Working {
    /// The agent's name.
    agent: String,
    /// What it is, if somebody set it up.
    profile: Option<RunAgent>,
}

/// A workspace with what a run takes from it.
struct Opened {
    workspace: Arc<Workspace>,
    /// Project files.
    project: Vec<ContextItem>,
    /// Those that are not followed.
    withheld: Vec<WithheldInstructions>,
    /// Why everything in it is taken for somebody else's, if it is.
    foreign: Option<String>,
    surroundings: ContextItem,
    /// Files that the request refers to or gives.
    found: Vec<Attachment>,
}

/// What a new run has beside its specification.
struct Taken {
    workspace: Arc<Workspace>,
    images: Images,
    withheld: Vec<WithheldInstructions>,
    /// Why everything in the workspace is taken for somebody else's, if it is.
    foreign: Option<String>,
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
            let run_id = RunId::generate();
            let _repetitions = engine.hold_repetitions(&new).await;
            // Without the session's lock: whoever else uses it does not wait for somebody who looks at an image.
            let looked = engine.look_beforehand(&new, run_id).await?;
            let _held = engine.hold_session(&new).await?;
            engine.create_run_held(new, run_id, Vec::new(), looked).await
        })
        .await
    }

    /// The lock under which a run is accepted that could be asked for again.
    async fn hold_repetitions(&self, new: &NewRun) -> Option<Held> {
        let key = new.idempotency_key.as_ref()?;
        Some(self.shared.locks.idempotency(new.owner(), key).await)
    }

    /// The locks under which a run is accepted in its session: of the session's key and of the session.
    async fn hold_session(&self, new: &NewRun) -> Result<Vec<Held>, AgentError> {
        let locks = &self.shared.locks;
        let mut held = Vec::new();
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
        looked: Looked,
    ) -> Result<RunRow, AgentError> {
        if self.shared.stopping.is_cancelled() {
            return Err(AgentError::Stopping);
        }
        if new.prompt.trim().is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        client_tools::check(&new.client_tools)?;
        let options = &self.shared.options;
        options.journal.admission()?;
        let Before { session, known, existing } = self.look_up(&new).await?;
        let request = new.digest();
        match (existing, &new.idempotency_key) {
            (Some((run, earlier)), _) if earlier == request => return Ok(run),
            (Some(_), Some(key)) => return Err(AgentError::IdempotencyConflict(key.clone())),
            _ => {}
        }
        let (mode, Working { agent, profile }) = self.settle(&mut new, session.as_ref())?;
        // The session or the agent may have named a model. One that nobody offers is refused before there is a run.
        let info = options.provider.resolve(&agent, new.model.as_deref()).await?;
        let Opened { workspace, project, withheld, foreign, surroundings, found } = self.open_workspace(&new).await?;
        let session_id = session.as_ref().map_or(looked.session_id, |session| session.row.session_id);
        let onlooker =
            Onlooker { run_id, session_id, owner: new.owner(), agent: &agent, model: &info.model, prompt: &new.prompt };
        let (attachments, images) = self.take_in(found, &onlooker, &looked).await?;
        let mut spec = RunSpec {
            run_id,
            session_id,
            machine_version: MACHINE_VERSION,
            owner: new.owner().to_owned(),
            agent,
            profile,
            mode,
            frame_seed: Digest::of_parts(
                &[RunId::generate(), RunId::generate()].map(|id| id.to_string()).each_ref().map(|id| id.as_bytes()),
            ),
            prompt: new.prompt.clone(),
            from: new.from.clone(),
            attachments,
            workspace: workspace.root().display().to_string(),
            started_with: new.started_with.clone(),
            system: SYSTEM.to_owned(),
            project,
            surroundings: Some(surroundings),
            history: known.exchanges,
            history_omitted: known.omitted,
            tools: if info.is_language_model { ToolSelection::Needed } else { ToolSelection::All },
            client_tools: new.client_tools.clone(),
            objective: new.objective.clone(),
            limits: self.limits(&new),
            model: ModelChoice::of(info),
            reserved_tokens: 0,
            idempotency: new.idempotency_key.clone().map(|key| Idempotency { key, request }),
        };
        spec.reserved_tokens = request_size::reserved(options, &spec);
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
        self.accept(spec, Taken { workspace, images, withheld, foreign }, records).await
    }

    /// Has the images of a request looked at whose model does not see, before anything is locked for it. Whatever is wrong with the request is left to
    /// its acceptance to say.
    pub(super) async fn look_beforehand(&self, new: &NewRun, run_id: RunId) -> Result<Looked, AgentError> {
        let nothing = Looked::default();
        let options = &self.shared.options;
        let files = files::has_references(&new.prompt) || !new.attachments.is_empty();
        if !files || self.shared.stopping.is_cancelled() {
            return Ok(nothing);
        }
        options.journal.admission()?;
        let Ok(Before { session, existing: None, .. }) = self.look_up(new).await else { return Ok(nothing) };
        let mut new = new.clone();
        let Ok((_, Working { agent, .. })) = self.settle(&mut new, session.as_ref()) else { return Ok(nothing) };
        let info = options.provider.describe_for(&agent, new.model.as_deref());
        if options.provider.sees_images(&agent, &info.model) {
            return Ok(nothing);
        }
        let Ok(Opened { found, .. }) = self.open_workspace(&new).await else { return Ok(nothing) };
        let session_id = session.as_ref().map_or(nothing.session_id, |session| session.row.session_id);
        let onlooker =
            Onlooker { run_id, session_id, owner: new.owner(), agent: &agent, model: &info.model, prompt: &new.prompt };
        self.look(found, &onlooker, nothing).await
    }

    /// The directory that a request comes to work in.
    pub(super) async fn settled_workspace(&self, new: &NewRun) -> Result<String, AgentError> {
        if !new.workspace.is_empty() {
            return Ok(new.workspace.clone());
        }
        let Before { session, .. } = self.look_up(new).await?;
        let mut new = new.clone();
        self.settle(&mut new, session.as_ref())?;
        Ok(new.workspace)
    }

    /// Checks the session and takes from it and from the agent what the request leaves open. Says how untrusted results are treated, and by whom
    /// the run is carried out.
    fn settle(&self, new: &mut NewRun, session: Option<&SessionState>) -> Result<(RunMode, Working), AgentError> {
        let row = session.map(|session| &session.row);
        match row {
            Some(row) => {
                sessions::check_version(row, new.expected_version)?;
                if row.archived_at.is_some() {
                    return Err(AgentError::SessionArchived(row.session_id));
                }
            }
            // A session that is not there has no version to expect.
            None if new.expected_version.is_some_and(|expected| expected > 0) => {
                let name = new.session_key.clone().unwrap_or_else(|| "(new)".to_owned());
                return Err(AgentError::SessionNotFound(name));
            }
            None => {}
        }
        let settings = row.map(|row| row.settings.clone()).unwrap_or_default();
        let agent = new.agent.clone().or(settings.agent).unwrap_or_else(|| MAIN_AGENT.to_owned());
        let found = self.shared.agents.find(&agent)?;
        let profile = found.as_ref().map(RunAgent::of);
        let AgentProfile { model, mode: least, workspace, .. } = found.map(|row| row.profile).unwrap_or_default();
        if new.workspace.is_empty() {
            new.workspace = settings.workspace.or(workspace).ok_or_else(|| match row {
                Some(row) => AgentError::WorkspaceMissing(row.session_id),
                None => AgentError::NoWorkspace,
            })?;
        }
        new.model = new.model.take().or(settings.model).or(model);
        match (new.mode, least) {
            (Some(asked), Some(least)) if asked < least => {
                return Err(AgentError::AgentModeLoosened { name: agent, least, asked });
            }
            _ => {}
        }
        let mode = new.mode.or(row.and_then(|row| row.mode)).unwrap_or(self.shared.options.mode);
        Ok((least.map_or(mode, |least| mode.max(least)), Working { agent, profile }))
    }

    async fn accept(&self, spec: RunSpec, taken: Taken, beside: Vec<NewRecord>) -> Result<RunRow, AgentError> {
        let Taken { workspace, images, withheld, foreign } = taken;
        let shared = &self.shared;
        let at = shared.options.clock.now();
        let run_id = spec.run_id;
        let machine = Machine::accept(spec.clone(), at);
        let accepted = Input::Accepted(Box::new(spec));
        let mut driver = Driver::new(Arc::clone(shared), machine, workspace, 0).with_images(images);
        driver.stage(EntryRef::Input(&accepted), at)?;
        driver.note_unavailable_sources(at)?;
        if !withheld.is_empty() {
            driver.stage(EntryRef::Note(&Note::InstructionsWithheld { files: withheld }), at)?;
        }
        if let Some(why) = foreign {
            driver.stage(EntryRef::Note(&Note::WorkspaceForeign { why }), at)?;
        }
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
    async fn look_up(&self, new: &NewRun) -> Result<Before, AgentError> {
        let (id, key, idempotency) = (new.session_id, new.session_key.clone(), new.idempotency_key.clone());
        let (owner, given) = (new.owner().to_owned(), new.history.clone());
        if id.is_none() && key.is_none() && idempotency.is_none() && given.is_empty() {
            return Ok(Before::default());
        }
        let (agent, model, shared) = (new.agent.clone(), new.model.clone(), Arc::clone(&self.shared));
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
                let settings = session.as_ref().map(|session| session.row.settings.clone()).unwrap_or_default();
                let window = window(&shared, agent.or(settings.agent), model.or(settings.model));
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

    async fn open_workspace(&self, new: &NewRun) -> Result<Opened, AgentError> {
        // Nobody outside has files put into a context by naming them.
        let prompt = if new.from.is_some() { String::new() } else { new.prompt.clone() };
        let (path, owner, authority) = (new.workspace.clone(), new.owner().to_owned(), new.started_with.workspace);
        let names = self.shared.options.project_files.clone();
        let shared = Arc::clone(&self.shared);
        let (artifacts, given) = (self.shared.options.journal.artifacts().clone(), new.attachments.clone());
        let at = self.shared.options.clock.now();
        tokio::task::spawn_blocking(move || {
            let workspace = shared.open_workspace(&path, &owner, authority)?;
            let (mut project, mut withheld) = (Vec::new(), Vec::new());
            for (file, followed) in project_files(&workspace, &shared.file_labels, &names) {
                project.extend(followed);
                withheld.extend(file.withheld.map(|why| WithheldInstructions { path: file.path, why }));
            }
            let foreign = workspace.foreign_root().map(|why| why.to_string());
            let surroundings = surroundings::describe(&workspace, at);
            let mut found = files::references(&workspace, &prompt)?;
            given_files::add(&artifacts, shared.file_labels.as_ref(), given, &mut found)?;
            Ok(Opened { workspace, project, withheld, foreign, surroundings, found })
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

/// Tokens that fit the model of such a run. An agent that is not there refuses the run a moment later.
fn window(shared: &Shared, agent: Option<String>, model: Option<String>) -> usize {
    let agent = agent.unwrap_or_else(|| MAIN_AGENT.to_owned());
    let of_agent = || shared.agents.find(&agent).ok().flatten().and_then(|row| row.profile.model);
    let model = model.or_else(of_agent);
    shared.options.provider.describe_for(&agent, model.as_deref()).context_tokens as usize
}
