//! The far end of the probe tools: counts what really arrived, which is the only honest place to count effects.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// One effect that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The effect id that the engine gave the call.
    pub effect_id: String,
    /// The tool.
    pub tool: String,
    /// The number in the call's arguments.
    pub n: u64,
}

#[derive(Debug, Default)]
struct Shared {
    deliveries: Mutex<Vec<Delivery>>,
    arrived: Condvar,
    holding: AtomicBool,
    stopping: AtomicBool,
}

/// Listens on a Unix socket, keeps every delivery, then acknowledges it.
#[derive(Debug)]
pub struct Receiver {
    directory: TempDir,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Receiver {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn start() -> Result<Self> {
        let directory = TempDir::with_prefix("palyra-probe-")?;
        let listener = UnixListener::bind(directory.path().join("s"))?;
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new().name("receiver".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                if of_thread.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let of_connection = Arc::clone(&of_thread);
                // A connection lives as long as one call; it ends when the daemon does.
                let _ = std::thread::Builder::new().spawn(move || receive(stream, &of_connection));
            }
        })?;
        Ok(Self { directory, shared, acceptor: Some(acceptor) })
    }

    /// The socket to give to the probe daemon.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// Everything that arrived so far, in order.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        locked(&self.shared.deliveries).clone()
    }

    /// Keeps acknowledgements back from now on, so that calls stay under way.
    pub fn hold(&self) {
        self.shared.holding.store(true, Ordering::SeqCst);
    }

    /// Acknowledges again, also what was held back.
    pub fn release(&self) {
        self.shared.holding.store(false, Ordering::SeqCst);
    }

    /// Waits until so many deliveries arrived; says whether they did in time.
    #[must_use]
    pub fn wait_for(&self, count: usize, patience: Duration) -> bool {
        let waited = self
            .shared
            .arrived
            .wait_timeout_while(locked(&self.shared.deliveries), patience, |deliveries| deliveries.len() < count);
        waited.is_ok_and(|(deliveries, _)| deliveries.len() >= count)
    }

    /// The socket's directory, for tests that look at it.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        let _ = UnixStream::connect(self.socket());
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn receive(stream: UnixStream, shared: &Shared) {
    let Ok(mut answer) = stream.try_clone() else { return };
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let Ok(delivery) = serde_json::from_str::<Delivery>(&line) else { return };
        locked(&shared.deliveries).push(delivery);
        shared.arrived.notify_all();
        while shared.holding.load(Ordering::SeqCst) && !shared.stopping.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(2));
        }
        if answer.write_all(b"ok\n").is_err() {
            return;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
