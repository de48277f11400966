//! The reader pool: a few threads with a connection each, so that no query runs on the async runtime.
//!
//! Back-pressure: an async caller waits for one of a fixed number of places; a blocking caller occupies its own thread and
//! needs no place. Connections are opened on first use.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};

use crate::block::block_on;
use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::options::{FaultInjector, JournalOptions};
use crate::reader::Reader;
use crate::segment_pool::SegmentPool;

/// How long a thread waits for the next read before it gives back what its connection has cached.
const IDLE: Duration = Duration::from_secs(5);
/// Reads that async callers may have waiting.
const PLACES: usize = 1024;

type Job = Box<dyn FnOnce(Result<&Reader, JournalError>) + Send>;

/// The pool.
#[derive(Debug)]
pub(crate) struct ReaderPool {
    shared: Arc<Shared>,
    places: Semaphore,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Why the last read failed, if the operating system failed it.
    failure: Mutex<Option<JournalError>>,
}

impl Shared {
    fn note<T>(&self, outcome: &Result<T, JournalError>) {
        let failed = outcome.as_ref().err().filter(|error| error.is_transient());
        let mut failure = lock(&self.failure);
        if failed.is_some() || failure.is_some() {
            *failure = failed.cloned();
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    state: State,
}

#[derive(Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Closed,
}

impl ReaderPool {
    pub(crate) fn start(layout: &Layout, options: &JournalOptions) -> Result<Self, JournalError> {
        let shared = Arc::new(Shared::default());
        let segments = Arc::<SegmentPool>::default();
        let mut handles = Vec::new();
        for number in 0..options.readers.max(1) {
            let source =
                Source { layout: layout.clone(), segments: Arc::clone(&segments), faults: options.faults.clone() };
            let shared = Arc::clone(&shared);
            let handle = std::thread::Builder::new()
                .name(format!("journal-read-{number}"))
                .spawn(move || serve(&shared, &source))
                .map_err(|e| JournalError::file("start a reader for", "journal", e))?;
            handles.push(handle);
        }
        Ok(Self { shared, places: Semaphore::new(PLACES), threads: Mutex::new(handles) })
    }

    /// Runs a read and waits for it without blocking the runtime.
    pub(crate) async fn read<T, F>(&self, read: F) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, JournalError> + Send + 'static,
    {
        let _place = self.places.acquire().await.map_err(|_| JournalError::Closed)?;
        self.submit(read)?.await.map_err(|_| JournalError::Closed)?
    }

    /// Runs a read and blocks until it is done.
    pub(crate) fn read_blocking<T, F>(&self, read: F) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, JournalError> + Send + 'static,
    {
        block_on(self.submit(read)?).map_err(|_| JournalError::Closed)?
    }

    fn submit<T, F>(&self, read: F) -> Result<oneshot::Receiver<Result<T, JournalError>>, JournalError>
    where
        T: Send + 'static,
        F: FnOnce(&Reader) -> Result<T, JournalError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let job: Job = Box::new(move |reader| {
            let outcome = reader.and_then(|reader| in_snapshot(reader, read));
            shared.note(&outcome);
            // Nobody may be waiting any more; the answer is then dropped.
            let _ = reply.send(outcome);
        });
        let mut queue = lock(&self.shared.queue);
        if queue.state == State::Closed {
            return Err(JournalError::Closed);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.shared.wake.notify_one();
        Ok(answer)
    }

    /// Why the last read failed, if the operating system failed it.
    pub(crate) fn failure(&self) -> Option<JournalError> {
        lock(&self.shared.failure).clone()
    }

    /// Lets the reads that wait finish, then stops the threads. A read itself may be what lets go of the journal last; its thread is not waited for and ends
    /// by itself.
    pub(crate) fn close(&self) {
        lock(&self.shared.queue).state = State::Closed;
        self.shared.wake.notify_all();
        let own = std::thread::current().id();
        for handle in lock(&self.threads).drain(..).filter(|handle| handle.thread().id() != own) {
            let _ = handle.join();
        }
    }
}

/// Everything a closure reads comes from one state of the database.
fn in_snapshot<T>(reader: &Reader, read: impl FnOnce(&Reader) -> Result<T, JournalError>) -> Result<T, JournalError> {
    let transaction = reader.connection().unchecked_transaction()?;
    let result = read(reader);
    transaction.rollback()?;
    result
}

/// What a thread reads from.
struct Source {
    layout: Layout,
    segments: Arc<SegmentPool>,
    faults: Option<Arc<dyn FaultInjector>>,
}

impl Source {
    fn open(&self) -> Result<Reader, JournalError> {
        Reader::sharing(&self.layout, Arc::clone(&self.segments))
    }

    fn inject_fault(&self) -> Result<(), JournalError> {
        let Some(faults) = &self.faults else { return Ok(()) };
        faults.before_read().map_err(|error| JournalError::file("read", self.layout.database(), error))
    }
}

/// What a thread does next.
enum Next {
    Read(Job),
    /// Nobody has asked for a while.
    Rest,
    End,
}

impl Shared {
    /// Waits for the next read; how long depends on whether there is anything to give back meanwhile.
    fn next(&self, patience: Option<Duration>) -> Next {
        let began = Instant::now();
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Next::Read(job);
            }
            if queue.state == State::Closed {
                return Next::End;
            }
            queue = match patience.map(|patience| patience.saturating_sub(began.elapsed())) {
                Some(Duration::ZERO) => return Next::Rest,
                Some(left) => self.wake.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

fn serve(shared: &Shared, source: &Source) {
    let mut reader: Option<Reader> = None;
    let mut rested = true;
    loop {
        let job = match shared.next((!rested).then_some(IDLE)) {
            Next::Read(job) => job,
            Next::Rest => {
                if let Some(reader) = &reader {
                    db::release_cache(reader.connection());
                }
                rested = true;
                continue;
            }
            Next::End => return,
        };
        rested = false;
        let opened = match reader.take() {
            Some(reader) => Ok(reader),
            None => source.open(),
        };
        match opened {
            Ok(open) => {
                let readable = source.inject_fault().map(|()| &open);
                // A panic in a caller's closure is that caller's defect; the thread and the other callers go on.
                if catch_unwind(AssertUnwindSafe(|| job(readable))).is_ok() {
                    reader = Some(open);
                }
            }
            Err(error) => {
                let _ = catch_unwind(AssertUnwindSafe(|| job(Err(error))));
            }
        }
    }
}

/// A poisoned lock only means that some thread panicked elsewhere; the queue itself is always consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
