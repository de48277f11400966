//! Blocking work that stops when its call is cancelled.
//!
//! All file work runs on blocking threads. A *read* returns to the caller the moment the token fires, and its thread stops at the
//! next check. A *write* is waited for: it looks at the token until its point of no return and is finished after it, so that
//! "cancelled" never hides a change that was made.

use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

use crate::ToolError;

/// The cancellation token as blocking code sees it.
#[derive(Debug, Clone)]
pub(crate) struct Cancel(CancellationToken);

impl Cancel {
    pub(crate) fn of(token: &CancellationToken) -> Self {
        Self(token.clone())
    }

    /// For work that nobody can cancel.
    pub(crate) fn never() -> Self {
        Self(CancellationToken::new())
    }

    /// An error as soon as the call is cancelled.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        if self.0.is_cancelled() { Err(ToolError::Cancelled) } else { Ok(()) }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// A reader that fails once the call is cancelled, for libraries that read by themselves.
pub(crate) struct CancelRead<R>(pub(crate) R, pub(crate) Cancel);

impl<R: Read> Read for CancelRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.is_set() {
            return Err(io::Error::other("cancelled"));
        }
        self.0.read(buffer)
    }
}

/// Runs a read; returns at once when cancelled.
pub(crate) async fn read<T: Send + 'static>(
    token: &CancellationToken,
    work: impl FnOnce(&Cancel) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cancel = Cancel(token.clone());
    cancel.check()?;
    let task = tokio::task::spawn_blocking(move || work(&cancel));
    tokio::select! {
        () = token.cancelled() => Err(ToolError::Cancelled),
        result = task => result.unwrap_or_else(|error| Err(ToolError::Internal(error.to_string()))),
    }
}

/// Runs a write; its thread decides when it is too late to cancel.
pub(crate) async fn write<T: Send + 'static>(
    token: &CancellationToken,
    work: impl FnOnce(&Cancel) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cancel = Cancel(token.clone());
    cancel.check()?;
    let task = tokio::task::spawn_blocking(move || work(&cancel));
    task.await.unwrap_or_else(|error| Err(ToolError::Internal(error.to_string())))
}
