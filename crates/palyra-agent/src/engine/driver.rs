//! The driver: the task that owns one run.
//!
//! It gathers what happens to the run (commands, model events, tool outcomes, deadlines), feeds it to the machine, journals the input together with the
//! actions that follow, and carries the actions out *after* that commit. Decisions are asked for before the commit, because they have no effect of their
//! own; so a model turn, its decisions and the intents of its calls are one commit.
//!
//! When the journal cannot take a record (a full disk), the driver waits and tries again: nothing is carried out meanwhile, nothing is lost. Stopping is the
//! exception that needs no record first.

mod interruption;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{
    ClockOffsets, ErrorCategory, MODEL_CALL, RunId, RunLifecycleHookPhase, RunStreamEvent, Timestamp, ToStableError,
    ToolVerdict,
};
use palyra_journal::NewRecord;
use palyra_tools::{Begun, Workspace};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

pub(super) use self::interruption::{DOWN_TOLERANCE_MS, gap as clock_gap};
use super::canvases::Drawing;
use super::compaction::Compaction;
use super::flow::Flow;
use super::hooks::{AfterRun, HookCalls, Request};
use super::images::Images;
use super::judging::Judging;
use super::later_changes::LaterChanges;
use super::live_tape::{LiveTape, Weighed};
use super::model_call::{ModelCall, ModelNews};
use super::supervise::Restarts;
use super::take_back::{TakeBack, TakenBack};
use super::tool_call::{ToolCalls, ToolNews};
use super::{Engine, INBOX, LiveRun, Shared};
use crate::error::AgentError;
use crate::machine::{Action, Input, Machine, Phase, Rejected};
use crate::own_tools::{INSPECT, SEARCH};
use crate::projections::RunRow;
use crate::started_with::Actor;
use crate::tape::{self, EntryRef, Note};

/// Pause between attempts to append to a journal that cannot take records now.
pub(super) const APPEND_RETRY: Duration = Duration::from_millis(250);

/// Something that somebody wants to happen to a run.
pub(super) struct Command {
    /// What happens, all of it or nothing.
    pub(super) inputs: Vec<Input>,
    /// Who gives the run something to go by; none for inputs that only let it go on or end.
    pub(super) from: Option<Actor>,
    /// The record that stands first in its commit, for whoever asked.
    pub(super) first: Option<NewRecord>,
    /// Records of no tape that are committed with it.
    pub(super) beside: Vec<NewRecord>,
    /// Answered once the inputs are durable, or refused.
    pub(super) done: oneshot::Sender<Result<(), AgentError>>,
}

/// One run and everything under way for it.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) machine: Machine,
    workspace: Arc<Workspace>,
    tape: Arc<LiveTape>,
    next_seq: u64,
    pub(super) staged: Vec<NewRecord>,
    staged_events: Vec<Weighed>,
    /// Whether what is staged labels files.
    labels_staged: bool,
    model: Option<ModelCall>,
    tools: ToolCalls,
    hooks: HookCalls,
    /// Which bindings the machine was told of last.
    hooks_told: Option<u64>,
    /// Whom to tell that the run is over.
    after_run: Option<Request>,
    compaction: Option<Compaction>,
    judging: Option<Judging>,
    taking_back: Option<TakeBack>,
    later: LaterChanges,
    images: Images,
    flow: Flow,
    slot: Option<OwnedSemaphorePermit>,
    started_at: Option<Timestamp>,
    /// How far the clocks are apart, as far as the machine knows.
    clock_offsets: ClockOffsets,
}

impl Driver {
    /// A driver for a machine whose tape ends at `last_seq`.
    pub(super) fn new(shared: Arc<Shared>, machine: Machine, workspace: Arc<Workspace>, last_seq: u64) -> Self {
        Self::on_tape(shared, machine, workspace, last_seq, LiveTape::new(last_seq))
    }

