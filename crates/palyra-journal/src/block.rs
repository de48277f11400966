//! Waiting for an answer on a plain thread.
//!
//! The runtime's own blocking receive panics when it is called on a runtime thread by mistake; this merely blocks.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long a thread looks out for its answer before it sleeps. A commit is a few hundred microseconds away, and waking a sleeping thread adds a
/// fifth to that; whoever else wants the processor gets it meanwhile.
const LOOK_OUT: Duration = Duration::from_micros(500);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Holds this thread until the future is done.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let began = Instant::now();
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending if began.elapsed() < LOOK_OUT => std::thread::yield_now(),
            Poll::Pending => std::thread::park(),
        }
    }
}
