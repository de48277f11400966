//! Time and chance as the router sees them, handed to it so that tests decide both.

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use palyra_common::{Clock as _, SystemClock, Timestamp};

/// Where time and chance come from.
pub trait Pace: Send + Sync + 'static {
    /// The present instant. It never goes back.
    fn now(&self) -> Timestamp;

    /// Waits. Dropping the future ends the wait at once.
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()>;

    /// Any number, for spreading waits.
    fn chance(&self) -> u32;
}

/// The machine's own time. It begins at the wall clock and goes on by the steady one, so that setting the clock moves no rest.
#[derive(Debug, Clone, Copy)]
pub struct SystemPace {
    began: Timestamp,
    origin: Instant,
}

impl Default for SystemPace {
    fn default() -> Self {
        Self { began: SystemClock.now(), origin: Instant::now() }
    }
}

impl Pace for SystemPace {
    fn now(&self) -> Timestamp {
        self.began.plus(self.origin.elapsed())
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(wait))
    }

    fn chance(&self) -> u32 {
        crate::wire::chance()
    }
}