    /// The same for a tape that may already be followed.
    pub(super) fn on_tape(
        shared: Arc<Shared>,
        machine: Machine,
        workspace: Arc<Workspace>,
        last_seq: u64,
        tape: Arc<LiveTape>,
    ) -> Self {
        let clock_offsets = ClockOffsets::read(shared.options.clock.as_ref());
        Self {
            tools: ToolCalls::new(Arc::clone(&tape.progress)),
            flow: Flow::new(Arc::clone(&workspace)),
            shared,
            machine,
            workspace,
            tape,
            next_seq: last_seq + 1,
            staged: Vec::new(),
            staged_events: Vec::new(),
            labels_staged: false,
            model: None,
            hooks: HookCalls::default(),
            hooks_told: None,
            after_run: None,
            compaction: None,
            judging: None,
            taking_back: None,
            later: LaterChanges::default(),
            images: Images::default(),
            slot: None,
            started_at: None,
            clock_offsets,
        }
    }

    /// The same with the images of the run.
    pub(super) fn with_images(mut self, images: Images) -> Self {
        self.images = images;
        self
    }

    /// The tape that followers look at.
    pub(super) fn live_tape(&self) -> Arc<LiveTape> {
        Arc::clone(&self.tape)
    }

    /// The same on the tape of a driver before it, so that whoever follows the run goes on.
    pub(super) fn on_live_tape(mut self, tape: Arc<LiveTape>) -> Self {
        self.tools = ToolCalls::new(Arc::clone(&tape.progress));
        self.tape = tape;
        self
    }

    /// Position of the last record that is staged or committed.
    pub(super) fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// Registers the run and drives it to its end in a task of its own.
    pub(super) fn spawn(self, run_id: RunId, actions: Vec<Action>) {
        let (sender, inbox) = mpsc::channel(INBOX);
        let shared = Arc::clone(&self.shared);
        shared.lock_live().insert(run_id, LiveRun { inbox: sender, tape: Arc::clone(&self.tape) });
        let span = self.span();
        shared.drivers.spawn(self.run_to_end(inbox, Ok(actions)).instrument(span));
    }

    /// Drives a registered run to its end, or to the end of the daemon, and leaves. A driver that fails, be it at the first step, is restarted.
    pub(super) async fn run_to_end(self, mut inbox: mpsc::Receiver<Command>, first: Result<Vec<Action>, AgentError>) {
        let (run_id, session_id) = (self.machine.spec().run_id, self.machine.spec().session_id);
        let shared = Arc::clone(&self.shared);
        let engine = Engine { shared: Arc::clone(&shared) };
        let mut restarts = Restarts::default();
        let (mut driver, mut next) = (self, first);
        let ended = loop {
            let driven = match next {
                Ok(actions) => driver.drive(&mut inbox, actions).await,
                Err(error) => Err(error),
            };
            let Err(error) = driven else { break Some(driver) };
            match engine.restart_driver(run_id, driver, error, &mut restarts).await {
                Some((restarted, actions)) => (driver, next) = (restarted, Ok(actions)),
                None => break None,
            }
        };
        // Whoever sent something too late holds the session's lock while waiting for an answer, and the queue of the session is processed under that lock.
        drop(inbox);
        if let Some(ended) = &shared.options.run_ended {
            ended(run_id);
        }
        let after_run = match ended {
            Some(driver) => driver.into_after_run(),
            // It ended while it had no driver; its hooks are notified from what the tape says.
            None => engine.owed(run_id).await.unwrap_or_default(),
        };
        match after_run {
            None => {
                shared.lock_live().remove(&run_id);
                engine.run_left(session_id).await;
            }
            // What waits in the session does not wait for hooks; whoever writes to the tape of this run does.
            Some(after_run) => {
                let telling = async {
                    after_run.carry_out().await;
                    shared.lock_live().remove(&run_id);
                };
                tokio::join!(telling, engine.run_left(session_id));
            }
        }
    }

    /// The span of everything that is done for the run. It belongs to nothing: the run goes on after whoever began it was answered.
    pub(super) fn span(&self) -> Span {
        let spec = self.machine.spec();
        tracing::error_span!(
            parent: None,
            "run",
            run_id = %spec.run_id,
            session_id = %spec.session_id,
            principal = spec.owner.as_str(),
            phase = Empty,
            reason = Empty,
        )
    }

    /// Tells the run's span how the run ended.
    fn note_ending(&self) {
        if let Phase::Completed(end) | Phase::Failed(end) | Phase::Aborted(end) | Phase::Expired(end) =
            self.machine.state()
        {
            let span = Span::current();
            span.record("phase", self.machine.phase().as_str());
            span.record("reason", end.reason.as_str());
        }
    }

