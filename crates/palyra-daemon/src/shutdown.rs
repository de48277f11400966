//! How the daemon ends: on a signal or on request, in good order; on a second signal, at once.
//!
//! Ending at once is safe too: what was acknowledged is on the journal. Good order only saves the next start some work.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::DaemonError;

/// Cancels `closing` on SIGTERM or SIGINT and ends the process on the next one.
pub(crate) fn on_signals(closing: CancellationToken) -> Result<(), DaemonError> {
    let listen = |kind| signal(kind).map_err(DaemonError::system("listen for signals"));
    let mut signals =
        Signals { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? };
    // Lives as long as the process on purpose: the second signal may come at any moment of shutting down.
    tokio::spawn(async move {
        let code = signals.next().await;
        tracing::info!(signal = code, "stopping; send the signal again to stop at once");
        closing.cancel();
        let code = signals.next().await;
        std::process::exit(128 + code);
    });
    Ok(())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// The number of the next signal.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
        }
    }
}
