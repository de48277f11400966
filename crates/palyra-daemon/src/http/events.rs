//! A run's events as Server-Sent Events, which browsers follow and resume by themselves.
//!
//! The id of an event is its position on the tape. A browser that lost its connection names the last one it saw in `Last-Event-ID`; the stream
//! goes on after it, without a gap and without a repetition.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use palyra_client::command::StreamCommand;
use palyra_common::AcpCommand;
use tokio_util::sync::CancellationToken;

use super::error::{ApiError, ApiResult};
use super::extract::PathId;
use crate::app::App;
use crate::dispatch::{self, Caller, Documents, HeldPage, Page, Refusal};

const HEARTBEAT: Duration = Duration::from_secs(10);
const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn stream(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    id: PathId,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let parsed = StreamCommand::from_query(AcpCommand::RunTape, id.get(), query.as_deref().unwrap_or_default());
    let mut about = match parsed {
        Some(Ok(StreamCommand::RunTape(about))) => about,
        Some(Err(error)) => return Err(Refusal::from(error).into()),
        _ => return Err(ApiError::internal("the tape is not in the catalogue")),
    };
    if let Some(last) = headers.get(LAST_EVENT_ID) {
        about.params.from_seq = Some(resume_after(last.as_bytes())?);
    }
    about.params.follow.get_or_insert(true);
    let documents = dispatch::open(&app, &caller, StreamCommand::RunTape(about)).await?;
    let state = Some((documents, app.closing.clone()));
    let body = Body::from_stream(futures::stream::unfold(state, step));
    Ok(([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response())
}

/// The position after the last one that was seen.
pub(crate) fn resume_after(token: &[u8]) -> ApiResult<u64> {
    let seen = std::str::from_utf8(token).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match seen.and_then(|seen| seen.checked_add(1)) {
        Some(next) => Ok(next),
        None => Err(ApiError::field(LAST_EVENT_ID, "it is not an event id")),
    }
}

type Open = Option<(Documents, CancellationToken)>;

async fn step(state: Open) -> Option<(Result<Bytes, Infallible>, Open)> {
    let (mut documents, closing) = state?;
    let next = tokio::select! {
        next = tokio::time::timeout(HEARTBEAT, documents.next()) => next,
        () = closing.cancelled() => return Some((Ok(failure(&Refusal::stopping())), None)),
    };
    match next {
        Err(_) => Some((Ok(Bytes::from_static(b":\n\n")), Some((documents, closing)))),
        Ok(Ok(Some(HeldPage { page, permit }))) => Some((Ok(permit.hold(events(&page))), Some((documents, closing)))),
        // Without it a browser would take the end for a broken connection and come back for ever.
        Ok(Ok(None)) => Some((Ok(Bytes::from_static(b"event: end\ndata: {}\n\n")), None)),
        Ok(Err(refusal)) => Some((Ok(failure(&refusal)), None)),
    }
}

/// JSON has no line breaks of its own, so each document is one `data` line.
fn events(page: &Page) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = page.each(|document| {
        if let Some(event) = document.event() {
            let progress =
                matches!(&event.body, palyra_common::RunStreamBody::Status(status) if status.progress.is_some());
            // What is not recorded has no position to resume from.
            if !progress {
                text.extend_from_slice(format!("id: {}\n", event.seq).as_bytes());
            }
            text.extend_from_slice(format!("event: {}\n", event.body.kind()).as_bytes());
        }
        text.extend_from_slice(b"data: ");
        let written = document.write_json(&mut text);
        text.extend_from_slice(b"\n\n");
        written
    });
    text
}

fn failure(refusal: &Refusal) -> Bytes {
    let envelope = serde_json::to_string(refusal.envelope()).unwrap_or_default();
    format!("event: error\ndata: {envelope}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_events_resume() {
        assert_eq!(resume_after(b"7").unwrap(), 8);
        assert_eq!(resume_after(b" 0 ").unwrap(), 1);
        let most = u64::MAX.to_string();
        for bad in [&b""[..], b"-1", b"x", b"1 2", b"\xff", b"7\n8", most.as_bytes()] {
            assert!(resume_after(bad).is_err(), "{bad:?}");
        }
    }
}