    /// What lists would show for a run that was just accepted.
    pub(super) fn row(&self) -> RunRow {
        let spec = self.machine.spec();
        RunRow {
            run_id: spec.run_id,
            session_id: spec.session_id,
            owner: spec.owner.clone(),
            phase: self.machine.phase(),
            reason: None,
            detail: None,
            prompt: spec.prompt.clone(),
            workspace: spec.workspace.clone(),
            model: spec.model.shown(),
            created_at: self.machine.created_at(),
            started_at: self.started_at,
            ended_at: None,
            turns: 0,
            tool_calls: 0,
            answer: None,
            answer_label: None,
            undone: false,
        }
    }

    /// Starts a queued run; the caller commits and then carries out the actions.
    pub(super) async fn begin(&mut self, slot: OwnedSemaphorePermit, at: Timestamp) -> Result<Vec<Action>, AgentError> {
        self.slot = Some(slot);
        self.started_at = Some(at);
        self.feed(vec![Input::Started], at).await.map(|(actions, _)| actions)
    }

    /// What is left to do for a run that is over. Everything else of it, its slot among it, is given back.
    fn into_after_run(self) -> Option<AfterRun> {
        let request = self.after_run.filter(|_| self.machine.is_over())?;
        Some(AfterRun { shared: self.shared, machine: self.machine, request, tape: self.tape, next_seq: self.next_seq })
    }

    async fn drive(&mut self, inbox: &mut mpsc::Receiver<Command>, actions: Vec<Action>) -> Result<(), AgentError> {
        self.carry_out(actions);
        let stopping = self.shared.stopping.clone();
        while !self.machine.is_over() {
            if !matches!(self.machine.state(), Phase::Queued | Phase::Running(_)) {
                // Whoever waits for a person must not keep others from working.
                self.slot = None;
            }
            let deadline = self.sleep_until(self.machine.next_deadline());
            let queued = matches!(self.machine.state(), Phase::Queued);
            let slots = Arc::clone(&self.shared.slots);
            tokio::select! {
                biased;
                () = stopping.cancelled() => return self.drain().await,
                command = inbox.recv() => match command {
                    Some(command) => self.command(command).await?,
                    None => return Ok(()),
                },
                news = self.tools.next() => self.tool_news(news).await?,
                answered = self.hooks.next() => self.apply(vec![answered]).await?,
                taken_back = TakeBack::next(&mut self.taking_back) => self.taken_back(taken_back).await?,
                news = ModelCall::next(&mut self.model) => self.model_news(news).await?,
                summary = Compaction::next(&mut self.compaction) => self.apply(vec![summary]).await?,
                verdict = Judging::next(&mut self.judging) => self.apply(vec![verdict]).await?,
                slot = slots.acquire_owned(), if queued => {
                    if let Ok(slot) = slot {
                        let at = self.shared.options.clock.now();
                        let actions = self.begin(slot, at).await?;
                        self.commit_patiently().await?;
                        self.carry_out(actions);
                    }
                }
                () = deadline => {
                    // A deadline that only a suspend or the setting of the clock has reached moves on.
                    let mut due = self.clock_changes();
                    if due.is_empty() {
                        due = self.machine.due(self.shared.options.clock.now());
                    }
                    self.apply(due).await?;
                }
            }
        }
        self.note_ending();
        Ok(())
    }

    /// The daemon is stopping: no model is asked any more, but a round of calls that is under way is brought to its end, because a call
    /// that was asked for and not begun would look like one whose outcome is unknown.
    async fn drain(&mut self) -> Result<(), AgentError> {
        self.model = None;
        self.compaction = None;
        self.judging = None;
        // Hooks are asked again after the restart.
        self.hooks = HookCalls::default();
        while !self.tools.is_empty() {
            let finished = match self.tools.next().await {
                ToolNews::Finished(finished) => *finished,
                begun @ ToolNews::Begun(_) => {
                    self.tool_news(begun).await?;
                    continue;
                }
            };
            let at = self.shared.options.clock.now();
            let (actions, _) = self.feed(vec![finished], at).await?;
            self.commit_patiently().await?;
            let calls = |action: &Action| matches!(action, Action::Execute { .. } | Action::StopTool { .. });
            self.carry_out(actions.into_iter().filter(calls).collect());
        }
        Ok(())
    }

