//! Writing to sessions: what becomes of it while a run is at work, and what waits for its turn.
//!
//! An input is on the journal before anybody is told of it. What became of it is a record in the same commit as the run that it began, or the
//! message that it became; so it is worked off once, whatever happens to the process.

use palyra_common::{InputMode, RequestId, RunId, RunLifecyclePhase, SessionId, ToStableError as _};
use palyra_journal::NewRecord;

use super::work_off::Worked;
use super::{MAX_KEY, check_name};
use crate::engine::create::NewRun;
use crate::engine::images::Looked;
use crate::engine::{Engine, client_tools, files};
use crate::error::AgentError;
use crate::machine::Input;
use crate::projections::{self, Fate, QueuedInput, RunRow, SessionRow};
use crate::session::{InputGiven, InputWithdrawn, InputsTaken, Taken, kind};
use crate::spec::{MAIN_AGENT, OutsideSender};
use crate::started_with::{Actor, StartedWith};

/// Most inputs that wait in one session. Whoever keeps writing to a run that does not end would otherwise fill the journal and make every look at the
/// queue slower.
const MAX_WAITING: usize = 256;

/// Something to write to a session.
#[derive(Debug, Clone)]
pub struct SessionInput {
    /// What is written.
    pub text: String,
    /// What becomes of it while a run is at work.
    pub mode: InputMode,
    /// The directory to work in; otherwise the one of the session's settings, or of its newest run.
    pub workspace: Option<String>,
    /// Who writes, and whose run it becomes.
    pub by: String,
    /// With what; a run that begins with it was started with the same.
    pub given_with: StartedWith,
    /// Its name within the session; the same name with the same content is the same input.
    pub input_id: Option<String>,
    /// The agent that answers, if not the session's.
    pub agent: Option<String>,
    /// Who really wrote, if somebody outside did. It then begins a run of its own, whatever its mode: nobody outside steers.
    pub from: Option<OutsideSender>,
    /// Records that are committed with the input, if it is taken.
    pub beside: Vec<NewRecord>,
}

impl SessionInput {
    /// The input as it is recorded.
    fn given(&self, session_id: SessionId, input_id: String) -> InputGiven {
        InputGiven {
            session_id,
            input_id,
            text: self.text.clone(),
            mode: if self.from.is_some() { InputMode::FollowUp } else { self.mode },
            workspace: self.workspace.clone(),
            by: self.by.clone(),
            given_with: self.given_with.clone(),
            agent: self.agent.clone(),
            from: self.from.clone(),
        }
    }
}

/// What became of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    /// A run began with it.
    Started(RunRow),
    /// It was put into the run at work.
    Steered(RunRow),
    /// It waits for its turn.
    Queued {
        /// Its name within the session.
        input_id: String,
        /// How many are before it, itself included.
        position: u64,
    },
}

/// Where an input that was given before is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputWhereabouts {
    /// It waits for its turn.
    Waiting,
    /// It is in this run.
    InRun(RunId),
    /// It was taken back, or no run could be made of it.
    Gone,
}

