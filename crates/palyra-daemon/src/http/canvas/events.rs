//! News of a canvas as Server-Sent Events: which version there is, and that the questions on its cards are others. The page then asks for itself again, so that
//! there is one place that writes HTML.

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
use palyra_a2ui::html::Questions;
use palyra_client::api::WatchCanvasParams;
use palyra_client::command::{About, StreamCommand};
use palyra_common::{Clock as _, SystemClock};
use tokio::time::Instant;

use super::{Token, admit, page, refused, shown};
use crate::app::App;
use crate::auth::Peer;
use crate::dispatch::{self, Caller, Documents, HeldPage, Link, Page};
use crate::serve::Connection;

const HEARTBEAT: Duration = Duration::from_secs(10);
/// How often cards are looked at, if the journal has grown since. A question waits for a person, who does not notice a second.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const END: &[u8] = b"event: end\ndata: {}\n\n";
/// Without an id, so that a browser that comes back still says which version it saw.
const QUESTIONS: &[u8] = b"event: questions\ndata: {}\n\n";

pub(super) async fn follow(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    Extension(connection): Extension<Connection>,
    path: Token,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let token = shown(path);
    let (link, caller) = match admit(&app, &peer, &connection, &token).await {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    // A browser that lost its connection says what it saw last; that is newer than what its page was written with. Anything else that
    // is not a number means that nothing was seen.
    let resumed = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let named = || {
        let query = query.unwrap_or_default();
        form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "from").map(|(_, value)| value.into_owned())
    };
    let from_version = resumed.or_else(named).and_then(|text| text.trim().parse().ok());
    let params = WatchCanvasParams { from_version };
    let command = StreamCommand::CanvasWatch(About { target: link.canvas_id, params });
    let documents = match dispatch::open(&app, &caller, command).await {
        Ok(documents) => documents,
        Err(refusal) => return refused(refusal.envelope()),
    };
    let left = link.expires_at.since(SystemClock.now());
    let cards = Cards { app, link, caller, looked_at: None, shown: None };
    let open = Open { documents, cards, ends: Instant::now() + left };
    let body = Body::from_stream(futures::stream::unfold(Some(open), step));
    ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response()
}

struct Open {
    documents: Documents,
    cards: Cards,
    /// When the link runs out.
    ends: Instant,
}

async fn step(state: Option<Open>) -> Option<(Result<Bytes, Infallible>, Option<Open>)> {
    let mut open = state?;
    let closing = open.cards.app.closing.clone();
    let next = tokio::select! {
        next = tokio::time::timeout(HEARTBEAT, open.documents.next()) => next,
        () = open.cards.changed() => return Some((Ok(Bytes::from_static(QUESTIONS)), Some(open))),
        () = tokio::time::sleep_until(open.ends) => return Some((Ok(Bytes::from_static(END)), None)),
        // The browser comes back by itself when the daemon does.
        () = closing.cancelled() => return None,
    };
    match next {
        Err(_) => Some((Ok(Bytes::from_static(b":\n\n")), Some(open))),
        Ok(Ok(Some(HeldPage { page: Page::Canvas(changes), .. }))) => {
            let newest = changes.last().map(|change| change.version).unwrap_or_default();
            open.cards.looked_at = None;
            Some((Ok(format!("id: {newest}\nevent: version\ndata: {newest}\n\n").into()), Some(open)))
        }
        // Closed, or the link's maker was taken back: the page asks for itself once more and is told.
        Ok(_) => Some((Ok(Bytes::from_static(END)), None)),
    }
}

/// The approval cards of a page: what they showed when they were looked at last, through the eyes of the link's maker.
struct Cards {
    app: Arc<App>,
    link: Link,
    caller: Caller,
    /// How long the journal was then.
    looked_at: Option<u64>,
    shown: Option<Vec<Questions>>,
}

impl Cards {
    /// Waits until they show something else. The first look at a page with cards counts as that, because the page was written before the stream began. Cancel-safe.
    async fn changed(&mut self) {
        loop {
            // Before the look, so that what comes in between is not missed.
            let head = self.app.journal.head().count;
            let has_none = self.looked_at.is_some() && self.shown.as_ref().is_none_or(Vec::is_empty);
            if self.looked_at != Some(head) && !has_none {
                // A look that is refused, such as one too many in a minute, is tried again.
                if let Ok((_, _, now)) = page::drawn(&self.app, &self.link, &self.caller).await {
                    let news = !now.is_empty() && self.shown.as_ref() != Some(&now);
                    (self.looked_at, self.shown) = (Some(head), Some(now));
                    if news {
                        return;
                    }
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