    async fn command(&mut self, command: Command) -> Result<(), AgentError> {
        let Command { inputs, from, first, beside, done } = command;
        let at = self.shared.options.clock.now();
        if let Err(refused) = self.try_all(&inputs, at) {
            let _ = done.send(Err(AgentError::rejected(self.machine.spec().run_id, &refused)));
            return Ok(());
        }
        if inputs.iter().any(|input| matches!(input, Input::Cancel { .. })) {
            // Stopping needs no record first: it only ever makes less happen.
            self.model = None;
            self.tools.stop_all();
        }
        if let Some(actor) = from {
            self.stage_actor(actor, &inputs, at)?;
        }
        let (actions, refused) = self.feed(inputs, at).await?;
        if let Some(refused) = refused {
            let _ = done.send(Err(AgentError::rejected(self.machine.spec().run_id, &refused)));
            return Ok(());
        }
        self.staged.splice(0..0, first);
        self.staged.extend(beside);
        self.commit_patiently().await?;
        let _ = done.send(Ok(()));
        self.carry_out(actions);
        Ok(())
    }

    /// Puts whoever steers the run on its tape, before what they give, unless they do it with the credential that started the run.
    pub(super) fn stage_actor(&mut self, actor: Actor, inputs: &[Input], at: Timestamp) -> Result<(), AgentError> {
        let mut trial = self.machine.clone();
        let is_taken = inputs.iter().all(|input| trial.step(input.clone(), at).is_ok());
        if is_taken && actor.with != self.machine.spec().started_with {
            self.stage(EntryRef::Note(&Note::Steered(actor)), at)?;
        }
        Ok(())
    }

    /// Whether the machine takes several inputs one after the other. A single one is simply tried.
    fn try_all(&self, inputs: &[Input], at: Timestamp) -> Result<(), Rejected> {
        if inputs.len() > 1 {
            let mut trial = self.machine.clone();
            for input in inputs {
                trial.step(input.clone(), at)?;
            }
        }
        Ok(())
    }

    async fn tool_news(&mut self, news: ToolNews) -> Result<(), AgentError> {
        let Begun { call_id, recorded } = match news {
            ToolNews::Finished(finished) => return self.apply(vec![*finished]).await,
            ToolNews::Begun(begun) => begun,
        };
        let at = self.shared.options.clock.now();
        let (actions, refused) = self.feed(vec![Input::ToolBegun { call_id }], at).await?;
        self.commit_patiently().await?;
        if refused.is_none() {
            // Whoever was cancelled meanwhile does not listen any more.
            let _ = recorded.send(());
        }
        self.carry_out(actions);
        Ok(())
    }

    async fn model_news(&mut self, news: ModelNews) -> Result<(), AgentError> {
        match news {
            ModelNews::Text(delta) => self.apply(vec![*delta]).await,
            ModelNews::Over(inputs) => {
                self.model = None;
                self.apply(inputs).await
            }
        }
    }

    /// Feeds inputs, commits, carries out what follows.
    pub(super) async fn apply(&mut self, inputs: Vec<Input>) -> Result<(), AgentError> {
        let at = self.shared.options.clock.now();
        let (actions, refused) = self.feed(inputs, at).await?;
        if let Some(refused) = refused {
            tracing::debug!(run_id = %self.machine.spec().run_id, %refused, "an input came too late");
        }
        self.commit_patiently().await?;
        self.carry_out(actions);
        Ok(())
    }