impl Engine {
    /// Where an input is, if it was given before.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn input_whereabouts(
        &self,
        session_id: SessionId,
        input_id: &str,
    ) -> Result<Option<InputWhereabouts>, AgentError> {
        let input_id = input_id.to_owned();
        let known = self.query(move |reader| projections::input(reader.connection(), session_id, &input_id)).await?;
        Ok(known.map(|known| match known.fate {
            Fate::Waiting => InputWhereabouts::Waiting,
            Fate::Taken(run_id, _) => InputWhereabouts::InRun(run_id),
            Fate::Gone => InputWhereabouts::Gone,
        }))
    }

    /// Writes to a session. With no run at work it begins one; otherwise its mode says what becomes of it. At most one run of a session is at work as
    /// long as all its runs come this way.
    ///
    /// # Errors
    /// When there is no such session, it is put away, there is no text, or no directory to work in.
    pub async fn submit_input(&self, session_id: SessionId, input: SessionInput) -> Result<Submitted, AgentError> {
        self.to_the_end(|engine| async move { engine.submit_now(session_id, input).await }).await
    }

    /// What became of this very input, if it was given before under its name.
    pub(in crate::engine) async fn known_input(
        &self,
        session_id: SessionId,
        input: &SessionInput,
    ) -> Result<Option<Submitted>, AgentError> {
        let Some(input_id) = input.input_id.clone() else { return Ok(None) };
        self.submitted_before(&input.given(session_id, input_id)).await
    }

    async fn submit_now(&self, session_id: SessionId, input: SessionInput) -> Result<Submitted, AgentError> {
        if self.shared.stopping.is_cancelled() {
            return Err(AgentError::Stopping);
        }
        if input.text.trim().is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        if let Some(id) = &input.input_id {
            check_name("input_id", id, MAX_KEY)?;
        }
        self.shared.options.journal.admission()?;
        let input_id = input.input_id.clone().unwrap_or_else(|| RequestId::generate().to_string());
        let given = input.given(session_id, input_id);
        let beside = input.beside;
        let looked = self.look_for(&given).await?;
        let _session = self.shared.locks.session(session_id).await;
        let row = self.session(session_id).await?;
        if let Some(known) = self.submitted_before(&given).await? {
            return Ok(known);
        }
        if row.archived_at.is_some() {
            return Err(AgentError::SessionArchived(session_id));
        }
        let workspace = self.workspace_for(&row, given.workspace.as_deref(), given.agent.as_deref()).await?;
        let (at_work, waiting) = self
            .query(move |reader| {
                let db = reader.connection();
                Ok((projections::run_at_work(db, session_id)?, projections::waiting_inputs(db, session_id)?))
            })
            .await?;
        match (at_work, looked) {
            // What nobody has looked at, because a run was at work a moment ago, waits until somebody has.
            (None, Some(looked)) if waiting.is_empty() => {
                return self.start_with(given, workspace, beside, looked).await;
            }
            (Some(run), _) if matches!(given.mode, InputMode::Steer | InputMode::Interrupt) => {
                // Whoever may not work where the run does has no part in it; what they wrote begins a run of their own.
                let allowed = self.check_workspace(&run.workspace, &given.by, given.given_with.workspace).await;
                if allowed.is_ok()
                    && let Some(steered) = self.put_into(&run, &given, &beside).await?
                {
                    return Ok(steered);
                }
            }
            _ => {}
        }
        if waiting.len() >= MAX_WAITING {
            return Err(AgentError::InputQueueFull { waiting: waiting.len() });
        }
        // The set first: the end of the run at work looks there after its last commit; see `run_left`.
        self.shared.lock_waiting().insert(session_id);
        let mut records = vec![self.session_record(kind::INPUT, session_id, &given)?];
        records.extend(beside);
        self.shared.options.journal.append(records).await?;
        // The run may have ended just before the input was there.
        match self.work_off_held(session_id, None).await {
            Ok(Worked::Through) => {}
            Ok(Worked::LookFirst(_)) => self.work_off_later(session_id),
            Err(error) => {
                tracing::warn!(%session_id, error = %error.to_stable(), "the input stays queued");
                self.work_off_later(session_id);
            }
        }
        match self.submitted_before(&given).await? {
            Some(submitted) => Ok(submitted),
            None => Err(AgentError::InputNotFound(given.input_id)),
        }
    }

    /// What waits in a session, in the order in which it is worked off.
    ///
    /// # Errors
    /// When there is no such session.
    pub async fn queued_inputs(&self, session_id: SessionId) -> Result<Vec<QueuedInput>, AgentError> {
        self.session(session_id).await?;
        self.query(move |reader| projections::waiting_inputs(reader.connection(), session_id)).await
    }

    /// Takes back an input that waits.
    ///
    /// # Errors
    /// When no such input waits in the session.
    pub async fn withdraw_input(&self, session_id: SessionId, input_id: &str, by: &str) -> Result<(), AgentError> {
        let withdrawn = InputWithdrawn { session_id, input_id: input_id.to_owned(), by: by.to_owned() };
        self.to_the_end(|engine| async move {
            let _session = engine.shared.locks.session(session_id).await;
            let waiting = engine.queued_inputs(session_id).await?;
            if !waiting.iter().any(|input| input.input_id == withdrawn.input_id) {
                return Err(AgentError::InputNotFound(withdrawn.input_id));
            }
            let record = engine.session_record(kind::INPUT_WITHDRAWN, session_id, &withdrawn)?;
            engine.shared.options.journal.append(vec![record]).await?;
            Ok(())
        })
        .await
    }

    /// What became of this very input, if it was given before.
    async fn submitted_before(&self, given: &InputGiven) -> Result<Option<Submitted>, AgentError> {
        let (session_id, input_id) = (given.session_id, given.input_id.clone());
        let (known, waiting) = self
            .query(move |reader| {
                let db = reader.connection();
                Ok((projections::input(db, session_id, &input_id)?, projections::waiting_inputs(db, session_id)?))
            })
            .await?;
        let Some(known) = known else { return Ok(None) };
        let input = &known.input;
        if (&input.text, input.mode, &input.by) != (&given.text, given.mode, &given.by) {
            return Err(AgentError::IdempotencyConflict(given.input_id.clone()));
        }
        match known.fate {
            Fate::Waiting => {
                let before = waiting.iter().take_while(|other| other.input_id != given.input_id).count();
                Ok(Some(Submitted::Queued { input_id: given.input_id.clone(), position: before as u64 + 1 }))
            }
            Fate::Taken(run_id, Taken::Started) => Ok(Some(Submitted::Started(self.run(run_id).await?))),
            Fate::Taken(run_id, Taken::Steered) => Ok(Some(Submitted::Steered(self.run(run_id).await?))),
            Fate::Gone => Err(AgentError::InputNotFound(given.input_id.clone())),
        }
    }

    /// Has the images of an input looked at that would begin a run now, before its session is locked: others need not wait for that. None if it has to
    /// wait for its turn anyway. What is wrong with the input is said later.
    async fn look_for(&self, given: &InputGiven) -> Result<Option<(RunId, Looked)>, AgentError> {
        let run_id = RunId::generate();
        let nothing = Ok(Some((run_id, Looked::default())));
        if !files::has_references(&given.text) {
            return nothing;
        }
        let session_id = given.session_id;
        let row = self.session(session_id).await?;
        let is_busy = self
            .query(move |reader| {
                let db = reader.connection();
                let at_work = projections::run_at_work(db, session_id)?.is_some();
                Ok(at_work || !projections::waiting_inputs(db, session_id)?.is_empty())
            })
            .await?;
        if is_busy {
            return Ok(None);
        }
        if self.submitted_before(given).await?.is_some() {
            return nothing;
        }
        let Ok(workspace) = self.workspace_for(&row, given.workspace.as_deref(), given.agent.as_deref()).await else {
            return nothing;
        };
        Ok(Some((run_id, self.look_beforehand(&run_of(given.clone(), workspace), run_id).await?)))
    }

    /// Begins a run with an input that has nothing to wait for.
    async fn start_with(
        &self,
        given: InputGiven,
        workspace: String,
        beside: Vec<NewRecord>,
        (run_id, looked): (RunId, Looked),
    ) -> Result<Submitted, AgentError> {
        let mut records = self.taken(&given, run_id, Taken::Started)?;
        records.extend(beside);
        let run = self.create_run_held(run_of(given, workspace), run_id, records, looked).await?;
        Ok(Submitted::Started(run))
    }

    /// Puts an input into the run at work; nothing if that run takes no more.
    async fn put_into(
        &self,
        run: &RunRow,
        given: &InputGiven,
        beside: &[NewRecord],
    ) -> Result<Option<Submitted>, AgentError> {
        let message = Input::UserMessage { text: given.text.clone(), mode: given.mode };
        let mut attempts = vec![vec![message.clone()]];
        let held = run.phase == RunLifecyclePhase::Paused && !client_tools::is_pending(run);
        if held && given.mode == InputMode::Interrupt {
            // At once also means that a run which somebody holds goes on.
            attempts.insert(0, vec![Input::Resume { by: given.by.clone(), over_budget: None, model: None }, message]);
        }
        let actor = Actor { by: given.by.clone(), with: given.given_with.clone() };
        for inputs in attempts {
            let mut records = self.taken(given, run.run_id, Taken::Steered)?;
            records.extend_from_slice(beside);
            match self.send_all(run.run_id, inputs, Some(&actor), records).await {
                Ok(()) => return Ok(Some(Submitted::Steered(self.run(run.run_id).await?))),
                Err(AgentError::WrongPhase { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The records of an input that is taken as soon as it is given.
    fn taken(&self, given: &InputGiven, run_id: RunId, how: Taken) -> Result<Vec<NewRecord>, AgentError> {
        let session_id = given.session_id;
        let taken = InputsTaken { session_id, input_ids: vec![given.input_id.clone()], run_id, how };
        Ok(vec![
            self.session_record(kind::INPUT, session_id, given)?,
            self.session_record(kind::INPUT_TAKEN, session_id, &taken)?,
        ])
    }

    /// The directory that a run of the session works in.
    pub(in crate::engine) async fn workspace_for(
        &self,
        row: &SessionRow,
        given: Option<&str>,
        agent: Option<&str>,
    ) -> Result<String, AgentError> {
        let agent = agent.or(row.settings.agent.as_deref()).unwrap_or(MAIN_AGENT);
        let of_agent = || self.shared.agents.find(agent).ok().flatten().and_then(|row| row.profile.workspace);
        if let Some(named) = given.map(str::to_owned).or_else(|| row.settings.workspace.clone()).or_else(of_agent) {
            return Ok(named);
        }
        let session_id = row.session_id;
        let newest = self.query(move |reader| projections::newest_workspace(reader.connection(), session_id)).await?;
        newest.ok_or(AgentError::WorkspaceMissing(session_id))
    }
}

/// The run that an input begins.
fn run_of(given: InputGiven, workspace: String) -> NewRun {
    NewRun {
        prompt: given.text,
        workspace,
        session_id: Some(given.session_id),
        owner: Some(given.by),
        started_with: given.given_with,
        agent: given.agent,
        from: given.from,
        ..NewRun::default()
    }
}
