//! Telling the service manager how the daemon is.
//!
//! Messages are datagrams that nobody answers. One that cannot be sent is no reason to stop: the service manager then draws its own conclusions.

use std::future::Future;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::Environment;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

/// Longest status line; more does not fit on a screen.
const LONGEST_STATUS: usize = 200;

/// The way to the service manager, if there is one; clones lead to the same one.
#[derive(Debug, Clone, Default)]
pub struct Notify {
    to: Option<Arc<(UnixDatagram, SocketAddr)>>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// The way that the environment names: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` with `WATCHDOG_PID`.
    #[must_use]
    pub fn from_environment(environment: &Environment) -> Self {
        let to = environment.get("NOTIFY_SOCKET").and_then(|name| open(name.as_bytes()));
        let watchdog = to.as_ref().and_then(|_| watchdog_period(environment));
        Self { to: to.map(Arc::new), watchdog }
    }

    /// The daemon serves from now on.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The daemon ends.
    pub fn stopping(&self, status: &str) {
        self.send(&format!("STOPPING=1\nSTATUS={}", one_line(status)));
    }

    /// How the daemon is, in one line for people.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", one_line(status)));
    }

    /// How long the service manager waits for a sign of life before it restarts the daemon, if it watches at all.
    #[must_use]
    pub fn watchdog_period(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Gives a sign of life twice in every period, but only while `alive` says so in time. Runs until it is dropped; ends at once if nobody watches.
    pub async fn keep_alive<F, A>(self, mut alive: F)
    where
        F: FnMut() -> A + Send,
        A: Future<Output = bool> + Send,
    {
        let Some(period) = self.watchdog else { return };
        let half = period / 2;
        let mut ticks = interval_at(Instant::now(), half);
        // After a stall the next sign counts, not the ones that were missed.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match timeout(half, alive()).await {
                Ok(true) => self.send("WATCHDOG=1"),
                Ok(false) => {
                    tracing::error!("the liveness check failed; the service manager may restart the daemon");
                }
                Err(_) => {
                    tracing::error!("the liveness check timed out; the service manager may restart the daemon");
                }
            }
        }
    }

    fn send(&self, message: &str) {
        if let Some((socket, address)) = self.to.as_deref()
            && let Err(error) = socket.send_to_addr(message.as_bytes(), address)
        {
            tracing::debug!(%error, "cannot notify the service manager");
        }
    }
}

fn open(name: &[u8]) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match name {
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)).ok()?,
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt as _;
            SocketAddr::from_abstract_name(name).ok()?
        }
        _ => return None,
    };
    let socket = UnixDatagram::unbound().ok()?;
    // A manager that does not read must not hold up the daemon.
    socket.set_nonblocking(true).ok()?;
    Some((socket, address))
}

fn watchdog_period(environment: &Environment) -> Option<Duration> {
    let for_somebody_else = environment.text("WATCHDOG_PID").is_some_and(|pid| pid.parse() != Ok(process::id()));
    let micros: u64 = environment.text("WATCHDOG_USEC")?.parse().ok()?;
    (micros > 0 && !for_somebody_else).then(|| Duration::from_micros(micros))
}

/// A line break would begin the next field of the message.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_STATUS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_makes_no_sense_means_nobody_watches() {
        for pairs in [
            vec![],
            vec![("NOTIFY_SOCKET", "relative/path"), ("WATCHDOG_USEC", "1000000")],
            vec![("NOTIFY_SOCKET", ""), ("WATCHDOG_USEC", "1000000")],
            vec![("WATCHDOG_USEC", "1000000")],
            vec![("NOTIFY_SOCKET", "/run/x"), ("WATCHDOG_USEC", "0")],
            vec![("NOTIFY_SOCKET", "/run/x"), ("WATCHDOG_USEC", "soon")],
            vec![("NOTIFY_SOCKET", "/run/x"), ("WATCHDOG_USEC", "1000000"), ("WATCHDOG_PID", "1")],
        ] {
            let notify = Notify::from_environment(&Environment::from_pairs(pairs.clone()));
            assert_eq!(notify.watchdog_period(), None, "{pairs:?}");
            notify.ready("nobody listens");
        }
    }

    #[test]
    fn a_status_is_one_line() {
        assert_eq!(one_line("a\nREADY=1\r\u{7}b"), "a READY=1  b");
        assert_eq!(one_line(&"x".repeat(500)).len(), LONGEST_STATUS);
    }
}
