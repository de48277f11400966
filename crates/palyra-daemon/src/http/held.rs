//! Answers of one piece, which count among what their caller has not yet taken until the connection has sent them. Streams count page by page.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use crate::dispatch::{PagePermit, ReadBudget};

/// Counts an answer, unless it is small or of unknown size.
pub(super) fn until_taken(answer: Response, budget: &ReadBudget) -> Response {
    let bytes = answer.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    match bytes.and_then(|bytes| budget.charge_large(bytes)) {
        None => answer,
        Some(permit) => answer.map(|body| Body::new(HeldBody { body, permit: Arc::new(permit) })),
    }
}

struct HeldBody {
    body: Body,
    permit: Arc<PagePermit>,
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        // The connection drops the body when it has its last piece, which it may keep for long.
        let held = |bytes| Bytes::from_owner(Piece { bytes, _permit: Arc::clone(&self.permit) });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(held))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct Piece {
    bytes: Bytes,
    _permit: Arc<PagePermit>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
