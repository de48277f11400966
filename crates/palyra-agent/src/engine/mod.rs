//! The engine: all runs of one daemon.
//!
//! [`Engine`] is a cheap handle. Each unfinished run has one *driver*, a task that owns its machine and is the only writer of its tape; whatever is to
//! happen to a run is sent to its driver. Finished runs are read from the journal.
//!
//! `create` accepts runs, `discovery` completes the tools there are, `driver` drives runs (`model_call`, `tool_call`, `compaction` and `judging` carry out what its machine asks for), `recover` takes them up
//! again after a restart, `supervise` restarts a driver that failed, `query` and `follow` read, `control` steers, `approvals` takes answers, `undo` takes changes back, `client_tools` hands calls back
//! to clients, `clock_watch` records steps of the clock, `hooks` lets plugins look at what happens, `agents` keeps named ways of working, `sessions` holds what runs belong to, `auxiliary` does
//! small jobs with models that have no tools, `recall` finds what was said before, `canvases` shows what runs draw, `tool_offer` chooses the tools that a model is told about, `tool_search` finds
//! the others, `request_size` refuses what no window can hold, `probe` says what a run begins with.

mod agents;
mod approvals;
mod artifacts;
pub(crate) mod auxiliary;
mod canvases;
mod client_tools;
mod clock_watch;
mod compaction;
mod context_view;
mod control;
mod create;
mod discovery;
mod driver;
pub(crate) mod embeddings;
mod file_labels;
mod files;
mod flow;
mod follow;
mod give_back;
mod given_files;
mod given_history;
mod hooks;
mod images;
mod inspect_call;
mod instructions;
mod judging;
mod later_changes;
mod live_tape;
mod locks;
mod model_call;
pub(crate) mod model_tests;
mod options;
mod page;
mod probe;
mod progress;
mod query;
mod question;
mod recall;
mod recover;
mod request_size;
mod safety;
mod sessions;
pub(crate) mod spending;
mod strict;
mod summaries;
mod supervise;
mod surroundings;
mod take_back;
#[cfg(feature = "testing")]
mod testing;
mod tool_call;
mod tool_offer;
mod tool_search;
mod undo;
mod wire_cost;
mod workspaces;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use palyra_common::{RunId, SessionId, ToStableError as _};
use palyra_journal::{FirstCommit, Reader};
use palyra_tools::TreeBook;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

pub use approvals::{Answer, PatternFilter};
pub use auxiliary::{AuxiliaryDone, NewAuxiliaryTask};
pub use canvases::{CanvasFollower, CanvasNews, CanvasSubmission};
pub use client_tools::{ClientCall, ClientResult};
pub use clock_watch::{CLOCK_STEPPED, ClockStepped};
pub use context_view::{ContextSegment, ContextView, OfferedTool, SegmentKind};
pub use control::Resumption;
pub use create::NewRun;
pub use discovery::{NoDiscovery, ToolDiscovery, UnavailableSource};
pub use file_labels::Endorsement;
pub use follow::{Attention, Followed, News, TapeFollower};
pub use given_files::GivenFile;
pub use given_history::GivenExchange;
pub use hooks::HookDispatch;
pub use instructions::{ProjectFile, WithheldInstructions};
pub use model_tests::ModelTests;
pub use options::{EngineOptions, RunEnded};
pub use query::{CallNotRun, ReducedIsolation, RunCost, RunDetails, Timings};
pub use recall::{RankedBy, RecallQuery, Recalled, RecalledPiece};
pub use safety::Safety;
pub use sessions::{
    ApprovalExport, CallExport, CallOutcomeExport, CompactionPlan, CompactionReverted, ExchangeExport, ExchangeOutline,
    InputWhereabouts, NewSession, Resolved, RunExport, SessionAccount, SessionEvent, SessionEventKind, SessionExport,
    SessionInput, Submitted,
};
pub use spending::Spending;
#[cfg(feature = "testing")]
pub use testing::{Judged as JudgedProposal, UnrecordedEngine, UnrecordedRun};
pub use undo::{UndoOptions, UndoneRun};
pub use wire_cost::{WireCost, core_prompt_tokens};
pub use workspaces::WorkspaceRoots;

