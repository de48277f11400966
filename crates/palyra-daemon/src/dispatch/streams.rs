//! Commands that are answered with a stream: a run's events, a session's events, what happens on a canvas, records of the journal, a verification.
//!
//! Streams are pulled page by page. Whoever does not read stops the reading of the journal and nothing else: a page is small, and what is not yet
//! read is on the disk, not in memory.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use palyra_agent::{Attention, CanvasFollower, CanvasNews, Engine, Followed, News, RunFilter, TapeFollower};
use palyra_client::api::{
    CanvasChangeView, JournalRecordView, RunTapeParams, TailJournalParams, VerifyLine, VerifyProgress,
};
use palyra_client::command::StreamCommand;
use palyra_common::{CanvasId, RunId, RunStreamEvent, SessionId, StableErrorEnvelope};
use palyra_journal::{Journal, VerifyOptions};
use palyra_telemetry::OpenGuard;
use serde::Serialize;
use tokio::sync::mpsc;

use super::caller::Caller;
use super::page_budget::{HeldPage, PageBudget};
use super::refusal::{Refusal, Result};
use super::runs::MAX_PAGE;
use crate::app::App;
use crate::auth::Lease;
use crate::views;

/// Events that are read from the journal at once.
const EVENTS: usize = 256;
/// Records that are read at once.
const RECORDS: u64 = 256;
/// Bytes of records that are read at once, unless a single one has more.
const RECORD_BYTES: usize = 256 << 10;
/// Records that a tail shows when nobody says how many.
const DEFAULT_TAIL: u64 = 20;
/// How often a followed journal is looked at. Looking costs one read of a number in memory.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Progress lines that wait for a slow reader; more are dropped, the next one says more anyway.
const PROGRESS_LINES: usize = 16;

/// Some documents of a stream, in order.
#[derive(Debug)]
pub(crate) enum Page {
    /// Events of runs.
    Events(Vec<Arc<RunStreamEvent>>),
    /// Records.
    Records(Vec<JournalRecordView>),
    /// Steps of a canvas.
    Canvas(Vec<CanvasChangeView>),
    /// How a verification gets on.
    Verification(VerifyLine),
}

impl Page {
    /// Hands each document to a writer.
    pub(crate) fn each<E>(
        &self,
        mut write: impl FnMut(&dyn ErasedDocument) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self {
            Self::Events(events) => events.iter().try_for_each(|event| write(event.as_ref())),
            Self::Records(records) => records.iter().try_for_each(|record| write(record)),
            Self::Canvas(changes) => changes.iter().try_for_each(|change| write(change)),
            Self::Verification(line) => write(line),
        }
    }
}

/// A document of any type that can be written as JSON.
pub(crate) trait ErasedDocument {
    /// Appends its JSON.
    fn write_json(&self, into: &mut Vec<u8>) -> serde_json::Result<()>;
    /// Its position, if it is an event of a run.
    fn event(&self) -> Option<&RunStreamEvent> {
        None
    }
}

impl ErasedDocument for RunStreamEvent {
    fn write_json(&self, into: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(into, self)
    }
    fn event(&self) -> Option<&RunStreamEvent> {
        Some(self)
    }
}

macro_rules! plain_documents {
    ($($type:ty),+) => {
        $(impl ErasedDocument for $type {
            fn write_json(&self, into: &mut Vec<u8>) -> serde_json::Result<()> {
                write(self, into)
            }
        })+
    };
}

plain_documents!(CanvasChangeView, JournalRecordView, VerifyLine);

fn write(document: &impl Serialize, into: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(into, document)
}

/// How long a page may take that is there to be read.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// An open stream, counted for as long as somebody holds it.
pub(crate) struct Documents {
    source: Source,
    /// A page that was read before there was room to hold it.
    waiting: Option<Page>,
    /// What may be held of it that its reader has not taken.
    budget: PageBudget,
    /// The caller's right to go on reading.
    lease: Lease,
    _open: OpenGuard,
}

enum Source {
    Live(Live),
    Stored(Stored),
    Session(WholeSession),
    Records(Records),
    Canvas(Drawings),
    Verification(Verification),
}