    /// Feeds inputs and the decisions they ask for; stages the records; returns what is to be carried out after the commit.
    async fn feed(&mut self, inputs: Vec<Input>, at: Timestamp) -> Result<(Vec<Action>, Option<Rejected>), AgentError> {
        let mut queue = VecDeque::from(inputs);
        if let Some(bound) = self.hooks_bound() {
            queue.push_front(bound);
        }
        for adjusted in self.clock_changes().into_iter().rev() {
            queue.push_front(adjusted);
        }
        let mut to_do = Vec::new();
        let mut refused = None;
        while let Some(mut input) = queue.pop_front() {
            self.shared.label_written(&self.machine, &self.workspace, &mut input);
            self.later.note(&self.shared, &self.machine, &self.workspace, &mut input).await;
            self.labels_staged |= matches!(&input, Input::ToolFinished { result, .. } if result.wrote.is_some());
            let staged = self.render(EntryRef::Input(&input), at)?;
            let actions = match self.machine.step(input, at) {
                Ok(actions) => actions,
                Err(rejected) => {
                    refused = Some(rejected);
                    continue;
                }
            };
            self.push(staged);
            for action in actions {
                self.stage(EntryRef::Action(&action), at)?;
                match action {
                    Action::Decide { call_id, tool, arguments } => {
                        let options = &self.shared.options;
                        let decided = self.flow.decide(options, &self.machine, at, &call_id, &tool, &arguments).await;
                        if decided.verdict == ToolVerdict::Deny {
                            // A call that never runs is still one that was asked for.
                            drop(
                                tracing::error_span!(
                                    "tool_call",
                                    tool = tool.as_str(),
                                    call_id = call_id.as_str(),
                                    outcome = "denied"
                                )
                                .entered(),
                            );
                        }
                        queue.push_back(Input::Decided(Box::new(decided)));
                    }
                    other => to_do.push(other),
                }
            }
        }
        Ok((to_do, refused))
    }

    /// The change set was taken back: what was done to the files is noted beside it.
    async fn taken_back(&mut self, TakenBack { input, note }: TakenBack) -> Result<(), AgentError> {
        if let Some(note) = note {
            self.stage(EntryRef::Note(&note), self.shared.options.clock.now())?;
        }
        self.apply(vec![input]).await
    }