use self::agents::AgentBook;
use self::canvases::CanvasBell;
use self::driver::{APPEND_RETRY, Command, is_unavailable};
use self::file_labels::FileLabelBook;
use self::hooks::HookBook;
use self::live_tape::LiveTape;
use self::locks::Locks;
use crate::error::AgentError;
use crate::projections;

/// Commands a run's inbox holds before senders wait.
const INBOX: usize = 32;
/// Pause between looks whether a driver is gone.
const LEAVING: Duration = Duration::from_millis(5);

/// All runs of one daemon.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// What drivers and handles share.
struct Shared {
    options: EngineOptions,
    artifacts: Arc<dyn palyra_tools::Artifacts>,
    slots: Arc<Semaphore>,
    live: Mutex<HashMap<RunId, LiveRun>>,
    locks: Locks,
    /// Which hooks are bound to what.
    hooks: HookBook,
    /// Rings when something was drawn.
    canvas_bell: CanvasBell,
    /// Which agents there are.
    agents: AgentBook,
    /// Held from reading what people agreed to until that is in force: whoever reads later puts it in force later.
    agreeing: tokio::sync::Mutex<()>,
    /// Which contents of files have a label.
    file_labels: Arc<FileLabelBook>,
    /// Which files are somebody else's.
    trees: Arc<TreeBook>,
    /// Where auxiliary tasks wait.
    auxiliary: Arc<auxiliary::Line>,
    /// Sessions in which something may wait for its turn, so that the end of an ordinary run costs no look at the journal.
    waiting: Mutex<HashSet<SessionId>>,
    /// Sessions in which something waited when their state was restored from a backup that nobody has accepted yet; their queues stay as they are.
    held_queues: HashSet<SessionId>,
    /// Sessions for whose next run images are being looked at.
    looking: Mutex<HashSet<SessionId>>,
    drivers: TaskTracker,
    stopping: CancellationToken,
    /// How far the clock went on from the last sign of life of the daemon before, in milliseconds; nobody knows how much of it passed.
    down_ms: i64,
}

/// A run that has a driver.
#[derive(Clone)]
struct LiveRun {
    inbox: mpsc::Sender<Command>,
    tape: Arc<LiveTape>,
}