impl Documents {
    /// The next documents with the right to hold them, or `None` at the end. A caller whose credential is no longer good is refused. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<HeldPage>> {
        tokio::select! {
            biased;
            refusal = self.lease.lost() => Err(refusal.into()),
            page = self.source.next_held(&mut self.waiting, &self.budget) => page,
        }
    }

    /// All of them; a refusal is the last item.
    pub(crate) fn into_pages(self) -> impl Stream<Item = Result<HeldPage>> + Send {
        futures::stream::unfold(Some(self), |state| async {
            let mut documents = state?;
            match documents.next().await {
                Ok(Some(page)) => Some((Ok(page), Some(documents))),
                Ok(None) => None,
                Err(refusal) => Some((Err(refusal), None)),
            }
        })
    }
}

/// What the next step of a stream costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    /// A page that can be read at once.
    Page,
    /// A small document, which may be waited for.
    Document,
}

impl Source {
    /// The next page, read when there is room for it. Cancel-safe, since what was read too early is left in `waiting`.
    ///
    /// All but the waiting for something to happen is boxed: most streams do nothing else, and have no room set aside for more.
    async fn next_held(&mut self, waiting: &mut Option<Page>, budget: &PageBudget) -> Result<Option<HeldPage>> {
        loop {
            if waiting.is_none() {
                match self.ready().await {
                    Readiness::Page => {}
                    // A reservation is not kept for as long as nothing happens.
                    Readiness::Document => match Box::pin(self.next()).await? {
                        Some(page) => *waiting = Some(page),
                        None => return Ok(None),
                    },
                }
            }
            let permit = Box::pin(budget.acquire()).await;
            if let Some(page) = waiting.take() {
                return Ok(Some(budget.hand_out(page, permit)));
            }
            // What was there a moment ago may turn out to be nothing new; a reservation is not kept for that.
            if let Ok(page) = Box::pin(tokio::time::timeout(READ_TIMEOUT, self.next())).await {
                return Ok(page?.map(|page| budget.hand_out(page, permit)));
            }
        }
    }

    async fn ready(&mut self) -> Readiness {
        match self {
            Self::Live(live) => return live.ready().await,
            Self::Records(records) => records.ready().await,
            Self::Canvas(drawings) => drawings.follower.ready().await,
            Self::Stored(_) | Self::Session(_) => {}
            Self::Verification(_) => return Readiness::Document,
        }
        Readiness::Page
    }

    async fn next(&mut self) -> Result<Option<Page>> {
        match self {
            Self::Live(live) => live.next().await,
            Self::Stored(stored) => stored.next().await,
            Self::Session(session) => session.next().await,
            Self::Records(records) => records.next().await,
            Self::Canvas(drawings) => drawings.next().await,
            Self::Verification(verification) => verification.next().await,
        }
    }
}

/// Opens a stream. The first look happens here, so that what does not exist is a refusal and not a broken stream.
pub(super) async fn open(app: &App, caller: &Caller, command: StreamCommand) -> Result<Documents> {
    let budget =
        app.page_budgets.stream(&caller.principal.id, &caller.connection).map_err(StableErrorEnvelope::from)?;
    let source = match command {
        StreamCommand::RunTape(about) => tape(app, about.target, &about.params).await?,
        StreamCommand::SessionReplay(about) => Source::Session(WholeSession::open(app, about.target).await?),
        StreamCommand::CanvasWatch(about) => {
            let seen = about.params.from_version.unwrap_or_default();
            let follower = app.engine.follow_canvas(about.target, seen).await?;
            Source::Canvas(Drawings { canvas_id: about.target, follower })
        }
        StreamCommand::JournalTail(params) => Source::Records(tail(app, &params)?),
        StreamCommand::JournalExport(params) => Source::Records(Records {
            journal: app.journal.clone(),
            next: params.from_seq.unwrap_or(1).max(1),
            last: Some(app.journal.head().count),
        }),
        StreamCommand::JournalVerify(_) => Source::Verification(Verification::begin(app)),
    };
    let open = app.metrics.stream_opened(caller.transport.into());
    Ok(Documents { source, waiting: None, budget, lease: app.gate.lease(&caller.principal), _open: open })
}

