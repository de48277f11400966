//! Answers that end in time and are counted: when the caller's deadline passes or the daemon closes, whatever is under way ends with a status, and what is written of an
//! answer counts among what its caller has not yet taken until the connection has sent it.
//!
//! Every answer goes through here, so streams of the library (health, reflection) end at shutdown as ours do.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use super::status;
use crate::dispatch::ReadBudget;

/// What ends an answer early; gives the status that the caller is told.
pub(super) type Cut = Pin<Box<dyn Future<Output = tonic::Status> + Send>>;

/// Trailers with an envelope if they tell of a refusal: an answer that is too large is refused by the library, at the very end.
fn explained(frame: Frame<Bytes>) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(trailers) => Frame::trailers(match tonic::Status::from_header_map(&trailers) {
            Some(refused) if refused.code() != tonic::Code::Ok => {
                status::trailers(&status::of_library(refused, "this method"))
            }
            _ => trailers,
        }),
        Err(frame) => frame,
    }
}

/// Goes with the answer of a method that streams what it read page by page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams;

/// The answer of such a method.
pub(super) fn streaming<T>(stream: T) -> tonic::Response<T> {
    let mut response = tonic::Response::new(stream);
    response.extensions_mut().insert(Streams);
    response
}

/// A body that may be cut off, and then says why in its trailers.
pub(super) struct Bounded {
    inner: Option<Body>,
    cut: Cut,
    /// What the caller may hold, if there is one.
    budget: Option<ReadBudget>,
    /// What was written before it was asked for.
    first: Option<Result<Frame<Bytes>, axum::Error>>,
}

impl Bounded {
    pub(super) fn new(inner: Body, cut: Cut, budget: Option<ReadBudget>) -> Self {
        Self { inner: Some(inner), cut, budget, first: None }
    }

    /// Writes what is ready of an answer, so that it is counted from now on.
    pub(super) fn write_first(&mut self) {
        if self.budget.is_some()
            && let Poll::Ready(frame) = self.poll_inner(&mut Context::from_waker(Waker::noop()))
        {
            self.first = frame;
        }
    }

    /// The next frame of what is behind this.
    fn poll_inner(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let frame = std::task::ready!(Pin::new(inner).poll_frame(context));
        if frame.is_none() {
            self.inner = None;
        }
        let held = |bytes: Bytes| match self.budget.as_ref().and_then(|budget| budget.charge_large(bytes.len())) {
            Some(permit) => permit.hold(bytes),
            None => bytes,
        };
        Poll::Ready(frame.map(|frame| frame.map(|frame| explained(frame.map_data(held)))))
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // What is ready is sent even if the time is up meanwhile.
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if let Poll::Ready(frame) = self.poll_inner(context) {
            return Poll::Ready(frame);
        }
        let Poll::Ready(status) = self.cut.as_mut().poll(context) else { return Poll::Pending };
        // Dropping the body drops the work behind it.
        self.inner = None;
        Poll::Ready(Some(Ok(Frame::trailers(status::trailers(&status)))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.as_ref().is_none_or(|inner| inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        if self.first.is_some() {
            return SizeHint::default();
        }
        self.inner.as_ref().map(|inner| inner.size_hint()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_body_that_ends_by_itself_is_not_touched() {
        let never: Cut = Box::pin(std::future::pending());
        let whole = Bounded::new(Body::from("abc"), never, None).collect().await.unwrap();
        assert!(whole.trailers().is_none());
        assert_eq!(whole.to_bytes(), "abc");
    }

    #[tokio::test]
    async fn a_body_that_is_cut_off_says_why() {
        let first = futures::stream::once(async { Ok::<_, axum::Error>(Bytes::from_static(b"abc")) });
        let endless = Body::from_stream(futures::StreamExt::chain(first, futures::stream::pending()));
        let cut: Cut = Box::pin(async { status::too_late() });
        let cut_off = Bounded::new(endless, cut, None).collect().await.unwrap();
        assert_eq!(cut_off.trailers().unwrap()["grpc-status"], "4");
        assert_eq!(cut_off.to_bytes(), "abc");
    }
}
