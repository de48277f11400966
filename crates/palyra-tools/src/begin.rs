//! When the effect of a call begins.
//!
//! Between the decision to make a call and its effect lies preparation: copies, connections, sandboxes. A tool that says when the effect begins lets a crash before that
//! moment be what it is: nothing happened, and the call is simply made again.

use tokio::sync::{mpsc, oneshot};

use crate::ToolError;

/// Takes a tool's word that the effect of its call begins. Without anybody who listens, it takes note of nothing.
#[derive(Debug, Clone, Default)]
pub struct BeginReport {
    listener: Option<(String, mpsc::UnboundedSender<Begun>)>,
}

/// A call whose effect is about to begin.
#[derive(Debug)]
pub struct Begun {
    /// The call.
    pub call_id: String,
    /// Told once the beginning is durable; dropped if the call must not begin any more.
    pub recorded: oneshot::Sender<()>,
}

impl BeginReport {
    /// Reports a call there.
    #[must_use]
    pub fn of(call_id: &str, listener: mpsc::UnboundedSender<Begun>) -> Self {
        Self { listener: Some((call_id.to_owned(), listener)) }
    }

    /// Waits until it is durable that the effect has begun. A tool that is [`UntilBegun`](crate::Repeatability::UntilBegun) does nothing before that could not be done twice.
    ///
    /// # Errors
    /// [`ToolError::Cancelled`] when the call must not begin any more.
    pub async fn record(&self) -> Result<(), ToolError> {
        let Some((call_id, listener)) = &self.listener else { return Ok(()) };
        let (recorded, durable) = oneshot::channel();
        listener.send(Begun { call_id: call_id.clone(), recorded }).map_err(|_| ToolError::Cancelled)?;
        durable.await.map_err(|_| ToolError::Cancelled)
    }
}
