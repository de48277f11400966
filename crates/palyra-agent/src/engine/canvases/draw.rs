//! Carrying out `palyra.a2ui.render` and `palyra.a2ui.patch`.
//!
//! What is drawn is on the journal before the call is over. A call that is begun again after a crash is recognised by its effect id and gives
//! the outcome that it had.

use std::sync::Arc;

use palyra_a2ui::Document;
use palyra_common::{CanvasId, Label, RunId, SessionId, ToStableError as _};
use palyra_tools::ToolError;
use serde_json::Value;

use crate::canvas::{CanvasChanged, CanvasDrawn, CanvasOpened, kind};
use crate::engine::Shared;
use crate::error::AgentError;
use crate::machine::Machine;
use crate::own_tools::{PATCH, PatchInput, RENDER, RenderInput};
use crate::projections;

/// Most characters of a title.
const MAX_TITLE: usize = 120;
/// Most canvases of one session that are open at a time. A run that draws a new one in a loop would otherwise bury what the person looks at.
const MAX_OPEN: u64 = 32;

/// What a call gave.
pub(in crate::engine) struct Drawn {
    /// What the model reads: ids and numbers of ours alone.
    pub(in crate::engine) content: String,
    pub(in crate::engine) canvas: CanvasDrawn,
}

/// Everything a drawing needs, taken from the run before it starts.
pub(in crate::engine) struct Drawing {
    session_id: SessionId,
    run_id: RunId,
    effect_id: String,
    label: Label,
    wanted: Wanted,
}

enum Wanted {
    Open { title: String, document: Box<Document> },
    Change { canvas_id: CanvasId, base_version: u64, patch: Value },
}

impl Drawing {
    /// Whether a tool is carried out here.
    pub(in crate::engine) fn is_one(tool: &str) -> bool {
        matches!(tool, RENDER | PATCH)
    }

    /// Reads a call. What it shows is as good as the worst that the planner has seen, or that it put in by reference.
    pub(in crate::engine) fn prepare(
        machine: &Machine,
        call_id: &str,
        effect_id: String,
        tool: &str,
        arguments: Value,
    ) -> Result<Self, ToolError> {
        let wrong =
            |error: serde_json::Error| ToolError::argument(tool, "document", "invalid_drawing", error.to_string());
        let wanted = if tool == RENDER {
            let RenderInput { title, document } = serde_json::from_value(arguments).map_err(wrong)?;
            if title.trim().is_empty() || title.chars().count() > MAX_TITLE || title.chars().any(char::is_control) {
                let message = format!("`title` must be one line of 1 to {MAX_TITLE} characters");
                return Err(ToolError::argument(tool, "title", "invalid_title", message));
            }
            let document = Document::parse(&Value::Object(document)).map_err(|error| error.to_stable())?;
            Wanted::Open { title, document: Box::new(document.at_version(1)) }
        } else {
            let PatchInput { canvas_id, base_version, patch } = serde_json::from_value(arguments).map_err(wrong)?;
            Wanted::Change { canvas_id, base_version, patch: Value::Array(patch) }
        };
        let label = machine.label_of_work(call_id);
        let spec = machine.spec();
        Ok(Self { session_id: spec.session_id, run_id: spec.run_id, effect_id, label, wanted })
    }

    /// Draws, once.
    pub(in crate::engine) async fn carry_out(self, shared: Arc<Shared>) -> Result<Drawn, ToolError> {
        self.draw(&shared).await.map_err(|error| error.to_stable().into())
    }

    async fn draw(self, shared: &Arc<Shared>) -> Result<Drawn, AgentError> {
        let _held = shared.locks.drawing(self.session_id).await;
        let (session_id, run_id, effect_id) = (self.session_id, self.run_id, self.effect_id);
        let effect = effect_id.clone();
        let known = query(shared, move |db| projections::canvas_effect(db, &effect)).await?;
        if let Some(canvas) = known {
            return Ok(told(canvas));
        }
        let (kind, record, canvas) = match self.wanted {
            Wanted::Open { title, document } => {
                let open = query(shared, move |db| projections::open_canvases(db, session_id)).await?;
                if open >= MAX_OPEN {
                    return Err(AgentError::CanvasesFull { open });
                }
                let canvas_id = CanvasId::generate();
                let opened = CanvasOpened {
                    canvas_id,
                    session_id,
                    run_id,
                    effect_id,
                    title,
                    document: document.to_value(),
                    label: self.label,
                };
                let record = shared.canvas_record(kind::OPENED, session_id, &opened)?;
                (kind::OPENED, record, CanvasDrawn { canvas_id, version: 1 })
            }
            Wanted::Change { canvas_id, base_version, patch } => {
                let found = query(shared, move |db| projections::canvas(db, canvas_id)).await?;
                // A canvas of another session is none.
                let found = found.filter(|(row, _)| row.session_id == session_id);
                let (row, document) = found.ok_or(AgentError::CanvasNotFound(canvas_id))?;
                if row.closed_at.is_some() {
                    return Err(AgentError::CanvasClosed(canvas_id));
                }
                let version = palyra_a2ui::apply(&Document::parse(&document)?, base_version, &patch)?.version();
                let label = row.label.join(&self.label);
                let changed = CanvasChanged { canvas_id, session_id, run_id, effect_id, version, patch, label };
                let record = shared.canvas_record(kind::CHANGED, session_id, &changed)?;
                (kind::CHANGED, record, CanvasDrawn { canvas_id, version })
            }
        };
        shared.options.journal.append(vec![record]).await?;
        shared.canvas_bell.ring();
        tracing::debug!(canvas_id = %canvas.canvas_id, version = canvas.version, kind, "drawn");
        Ok(told(canvas))
    }
}

fn told(canvas: CanvasDrawn) -> Drawn {
    let content = format!("canvas {} is shown at version {}", canvas.canvas_id, canvas.version);
    Drawn { content, canvas }
}

async fn query<T: Send + 'static>(
    shared: &Arc<Shared>,
    query: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, AgentError> {
    Ok(shared.options.journal.read(move |reader| query(reader.connection()).map_err(Into::into)).await?)
}
