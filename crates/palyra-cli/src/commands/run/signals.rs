//! Signals that ask a command to end. They are listened for before a run is made, so that none comes too early to cancel it.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CliError;

/// The signals of this process.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Absent where hangups are ignored: whoever starts a command with `nohup` wants it to survive its terminal.
    hangup: Option<Signal>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// Ctrl-C.
    Interrupt,
    /// Somebody ends this process.
    Terminate,
    /// The terminal was closed.
    Hangup,
}

impl Signals {
    /// From now on signals no longer end this process by themselves.
    pub(crate) fn listen() -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(|source| CliError::Runtime { source });
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = if ignores_hangup(&status) { None } else { Some(listen(SignalKind::hangup())?) };
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, hangup })
    }

    /// The next one. Cancel-safe.
    pub(super) async fn next(&mut self) -> Received {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Received::Interrupt,
            _ = self.terminate.recv() => Received::Terminate,
            _ = hangup => Received::Hangup,
        }
    }
}

impl Received {
    /// Why the run was cancelled, for its record.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Interrupt => "cancelled at the terminal",
            Self::Terminate => "`palyra run` was ended by SIGTERM",
            Self::Hangup => "`palyra run` was ended by SIGHUP",
        }
    }
}

/// Whether a process with this `/proc/…/status` ignores SIGHUP, the first bit of the mask.
fn ignores_hangup(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_is_ignored_stays_ignored() {
        assert!(ignores_hangup("Name:\tpalyra\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("Name:\tpalyra\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores_hangup(""));
    }
}
