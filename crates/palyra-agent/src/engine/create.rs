//! Accepting runs.

use std::sync::Arc;

use palyra_common::{Confidentiality, Digest, Integrity, Label, RunId, RunMode, SessionId};
use palyra_journal::{JournalError, NewRecord};
use palyra_tools::Workspace;

use super::driver::Driver;
use super::{Engine, files};
use crate::error::AgentError;
use crate::machine::{Input, Machine};
use crate::projections::{self, RunFilter, RunRow, SessionCreated};
use crate::prompt::SYSTEM;
use crate::spec::{ContextItem, Exchange, Idempotency, MACHINE_VERSION, ModelChoice, RunLimits, RunSpec};
use crate::tape::{EntryRef, kind};

/// Share of the model's window that earlier exchanges of a session may take.
const HISTORY_WINDOW_SHARE: usize = 4;
/// Exchanges of a session that are looked at.
const HISTORY_RUNS: u32 = 50;
/// The person of a daemon that serves one person.
pub(super) const LOCAL_USER: &str = "local";
/// Characters of a task that name its session.
const TITLE_CHARS: usize = 80;

/// A task to run.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// What is to be done.
    pub prompt: String,
    /// The directory to work in, absolute.
    pub workspace: String,
    /// Goes on in this session; otherwise a new one begins.
    pub session_id: Option<SessionId>,
    /// Goes on in the session of this name, or begins it.
    pub session_key: Option<String>,
    /// Model to use instead of the provider's default.
    pub model: Option<String>,
    /// Bounds instead of the configured ones.
    pub max_turns: Option<u32>,
    /// See `max_turns`.
    pub max_tool_calls: Option<u32>,
    /// See `max_turns`.
    pub wall_clock_ms: Option<u64>,
    /// How untrusted results are treated, if not as configured.
    pub mode: Option<RunMode>,
    /// Whose run it is; the local user if nobody else is named.
    pub owner: Option<String>,
    /// The same key gives the same run.
    pub idempotency_key: Option<String>,
}

impl NewRun {
    /// Digest of everything that makes two requests the same.
    fn digest(&self) -> Digest {
        let optional = |value: Option<String>| value.unwrap_or_default();
        Digest::of_parts(&[
            self.prompt.as_bytes(),
            self.workspace.as_bytes(),
            optional(self.session_id.map(|id| id.to_string())).as_bytes(),
            optional(self.session_key.clone()).as_bytes(),
            optional(self.model.clone()).as_bytes(),
            format!("{:?} {:?} {:?}", self.max_turns, self.max_tool_calls, self.wall_clock_ms).as_bytes(),
            optional(self.mode.map(|mode| mode.to_string())).as_bytes(),
            optional(self.owner.clone()).as_bytes(),
        ])
    }
}

/// What the journal knows before a run is accepted.
struct Known {
    session_id: SessionId,
    new_session: bool,
    history: Vec<Exchange>,
    history_omitted: u32,
    /// The run that the idempotency key was used for, and the digest of the request it came with.
    existing: Option<(RunRow, Digest)>,
}

impl Engine {
    /// Accepts a run. When this returns, the run is on the journal and will be carried out, whatever happens to the process.
    ///
    /// # Errors
    /// When the request is wrong or new work cannot be taken now.
    pub async fn create_run(&self, new: NewRun) -> Result<RunRow, AgentError> {
        if self.shared.stopping.is_cancelled() {
            return Err(AgentError::Stopping);
        }
        if new.prompt.trim().is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        let options = &self.shared.options;
        options.journal.admission()?;
        let info = options.provider.describe();
        let model = ModelChoice {
            provider: info.name,
            name: new.model.clone().unwrap_or(info.model),
            context_tokens: info.context_tokens,
        };
        let known = self.look_up(&new, model.context_tokens as usize).await?;
        let request = new.digest();
        match (known.existing, &new.idempotency_key) {
            (Some((run, earlier)), _) if earlier == request => return Ok(run),
            (Some(_), Some(key)) => return Err(AgentError::IdempotencyConflict(key.clone())),
            _ => {}
        }
        let (workspace, project, attachments) = self.open_workspace(&new).await?;
        let spec = RunSpec {
            run_id: RunId::generate(),
            session_id: known.session_id,
            machine_version: MACHINE_VERSION,
            owner: new.owner.clone().unwrap_or_else(|| LOCAL_USER.to_owned()),
            mode: new.mode.unwrap_or(options.mode),
            frame_seed: Digest::of_parts(
                &[RunId::generate(), RunId::generate()].map(|id| id.to_string()).each_ref().map(|id| id.as_bytes()),
            ),
            prompt: new.prompt.clone(),
            attachments,
            workspace: workspace.root().display().to_string(),
            system: SYSTEM.to_owned(),
            project,
            history: known.history,
            history_omitted: known.history_omitted,
            limits: self.limits(&new),
            model,
            idempotency: new.idempotency_key.clone().map(|key| Idempotency { key, request }),
        };
        self.accept(spec, workspace, known.new_session.then_some(new)).await
    }