async fn tape(app: &App, run_id: RunId, params: &RunTapeParams) -> Result<Source> {
    if params.limit == Some(0) {
        return Err(Refusal::field("limit", "it must be at least 1"));
    }
    let from_seq = params.from_seq.unwrap_or(1).max(1);
    let left = params.limit.unwrap_or(u64::MAX);
    if params.follow.unwrap_or(false) {
        let follower = app.engine.follow(run_id, from_seq).await?;
        return Ok(Source::Live(Live { follower, left, progress: params.progress.unwrap_or(false) }));
    }
    // Whether there is one is looked at now; what is on its tape only when there is room for it.
    app.engine.run(run_id).await?;
    Ok(Source::Stored(Stored { engine: app.engine.clone(), run_id, next_seq: from_seq, left }))
}

/// Until the run is over.
struct Live {
    follower: TapeFollower,
    left: u64,
    /// Whether the client wants to know how calls get on.
    progress: bool,
}

impl Live {
    async fn ready(&mut self) -> Readiness {
        if self.left == 0 {
            return Readiness::Page;
        }
        let attention = if self.progress { Attention::TapeAndProgress } else { Attention::TapeAlone };
        match self.follower.ready(attention).await {
            News::Tape => Readiness::Page,
            // It may turn out that there is nothing new to tell, and then this waits for what comes next.
            News::Progress => Readiness::Document,
        }
    }

    async fn next(&mut self) -> Result<Option<Page>> {
        if self.left == 0 {
            return Ok(None);
        }
        let followed = if self.progress {
            self.follower.next_with_progress().await?
        } else {
            self.follower.next().await?.map(Followed::Events)
        };
        Ok(match followed {
            None => None,
            Some(Followed::Progress(news)) => Some(Page::Events(news.into_iter().map(Arc::new).collect())),
            Some(Followed::Events(mut events)) => {
                events.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= events.len() as u64;
                Some(Page::Events(events))
            }
        })
    }
}

/// As far as it is recorded now.
struct Stored {
    engine: Engine,
    run_id: RunId,
    next_seq: u64,
    left: u64,
}

impl Stored {
    async fn next(&mut self) -> Result<Option<Page>> {
        if self.left == 0 {
            return Ok(None);
        }
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX).min(EVENTS);
        let events = self.engine.tape(self.run_id, self.next_seq, limit).await?;
        let Some(last) = events.last() else { return Ok(None) };
        self.next_seq = last.seq + 1;
        self.left = self.left.saturating_sub(events.len() as u64);
        Ok(Some(Page::Events(events.into_iter().map(Arc::new).collect())))
    }
}

/// The runs of a session one after the other, oldest first, as far as they are recorded now.
struct WholeSession {
    engine: Engine,
    /// Newest first: the next one is the last.
    ahead: Vec<RunId>,
    present: Option<Stored>,
}

impl WholeSession {
    async fn open(app: &App, session_id: SessionId) -> Result<Self> {
        let mut ahead = Vec::new();
        let mut before = None;
        loop {
            let filter = RunFilter { session_id: Some(session_id), before, limit: MAX_PAGE, ..RunFilter::default() };
            let rows = app.engine.runs(filter).await?;
            before = rows.last().map(|row| row.run_id);
            let whole = rows.len() == MAX_PAGE as usize;
            ahead.extend(rows.into_iter().map(|row| row.run_id));
            if !whole {
                break;
            }
        }
        Ok(Self { engine: app.engine.clone(), ahead, present: None })
    }

    async fn next(&mut self) -> Result<Option<Page>> {
        loop {
            if let Some(present) = &mut self.present {
                match present.next().await? {
                    Some(page) => return Ok(Some(page)),
                    None => self.present = None,
                }
            }
            let Some(run_id) = self.ahead.pop() else { return Ok(None) };
            let engine = self.engine.clone();
            self.present = Some(Stored { engine, run_id, next_seq: 1, left: u64::MAX });
        }
    }
}

