//! Work that goes to its end although its caller leaves.
//!
//! A transport drops the future of a request when its client disconnects. What changes state must not stop at whichever `await` it has reached by then: the
//! journal would say one thing and the memory another, and a key would be accepted without ever getting its answer.

use super::refusal::{Refusal, Result};
use crate::app::App;

/// Does `work` in a task of its own. Whoever asked may wait for what comes of it, or leave; ending the daemon waits for it.
pub(crate) async fn to_the_end<T: Send + 'static>(
    app: &App,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match app.work.spawn(work).await {
        Ok(done) => done,
        Err(error) => Err(Refusal::internal(format!("a command did not come to its end: {error}"))),
    }
}

#[cfg(test)]
#[path = "to_the_end_tests.rs"]
mod tests;
