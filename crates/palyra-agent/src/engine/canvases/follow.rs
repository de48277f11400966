//! Following a canvas: the document first, then every patch, until it is closed.

use palyra_common::CanvasId;
use serde_json::Value;
use tokio::sync::watch;

use super::super::Engine;
use crate::error::AgentError;
use crate::projections;

/// One step of a canvas.
#[derive(Debug, Clone, PartialEq)]
pub enum CanvasNews {
    /// The whole document, for whoever has none or too old a version.
    Document {
        /// Its version.
        version: u64,
        /// The document.
        document: Value,
    },
    /// What led from the version before to this one.
    Patch {
        /// The version after it.
        version: u64,
        /// The patch.
        patch: Value,
    },
}

/// Tells what happens on a canvas.
pub struct CanvasFollower {
    engine: Engine,
    canvas_id: CanvasId,
    seen: u64,
    bell: watch::Receiver<u64>,
    over: bool,
}

impl Engine {
    /// Follows a canvas after a version that was seen; zero means none.
    ///
    /// # Errors
    /// When there is none of that id.
    pub async fn follow_canvas(&self, canvas_id: CanvasId, seen: u64) -> Result<CanvasFollower, AgentError> {
        // The bell first: what happens after the look below rings it.
        let bell = self.shared.canvas_bell.0.subscribe();
        let (row, _) = self.canvas(canvas_id).await?;
        // A version that never was says nothing about what was seen.
        let seen = if seen > row.version { 0 } else { seen };
        Ok(CanvasFollower { engine: self.clone(), canvas_id, seen, bell, over: false })
    }
}

impl CanvasFollower {
    /// Waits until the next look gives something, or the end, without reading any of it: whoever bounds what readers hold asks first. Cancel-safe.
    pub async fn ready(&mut self) {
        while !self.over {
            self.bell.mark_unchanged();
            let id = self.canvas_id;
            let found = self.engine.query(move |reader| projections::canvas_version(reader.connection(), id)).await;
            // What is wrong is told by the look itself.
            let Ok(Some((version, closed))) = found else { return };
            if version > self.seen || closed || self.bell.changed().await.is_err() {
                return;
            }
        }
    }

    /// The next steps; nothing once the canvas is closed and everything was told. Cancel-safe.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<CanvasNews>>, AgentError> {
        loop {
            if self.over {
                return Ok(None);
            }
            self.bell.mark_unchanged();
            let (id, seen) = (self.canvas_id, self.seen);
            let (found, patches) = self
                .engine
                .query(move |reader| {
                    let db = reader.connection();
                    Ok((projections::canvas(db, id)?, projections::canvas_changes(db, id, seen)?))
                })
                .await?;
            let (row, document) = found.ok_or(AgentError::CanvasNotFound(id))?;
            self.over = row.closed_at.is_some();
            if row.version > seen {
                self.seen = row.version;
                return Ok(Some(news(seen, row.version, document, patches)));
            }
            if !self.over && self.bell.changed().await.is_err() {
                return Ok(None);
            }
        }
    }
}

/// Patches if none is missing, otherwise the document.
fn news(seen: u64, version: u64, document: Value, patches: Vec<(u64, Value)>) -> Vec<CanvasNews> {
    let whole = seen > 0 && patches.iter().map(|(version, _)| *version).eq(seen + 1..=version);
    if whole {
        return patches.into_iter().map(|(version, patch)| CanvasNews::Patch { version, patch }).collect();
    }
    vec![CanvasNews::Document { version, document }]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_gap_gives_the_whole_document() {
        let patches = |versions: &[u64]| versions.iter().map(|version| (*version, json!([]))).collect::<Vec<_>>();
        let versions = |news: Vec<CanvasNews>| -> Vec<(bool, u64)> {
            let one = |news| match news {
                CanvasNews::Document { version, .. } => (true, version),
                CanvasNews::Patch { version, .. } => (false, version),
            };
            news.into_iter().map(one).collect()
        };
        assert_eq!(versions(news(1, 3, json!({}), patches(&[2, 3]))), [(false, 2), (false, 3)]);
        assert_eq!(versions(news(0, 3, json!({}), patches(&[2, 3]))), [(true, 3)]);
        assert_eq!(versions(news(1, 3, json!({}), patches(&[3]))), [(true, 3)]);
        assert_eq!(versions(news(2, 3, json!({}), patches(&[]))), [(true, 3)]);
    }
}