fn tail(app: &App, params: &TailJournalParams) -> Result<Records> {
    let count = app.journal.head().count;
    let next = match (params.n, params.from_seq) {
        (Some(_), Some(_)) => return Err(Refusal::field("from_seq", "give either `n` or `from_seq`")),
        (n, None) => (count + 1).saturating_sub(n.unwrap_or(DEFAULT_TAIL)).max(1),
        (None, Some(from_seq)) => from_seq.max(1),
    };
    let last = if params.follow.unwrap_or(false) { None } else { Some(count) };
    Ok(Records { journal: app.journal.clone(), next, last })
}

/// What happens on a canvas until it is closed.
struct Drawings {
    canvas_id: CanvasId,
    follower: CanvasFollower,
}

impl Drawings {
    async fn next(&mut self) -> Result<Option<Page>> {
        let canvas_id = self.canvas_id;
        let view = |news| match news {
            CanvasNews::Document { version, document } => {
                CanvasChangeView { canvas_id, version, document: Some(document), patch: None }
            }
            CanvasNews::Patch { version, patch } => {
                CanvasChangeView { canvas_id, version, document: None, patch: Some(patch) }
            }
        };
        let news = self.follower.next().await?;
        Ok(news.map(|news| Page::Canvas(news.into_iter().map(view).collect())))
    }
}

/// Records from a position to another one, or for ever.
struct Records {
    journal: Journal,
    next: u64,
    last: Option<u64>,
}

impl Records {
    /// Waits for a record that is not yet there, if the stream has no end.
    async fn ready(&self) {
        while self.last.is_none() && self.next > self.journal.head().count {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn next(&mut self) -> Result<Option<Page>> {
        self.ready().await;
        let end = self.last.unwrap_or_else(|| self.journal.head().count);
        if self.next > end {
            return Ok(None);
        }
        let (from, limit) = (self.next, (end - self.next + 1).min(RECORDS));
        let records = self.journal.read(move |reader| reader.page(from, limit as usize, RECORD_BYTES)).await?;
        let Some(newest) = records.last().map(|record| record.seq) else {
            return Err(Refusal::internal(format!("record {from} exists but cannot be read")));
        };
        let views: std::result::Result<Vec<_>, _> = records.into_iter().map(views::record).collect();
        let views = views.map_err(|error| Refusal::internal(format!("a payload is not valid JSON: {error}")))?;
        self.next = newest + 1;
        Ok(Some(Page::Records(views)))
    }
}

/// The lines of a verification, which runs beside the writer on a thread of its own. A client that goes away does not stop it; it only
/// reads.
struct Verification {
    received: mpsc::Receiver<Result<VerifyLine>>,
    reported: bool,
}

impl Verification {
    fn begin(app: &App) -> Self {
        let (lines, received) = mpsc::channel::<Result<VerifyLine>>(PROGRESS_LINES);
        let progress = lines.clone();
        let options = VerifyOptions {
            progress: Some(Arc::new(move |at: palyra_journal::VerifyProgress| {
                let line = VerifyLine::Progress(VerifyProgress { done: at.records, total: at.total });
                let _ = progress.try_send(Ok(line));
            })),
            projections: super::projections(),
            ..VerifyOptions::default()
        };
        let root = app.state_root.clone();
        tokio::task::spawn_blocking(move || {
            let report = palyra_journal::verify(&root, options);
            let line = report.map(|report| VerifyLine::Report(views::verified(report))).map_err(Refusal::from);
            // Nobody may be listening any more.
            let _ = lines.blocking_send(line);
        });
        Self { received, reported: false }
    }

    async fn next(&mut self) -> Result<Option<Page>> {
        if self.reported {
            return Ok(None);
        }
        let line = match self.received.recv().await {
            Some(line) => line?,
            None => return Err(Refusal::internal("the verification ended without a report")),
        };
        self.reported = matches!(line, VerifyLine::Report(_));
        Ok(Some(Page::Verification(line)))
    }
}
