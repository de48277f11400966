//! Bodies on their way, in both directions: counted, limited, timed, and searched for secrets.
//!
//! A body that breaks a limit ends with an error, which makes hyper cut the connection: the receiver sees that the body is incomplete. The
//! record of the connection lives in the answer's body and is handed over when the body is dropped.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use crate::error::EgressError;
use crate::log::{Meter, OpenRecord};
use crate::scan::Scanner;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
pub(crate) type OutBody = UnsyncBoxBody<Bytes, BoxError>;

pub(crate) fn full(bytes: impl Into<Bytes>) -> OutBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn empty() -> OutBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// The error of this crate inside an error of a body or of hyper.
pub(crate) fn egress_error_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a EgressError> {
    let mut next: Option<&'a (dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<EgressError>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Which way a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// What a body is held to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) bytes: u64,
    pub(crate) idle: Duration,
    pub(crate) time: Duration,
    pub(crate) deadline: Instant,
}

/// A body under watch.
pub(crate) struct GuardedBody<B> {
    inner: B,
    direction: Direction,
    limits: BodyLimits,
    seen: u64,
    meter: Arc<Meter>,
    timer: Pin<Box<Sleep>>,
    scanner: Option<Scanner>,
    ended: bool,
    record: Option<OpenRecord>,
    _connection: Option<AbortOnDropHandle<()>>,
}

impl<B> GuardedBody<B> {
    pub(crate) fn new(inner: B, direction: Direction, limits: BodyLimits, meter: Arc<Meter>) -> Self {
        let timer = Box::pin(sleep_until(limits.deadline.min(Instant::now() + limits.idle)));
        Self {
            inner,
            direction,
            limits,
            seen: 0,
            meter,
            timer,
            scanner: None,
            ended: false,
            record: None,
            _connection: None,
        }
    }

    /// Searches the body.
    pub(crate) fn scanned(mut self, scanner: Option<Scanner>) -> Self {
        self.scanner = scanner;
        self
    }

    /// Keeps the record and the connection alive as long as the body.
    pub(crate) fn keeping(mut self, record: OpenRecord, connection: AbortOnDropHandle<()>) -> Self {
        self.record = Some(record);
        self._connection = Some(connection);
        self
    }

    fn fail(&mut self, error: EgressError) -> BoxError {
        if let Some(record) = &mut self.record {
            record.ended(&error);
        }
        self.ended = true;
        Box::new(error)
    }

    fn late(&self) -> EgressError {
        if Instant::now() >= self.limits.deadline {
            EgressError::TimedOut { what: "the whole exchange", limit: self.limits.time }
        } else {
            EgressError::TimedOut { what: "waiting for the next bytes", limit: self.limits.idle }
        }
    }

    /// Counts and searches what came; `None` if all of it is held back.
    fn take(&mut self, data: Bytes) -> Result<Option<Bytes>, BoxError> {
        let length = data.len() as u64;
        self.seen = self.seen.saturating_add(length);
        let (counter, what) = match self.direction {
            Direction::Up => (&self.meter.up, "the request body"),
            Direction::Down => (&self.meter.down, "the response"),
        };
        if self.seen > self.limits.bytes {
            let limit = self.limits.bytes;
            return Err(self.fail(EgressError::TooLarge { what, limit }));
        }
        counter.fetch_add(length, Ordering::Relaxed);
        let Some(scanner) = &mut self.scanner else { return Ok(Some(data)) };
        let safe = scanner.push(&data);
        self.meter.masked.fetch_add(scanner.take_found(), Ordering::Relaxed);
        Ok(if safe.is_empty() { None } else { Some(safe) })
    }
}

impl<B> Body for GuardedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            let frame = match Pin::new(&mut this.inner).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(this.timer.as_mut().poll(cx));
                    let late = this.late();
                    return Poll::Ready(Some(Err(this.fail(late))));
                }
            };
            let next = this.limits.deadline.min(Instant::now() + this.limits.idle);
            this.timer.as_mut().reset(next);
            match frame {
                None => {
                    this.ended = true;
                    let rest = this.scanner.as_mut().map(Scanner::finish).unwrap_or_default();
                    return Poll::Ready(if rest.is_empty() { None } else { Some(Ok(Frame::data(rest))) });
                }
                Some(Err(error)) => {
                    let error: BoxError = error.into();
                    let host = this.record.as_mut().map(|record| record.edit().host.clone()).unwrap_or_default();
                    return Poll::Ready(Some(
                        Err(this.fail(EgressError::Protocol { host, reason: error.to_string() })),
                    ));
                }
                Some(Ok(frame)) => {
                    if Instant::now() >= this.limits.deadline {
                        let late = this.late();
                        return Poll::Ready(Some(Err(this.fail(late))));
                    }
                    // Trailers are dropped: they are headers that nobody checked.
                    let Ok(data) = frame.into_data() else { continue };
                    match this.take(data) {
                        Err(error) => return Poll::Ready(Some(Err(error))),
                        Ok(Some(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                        Ok(None) => {}
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended || (self.scanner.is_none() && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        // A mask has the length of what it hides, so the length that was announced stays true.
        self.inner.size_hint()
    }
}
