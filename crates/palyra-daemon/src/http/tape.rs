//! A run's events as a stream: what is recorded now, or everything until the run is over.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use bytes::Bytes;
use palyra_agent::{Engine, Followed, TapeFollower};
use palyra_client::api::RunTapeParams;
use palyra_common::{RunId, RunStreamEvent};

use super::error::{ApiError, ApiResult};
use super::extract::{Params, parse_id};
use super::ndjson::{self, Pages};
use crate::app::App;

/// Events that are read from the journal at once.
const PAGE: usize = 256;

pub(super) async fn stream(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(params): Params<RunTapeParams>,
) -> ApiResult<Response> {
    let run_id = parse_id("run_id", &id)?;
    if params.limit == Some(0) {
        return Err(ApiError::field("limit", "it must be at least 1"));
    }
    let from_seq = params.from_seq.unwrap_or(1).max(1);
    let left = params.limit.unwrap_or(u64::MAX);
    // The first look happens here, so that a run that does not exist is a status and not a line.
    if params.follow.unwrap_or(false) {
        let follower = app.engine.follow(run_id, from_seq).await?;
        let progress = params.progress.unwrap_or(false);
        return Ok(ndjson::respond(Live { follower, left, progress }, app.closing.clone()));
    }
    let mut stored = Stored { engine: app.engine.clone(), run_id, next_seq: from_seq, left, first: None };
    stored.first = Some(stored.page().await?);
    Ok(ndjson::respond(stored, app.closing.clone()))
}

/// Until the run is over.
struct Live {
    follower: TapeFollower,
    left: u64,
    /// Whether the client wants to know how calls get on.
    progress: bool,
}

impl Pages for Live {
    async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }
        let followed = if self.progress {
            self.follower.next_with_progress().await?
        } else {
            self.follower.next().await?.map(Followed::Events)
        };
        let events = match followed {
            None => return Ok(None),
            Some(Followed::Progress(news)) => return ndjson::lines(&news).map(Some),
            Some(Followed::Events(events)) => events,
        };
        let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(events.len());
        self.left -= taken as u64;
        ndjson::lines(events.iter().take(taken).map(AsRef::as_ref)).map(Some)
    }
}

/// As far as it is recorded now.
struct Stored {
    engine: Engine,
    run_id: RunId,
    next_seq: u64,
    left: u64,
    first: Option<Vec<RunStreamEvent>>,
}

impl Stored {
    async fn page(&self) -> ApiResult<Vec<RunStreamEvent>> {
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX).min(PAGE);
        Ok(self.engine.tape(self.run_id, self.next_seq, limit).await?)
    }
}

impl Pages for Stored {
    async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        let events = match self.first.take() {
            Some(events) => events,
            None if self.left == 0 => return Ok(None),
            None => self.page().await?,
        };
        let Some(last) = events.last() else { return Ok(None) };
        self.next_seq = last.seq + 1;
        self.left = self.left.saturating_sub(events.len() as u64);
        ndjson::lines(&events).map(Some)
    }
}