impl Engine {
    /// Builds the engine. Every unfinished run is resumed in the background.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn start(options: EngineOptions) -> Result<Self, AgentError> {
        let down_ms = down_ms(&options);
        let held_queues = held_queues(&options).await?;
        let shared = Arc::new(Shared {
            down_ms,
            artifacts: Arc::new(artifacts::JournalArtifacts::new(&options.journal)),
            slots: Arc::new(Semaphore::new(options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS))),
            auxiliary: auxiliary::Line::new(options.auxiliary_concurrent),
            canvas_bell: CanvasBell::default(),
            live: Mutex::default(),
            locks: Locks::default(),
            hooks: HookBook::default(),
            agents: AgentBook::default(),
            agreeing: tokio::sync::Mutex::default(),
            file_labels: Arc::default(),
            trees: Arc::new(TreeBook::new(options.trusted.clone())),
            waiting: Mutex::default(),
            held_queues,
            looking: Mutex::default(),
            drivers: TaskTracker::new(),
            stopping: CancellationToken::new(),
            options,
        });
        let engine = Self { shared };
        engine.open_books().await?;
        engine.cancel_orphaned_tasks().await?;
        engine.put_patterns_in_force().await?;
        engine.open_hook_book().await?;
        engine.open_agent_book().await?;
        engine.open_file_labels().await?;
        engine.record_down_time().await?;
        engine.watch_clock();
        // Before anything is driven: whoever ends from now on tells its hooks itself.
        if engine.waits_for_acceptance() {
            tracing::warn!(
                "this state was restored from a backup; unfinished work waits until the restore is accepted"
            );
            engine.recover().await?;
        } else {
            engine.tell_hooks_of_ended_runs().await?;
            engine.recover().await?;
            engine.work_off_all().await?;
        }
        Ok(engine)
    }

    /// Stops taking work, lets tools that are under way report (for at most `grace`), and leaves every unfinished run to the next start.
    pub async fn stop(&self, grace: Duration) {
        self.shared.stopping.cancel();
        self.shared.drivers.close();
        if tokio::time::timeout(grace, self.shared.drivers.wait()).await.is_err() {
            tracing::warn!("some tools did not finish in time; their outcome will be unknown after the restart");
        }
    }

    /// Whether this state was restored from a backup and nobody said yet that its work may go on. What happened after the backup was made is not known
    /// here, so nothing that was under way goes on by itself: it might happen twice.
    fn waits_for_acceptance(&self) -> bool {
        self.shared.options.journal.restore_waits()
    }

    /// How many runs have a driver now.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.shared.lock_live().len()
    }

    /// The runs that have a driver now, in no order.
    #[must_use]
    pub fn unfinished_runs(&self) -> Vec<RunId> {
        self.shared.lock_live().keys().copied().collect()
    }

    /// Carries something out to its end, also if whoever asked for it goes away in the middle: a lock must not be given back between a check and its commit,
    /// and a run that is on the journal needs its driver.
    async fn to_the_end<T, F>(&self, work: impl FnOnce(Self) -> F) -> Result<T, AgentError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, AgentError>> + Send + 'static,
    {
        let work = work(self.clone()).in_current_span();
        let task = match FirstCommit::current() {
            Some(scope) => self.shared.drivers.spawn(scope.scope(work)),
            None => self.shared.drivers.spawn(work),
        };
        task.await.unwrap_or_else(|error| Err(AgentError::Internal(error.to_string())))
    }

    /// Reads what a change that is durable came to, however long the disk takes to say it: until then memory says something else than the journal, and whoever made
    /// the change does not know that it is made.
    async fn read_patiently<T, F>(&self, read: impl Fn() -> F) -> Result<T, AgentError>
    where
        F: Future<Output = Result<T, AgentError>>,
    {
        loop {
            match read().await {
                Err(error) if is_unavailable(&error) => {
                    tracing::warn!(error = %error.to_stable(), "a change on the journal is not in force yet");
                    tokio::select! {
                        () = self.shared.stopping.cancelled() => return Err(error),
                        () = tokio::time::sleep(APPEND_RETRY) => {}
                    }
                }
                done => return done,
            }
        }
    }

    fn live(&self, run_id: RunId) -> Option<LiveRun> {
        self.shared.lock_live().get(&run_id).cloned()
    }

    /// Waits until the last driver of a run that is over has left: on its way out it may still write to the tape.
    async fn wait_until_left(&self, run_id: RunId) {
        while self.live(run_id).is_some() {
            tokio::time::sleep(LEAVING).await;
        }
    }
}

impl Shared {
    fn lock_live(&self) -> MutexGuard<'_, HashMap<RunId, LiveRun>> {
        // The map is whole between any two statements, so a panic elsewhere does not spoil it.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_waiting(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        // See above.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_looking(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        // See above.
        self.looking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far the clock went on since the last sign of life of an earlier daemon.
fn down_ms(options: &EngineOptions) -> i64 {
    options.journal.last_alive_at().map_or(0, |last| options.clock.now().0.saturating_sub(last.0))
}

/// The sessions whose queues wait until a restore is accepted: what waits there may have been taken after the backup was made.
async fn held_queues(options: &EngineOptions) -> Result<HashSet<SessionId>, AgentError> {
    if !options.journal.restore_waits() {
        return Ok(HashSet::new());
    }
    let waiting = |reader: &Reader| projections::sessions_with_waiting_inputs(reader.connection()).map_err(Into::into);
    Ok(options.journal.read(waiting).await?.into_iter().collect())
}
