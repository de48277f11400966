//! The clock of running guests: a thread that moves the engine's epoch on while anything runs, and sleeps otherwise.
//!
//! Guest code looks at the epoch on every loop and call. At each tick it gives way to other tasks and checks whether it was called off or its time is up, so
//! [`TICK`] bounds how long a guest can keep a thread to itself. An idle daemon is not woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// Between two ticks.
const TICK: Duration = Duration::from_millis(10);

/// Owns the thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    active: AtomicUsize,
    stopped: AtomicBool,
}

/// Keeps the clock going while a call runs.
#[derive(Debug)]
pub(crate) struct Active<'a>(&'a Ticker);

impl Ticker {
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (engine, seen) = (engine.weak(), Arc::clone(&shared));
        let thread = thread::Builder::new().name("plugin-ticker".to_owned()).spawn(move || tick(&engine, &seen))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Says that a call runs until the guard is dropped.
    pub(crate) fn active(&self) -> Active<'_> {
        if self.shared.active.fetch_add(1, Ordering::AcqRel) == 0
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
        Active(self)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.shared.active.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn tick(engine: &EngineWeak, shared: &Shared) {
    while !shared.stopped.load(Ordering::Acquire) {
        if shared.active.load(Ordering::Acquire) == 0 {
            // A call that begins just now has unparked already, and parking returns at once.
            thread::park();
            continue;
        }
        thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}
