//! The body of an answer, which keeps its request under way until it is written or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::connections::RequestGuard;

pub(super) struct AnswerBody {
    body: Body,
    _request: Option<RequestGuard>,
}

impl AnswerBody {
    pub(super) fn new(body: Body, request: Option<RequestGuard>) -> Self {
        Self { body, _request: request }
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