    /// What the machine has to be told about bindings first, if they changed since it was told last.
    fn hooks_bound(&mut self) -> Option<Input> {
        let bound = self.shared.hooks.current();
        if self.hooks_told == Some(bound.generation) || self.machine.is_over() {
            return None;
        }
        self.hooks_told = Some(bound.generation);
        (self.machine.hooks() != bound.of_runs).then(|| Input::HooksBound { bindings: bound.of_runs.clone() })
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::CallModel { turn, attempt, delay_ms, .. } => {
                    self.model = Some(ModelCall::begin(
                        &self.shared.options,
                        &self.machine,
                        &self.images,
                        turn,
                        attempt,
                        Duration::from_millis(delay_ms),
                        self.tape.progress.open(MODEL_CALL),
                    ));
                }
                Action::StopModel { .. } => self.model = None,
                Action::Execute { call_id, tool, arguments, .. } if tool == INSPECT => {
                    self.tools.inspect(&self.shared, &self.machine, call_id, arguments);
                }
                Action::Execute { call_id, tool, arguments, .. } if tool == SEARCH => {
                    self.tools.search(&self.shared, &self.machine, call_id, arguments);
                }
                Action::Execute { call_id, effect_id, tool, arguments } if Drawing::is_one(&tool) => {
                    self.tools.draw(&self.shared, &self.machine, call_id, effect_id, tool, arguments);
                }
                Action::Execute { call_id, effect_id, tool, arguments } => {
                    self.tools.begin(&self.shared, &self.machine, &self.workspace, call_id, effect_id, tool, arguments);
                }
                Action::StopTool { call_id } => self.tools.stop(&call_id),
                Action::Compact { replaces, .. } => {
                    self.compaction = Some(Compaction::begin(&self.shared, &self.machine, replaces));
                }
                Action::GrantBudget { micro_usd } => {
                    self.shared.options.spending.grant(self.machine.spec().run_id, micro_usd);
                }
                Action::RunHooks { occurrence_id, phase, call_id, hooks } => {
                    let request = Request { occurrence_id, phase, call_id, hooks };
                    if phase == RunLifecycleHookPhase::AfterRun {
                        self.after_run = Some(request);
                    } else {
                        self.hooks.begin(&self.shared, &self.machine, &request);
                    }
                }
                Action::StopHooks { occurrence_id } => self.hooks.stop(&occurrence_id),
                Action::Judge { judgement } => {
                    self.judging = Some(Judging::begin(&self.shared, &self.machine, judgement));
                }
                Action::StopJudge { .. } => self.judging = None,
                Action::TakeBack { number, paths } => {
                    self.taking_back =
                        Some(TakeBack::begin(&self.shared, &self.machine, &self.workspace, number, paths));
                }
                // Recorded; nothing to carry out.
                Action::Decide { .. }
                | Action::HandBack { .. }
                | Action::RequestApproval(_)
                | Action::WithdrawApproval { .. }
                | Action::NotRun { .. }
                | Action::Attest(_)
                | Action::UpdatePlan(_)
                | Action::DrawCanvas(_)
                | Action::Status(_) => {}
            }
        }
    }

    /// Adds a record to the next commit.
    pub(super) fn stage(&mut self, entry: EntryRef<'_>, at: Timestamp) -> Result<(), AgentError> {
        let staged = self.render(entry, at)?;
        self.push(staged);
        Ok(())
    }

    fn render(&self, entry: EntryRef<'_>, at: Timestamp) -> Result<(NewRecord, RunStreamEvent), AgentError> {
        let spec = self.machine.spec();
        let record = NewRecord::new(entry.kind(), at, entry.payload()?).in_session(spec.session_id);
        Ok((record, tape::event(spec.run_id, 0, at, entry)))
    }

    /// Numbers are given when a record is really staged, so that refused inputs leave no gap.
    fn push(&mut self, (record, mut event): (NewRecord, RunStreamEvent)) {
        event.seq = self.next_seq;
        let bytes = record.payload.len();
        self.staged.push(record.on_tape(event.run_id, self.next_seq));
        self.staged_events.push(Weighed { event, bytes });
        self.next_seq += 1;
    }

    /// Commits the staged records after `first`, which belong to no tape. Fails when the journal does.
    pub(super) async fn commit_with(&mut self, first: Vec<NewRecord>) -> Result<(), AgentError> {
        let mut batch = first;
        batch.append(&mut self.staged);
        self.shared.options.journal.append(batch).await?;
        self.tape.publish(std::mem::take(&mut self.staged_events));
        Ok(())
    }

    /// Commits the staged records, waiting for a journal that cannot take them now.
    async fn commit_patiently(&mut self) -> Result<(), AgentError> {
        if self.staged.is_empty() {
            return Ok(());
        }
        let run_id = self.machine.spec().run_id;
        let mut given_back = loop {
            match self.given_back().await {
                Ok(given_back) => break given_back,
                Err(error) if is_unavailable(&error) => wait_for_journal(run_id, &error).await,
                Err(error) => return Err(error),
            }
        };
        let mut batch = std::mem::take(&mut self.staged);
        batch.append(&mut given_back);
        loop {
            // The clone is only needed when the append fails, but it is small beside an fsync.
            match self.shared.options.journal.append(batch.clone()).await {
                Ok(_) => break,
                Err(error) if is_unavailable(&error) => wait_for_journal(run_id, &error).await,
                Err(error) => return Err(error.into()),
            }
        }
        if std::mem::take(&mut self.labels_staged) {
            // Before anything of this run goes on: what it reads next has to have its label.
            self.note_file_labels().await?;
        }
        self.tools.outcomes_are_durable(&self.shared.options.effects);
        self.tape.publish(std::mem::take(&mut self.staged_events));
        Ok(())
    }

    async fn note_file_labels(&mut self) -> Result<(), AgentError> {
        let engine = Engine { shared: Arc::clone(&self.shared) };
        loop {
            match engine.note_file_labels().await {
                Err(error) if is_unavailable(&error) => {
                    wait_for_journal(self.machine.spec().run_id, &error).await;
                }
                noted => return noted,
            }
        }
    }

    /// Tells the machine of a rebuilt run why it is at work again; the caller carries out what follows.
    pub(super) async fn take_up(&mut self, why: Vec<Input>) -> Result<Vec<Action>, AgentError> {
        let at = self.shared.options.clock.now();
        let (actions, _) = self.feed(why, at).await?;
        self.commit_patiently().await?;
        Ok(actions)
    }

    fn sleep_until(&self, deadline: Option<Timestamp>) -> impl Future<Output = ()> + use<> {
        let wait = deadline.map(|deadline| deadline.since(self.shared.options.clock.now()));
        async move {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        }
    }
}

/// Whether the same may succeed later.
pub(super) fn is_unavailable(error: &dyn ToStableError) -> bool {
    error.to_stable().category == ErrorCategory::Availability
}

/// The pause before it is tried again.
pub(super) fn wait_for_journal(run_id: RunId, error: &dyn ToStableError) -> impl Future<Output = ()> + use<> {
    tracing::warn!(%run_id, error = %error.to_stable(), "waiting for the journal");
    tokio::time::sleep(APPEND_RETRY)
}