    async fn accept(
        &self,
        spec: RunSpec,
        workspace: Arc<Workspace>,
        new_session: Option<NewRun>,
    ) -> Result<RunRow, AgentError> {
        let shared = &self.shared;
        let at = shared.options.clock.now();
        let (run_id, session_id) = (spec.run_id, spec.session_id);
        let mut records = Vec::new();
        if let Some(new) = new_session {
            let created = SessionCreated {
                session_id,
                key: new.session_key,
                title: new.prompt.chars().take(TITLE_CHARS).collect(),
            };
            let payload = serde_json::to_vec(&created).map_err(|error| AgentError::Internal(error.to_string()))?;
            records.push(NewRecord::new(kind::SESSION_CREATED, at, payload).in_session(session_id));
        }
        let machine = Machine::accept(spec.clone(), at);
        let accepted = Input::Accepted(Box::new(spec));
        let mut driver = Driver::new(Arc::clone(shared), machine, workspace, 0);
        driver.stage(EntryRef::Input(&accepted), at)?;
        // A free slot lets the run begin in the same commit in which it is accepted.
        let slot = Arc::clone(&shared.slots).try_acquire_owned().ok();
        let actions = match slot {
            Some(slot) => driver.begin(slot, at).await?,
            None => Vec::new(),
        };
        driver.commit_with(records).await?;
        let row = driver.row();
        driver.spawn(run_id, actions);
        Ok(row)
    }

    /// One read for all that the journal has to say about a request.
    async fn look_up(&self, new: &NewRun, window: usize) -> Result<Known, AgentError> {
        let (id, key, idempotency) = (new.session_id, new.session_key.clone(), new.idempotency_key.clone());
        if id.is_none() && key.is_none() && idempotency.is_none() {
            return Ok(Known {
                session_id: SessionId::generate(),
                new_session: true,
                history: Vec::new(),
                history_omitted: 0,
                existing: None,
            });
        }
        let found = self
            .shared
            .options
            .journal
            .read(move |reader| {
                let db = reader.connection();
                let existing = match idempotency.as_deref() {
                    Some(key) => match projections::idempotent_run(db, key)? {
                        Some((run, request)) => projections::run(db, run)?.map(|row| (row, request)),
                        None => None,
                    },
                    None => None,
                };
                let session = match (id, key.as_deref()) {
                    (Some(id), _) => projections::session(db, id)?,
                    (None, Some(key)) => projections::session_by_key(db, key)?,
                    (None, None) => None,
                };
                let earlier = match &session {
                    Some(session) => projections::runs(
                        db,
                        &RunFilter {
                            session_id: Some(session.session_id),
                            limit: HISTORY_RUNS,
                            ..RunFilter::default()
                        },
                    )?,
                    None => Vec::new(),
                };
                Ok::<_, JournalError>((existing, session, earlier))
            })
            .await?;
        let (existing, session, earlier) = found;
        if let (Some(id), None) = (new.session_id, &session) {
            return Err(AgentError::SessionNotFound(id.to_string()));
        }
        let total = session.as_ref().map_or(0, |session| session.runs);
        let history = history(earlier, window);
        let history_omitted = u32::try_from(total.saturating_sub(history.len() as u64)).unwrap_or(u32::MAX);
        Ok(Known {
            session_id: session.as_ref().map_or_else(SessionId::generate, |session| session.session_id),
            new_session: session.is_none(),
            history,
            history_omitted,
            existing,
        })
    }

    async fn open_workspace(
        &self,
        new: &NewRun,
    ) -> Result<(Arc<Workspace>, Vec<ContextItem>, Vec<ContextItem>), AgentError> {
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

/// The newest finished exchanges that fit, oldest first.
fn history(newest_first: Vec<RunRow>, window: usize) -> Vec<Exchange> {
    let mut budget = window * 4 / HISTORY_WINDOW_SHARE;
    let mut exchanges = Vec::new();
    for run in newest_first {
        let answer = match (run.answer, run.reason) {
            (Some(answer), _) => answer,
            (None, Some(reason)) => format!("(this run ended without an answer: {reason})"),
            (None, None) => continue,
        };
        let Some(left) = budget.checked_sub(run.prompt.len() + answer.len()) else { break };
        budget = left;
        // An answer whose label nobody knows could have been written by anybody.
        let unknown = || Label::new(Integrity::Untrusted, Confidentiality::Private);
        let label = run.answer_label.unwrap_or_else(unknown);
        exchanges.push(Exchange { run_id: run.run_id, prompt: run.prompt, answer, label });
    }
    exchanges.reverse();
    exchanges
}
