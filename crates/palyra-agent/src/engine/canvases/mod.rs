//! Canvases: what runs draw for people, and what people do on it.
//!
//! `draw` carries out the two tools, `submit` takes what a person entered, `follow` tells viewers of new versions. A canvas belongs to a session; every
//! run of the session may draw on it, and it stays when its run is over.
//!
//! INVARIANT: whoever opens, changes or closes a canvas holds the drawing lock of its session from looking at it to the commit; so a patch is
//! applied to exactly the version it was checked against. The lock is another than the session's own, which is held while drivers are waited for.

mod draw;
mod follow;
mod submit;

use palyra_common::{CanvasId, SessionId};
use palyra_journal::NewRecord;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

pub(super) use draw::{Drawing, Drawn};
pub use follow::{CanvasFollower, CanvasNews};
pub use submit::CanvasSubmission;

use super::{Engine, Shared};
use crate::canvas::{CanvasClosed, kind};
use crate::error::AgentError;
use crate::projections::{self, CanvasFilter, CanvasRow};

/// Counts changes of canvases, so that viewers look only when there may be something.
pub(super) struct CanvasBell(watch::Sender<u64>);

impl Default for CanvasBell {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl CanvasBell {
    fn ring(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl Engine {
    /// One canvas with its document.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn canvas(&self, id: CanvasId) -> Result<(CanvasRow, Value), AgentError> {
        self.query(move |reader| projections::canvas(reader.connection(), id))
            .await?
            .ok_or(AgentError::CanvasNotFound(id))
    }

    /// Canvases, newest first.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn canvases(&self, filter: CanvasFilter) -> Result<Vec<CanvasRow>, AgentError> {
        self.query(move |reader| projections::canvases(reader.connection(), &filter)).await
    }

    /// Closes a canvas for good; closing it again changes nothing.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn close_canvas(&self, id: CanvasId, by: &str) -> Result<CanvasRow, AgentError> {
        let by = by.to_owned();
        self.to_the_end(|engine| async move {
            let session_id = engine.canvas(id).await?.0.session_id;
            let _held = engine.shared.locks.drawing(session_id).await;
            let (row, _) = engine.canvas(id).await?;
            if row.closed_at.is_some() {
                return Ok(row);
            }
            let closed = CanvasClosed { canvas_id: id, session_id, by };
            let record = engine.shared.canvas_record(kind::CLOSED, session_id, &closed)?;
            engine.shared.options.journal.append(vec![record]).await?;
            engine.shared.canvas_bell.ring();
            Ok(engine.canvas(id).await?.0)
        })
        .await
    }
}

impl Shared {
    /// A record about a canvas, now.
    fn canvas_record(
        &self,
        kind: &'static str,
        session_id: SessionId,
        payload: &impl Serialize,
    ) -> Result<NewRecord, AgentError> {
        let payload = serde_json::to_vec(payload).map_err(|error| AgentError::Internal(error.to_string()))?;
        Ok(NewRecord::new(kind, self.options.clock.now(), payload).in_session(session_id))
    }
}
