//! Streams of JSON documents, one per line.
//!
//! The body is pulled: a client that does not read stops the reading of the journal, and one that goes away ends it. While there
//! is nothing to say, an empty line every ten seconds shows that somebody is still there. A stream that cannot be finished
//! ends with an error line, so a cut-off stream never looks like a whole one.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use palyra_client::api::NDJSON;
use tokio_util::sync::CancellationToken;

use super::error::{ApiError, ApiResult};
use crate::dispatch::{Documents, HeldPage};

const HEARTBEAT: Duration = Duration::from_secs(10);

/// Where the lines of a stream come from.
pub(super) trait Pages: Send + 'static {
    /// The next lines, or `None` at the end. Has to be cancel-safe: it is dropped for every heartbeat.
    fn next(&mut self) -> impl Future<Output = ApiResult<Option<Bytes>>> + Send;
}

/// Answers with a stream that ends when its source does or when the daemon closes.
pub(super) fn respond(pages: impl Pages, closing: CancellationToken) -> Response {
    respond_every(HEARTBEAT, pages, closing)
}

fn respond_every(heartbeat: Duration, pages: impl Pages, closing: CancellationToken) -> Response {
    let stream = futures::stream::unfold(Some((pages, closing)), move |state| step(heartbeat, state));
    ([(CONTENT_TYPE, NDJSON), (CACHE_CONTROL, "no-store")], Body::from_stream(stream)).into_response()
}

type State<P> = Option<(P, CancellationToken)>;

async fn step<P: Pages>(heartbeat: Duration, state: State<P>) -> Option<(Result<Bytes, Infallible>, State<P>)> {
    let (mut pages, closing) = state?;
    let next = tokio::select! {
        next = tokio::time::timeout(heartbeat, pages.next()) => next,
        () = closing.cancelled() => return Some((Ok(ApiError::stopping().into_line()), None)),
    };
    match next {
        Err(_) => Some((Ok(Bytes::from_static(b"\n")), Some((pages, closing)))),
        Ok(Ok(Some(lines))) => Some((Ok(lines), Some((pages, closing)))),
        Ok(Ok(None)) => None,
        Ok(Err(error)) => Some((Ok(error.into_line()), None)),
    }
}

impl Pages for Documents {
    async fn next(&mut self) -> ApiResult<Option<Bytes>> {
        let Some(HeldPage { page, permit }) = Documents::next(self).await? else { return Ok(None) };
        let mut bytes = Vec::new();
        let written = page.each(|document| {
            document.write_json(&mut bytes)?;
            bytes.push(b'\n');
            Ok::<_, serde_json::Error>(())
        });
        written.map_err(|error| ApiError::internal(format!("a document cannot be written: {error}")))?;
        Ok(Some(permit.hold(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    fn lines<T: serde::Serialize>(documents: impl IntoIterator<Item = T>) -> ApiResult<Bytes> {
        let text: String =
            documents.into_iter().map(|document| serde_json::to_string(&document).unwrap() + "\n").collect();
        Ok(text.into())
    }

    struct Numbers(Vec<ApiResult<Option<Bytes>>>);

    impl Pages for Numbers {
        async fn next(&mut self) -> ApiResult<Option<Bytes>> {
            match self.0.pop() {
                Some(next) => next,
                None => std::future::pending().await,
            }
        }
    }

    async fn read(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn lines_then_the_end() {
        let pages = Numbers(vec![Ok(None), lines([3]).map(Some), lines([1, 2]).map(Some)]);
        let response = respond(pages, CancellationToken::new());
        assert_eq!(response.headers()[CONTENT_TYPE], NDJSON);
        assert_eq!(read(response).await, "1\n2\n3\n");
    }

    #[tokio::test]
    async fn silence_is_filled_and_closing_is_told() {
        let closing = CancellationToken::new();
        let pages = Numbers(vec![lines([1]).map(Some)]);
        let response = respond_every(Duration::from_millis(1), pages, closing.clone());
        let mut stream = response.into_body().into_data_stream();
        let mut next = async || stream.next().await.map(|chunk| chunk.unwrap());
        assert_eq!(next().await.unwrap(), "1\n");
        assert_eq!(next().await.unwrap(), "\n");
        assert_eq!(next().await.unwrap(), "\n");
        closing.cancel();
        // A heartbeat may be due at the same moment.
        let mut last = next().await.unwrap();
        while last == "\n" {
            last = next().await.unwrap();
        }
        assert!(last.starts_with(b"{\"error\":{\"code\":\"daemon_stopping\""), "{last:?}");
        assert_eq!(next().await, None);
    }

    #[tokio::test]
    async fn a_failure_is_the_last_line() {
        let pages = Numbers(vec![lines([9]).map(Some), Err(ApiError::internal("broken")), lines([1]).map(Some)]);
        let text = read(respond(pages, CancellationToken::new())).await;
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.ends_with("}\n") && text.contains("broken"), "{text}");
    }
}
