//! Reading a form with files (`multipart/form-data`) as it arrives.
//!
//! Never more than a bounded part of it lies in memory: what has not been asked for yet is not read on, and a form whose parts do not begin is given up.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use multer::{Constraints, Field, Multipart, SizeLimit};
use palyra_common::{ErrorCategory, StableErrorEnvelope};

use crate::dispatch::{MAX_FILES, Refusal, Result};

/// Most bytes of a whole form.
pub(super) const MAX_FORM_BYTES: u64 = 64 << 20;
/// Bytes that may arrive without a part beginning or going on.
const MAX_UNREAD: usize = 1 << 20;

/// A form that is being read.
pub(crate) struct Form {
    parts: Multipart<'static>,
    unread: Arc<AtomicUsize>,
    files: usize,
}

/// One file of it.
pub(crate) struct FormFile {
    field: Field<'static>,
    unread: Arc<AtomicUsize>,
    /// As its sender wrote it.
    pub(crate) name: String,
}

impl Form {
    /// Begins with what the `Content-Type` says.
    pub(crate) fn open<S, E>(content_type: &str, body: S) -> Result<Self>
    where
        S: Stream<Item = std::result::Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let wrong = |_| Refusal::field("content-type", "it must be multipart/form-data with a boundary");
        let boundary = multer::parse_boundary(content_type).map_err(wrong)?;
        let unread = Arc::new(AtomicUsize::new(0));
        let paced = Paced { body: Box::pin(body), unread: Arc::clone(&unread), pause: false };
        let limits = Constraints::new().size_limit(SizeLimit::new().whole_stream(MAX_FORM_BYTES));
        Ok(Self { parts: Multipart::with_constraints(paced, boundary, limits), unread, files: 0 })
    }

    /// The next file. The one before must have been let go.
    pub(crate) async fn next(&mut self) -> Result<Option<FormFile>> {
        let Some(field) = self.parts.next_field().await.map_err(refused)? else { return Ok(None) };
        self.unread.store(0, Ordering::Relaxed);
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(Refusal::field("body", format!("at most {MAX_FILES} files are allowed at once")));
        }
        let Some(name) = field.file_name().map(str::to_owned) else {
            return Err(Refusal::field("body", "a part of the form is not a file: it has no `filename`"));
        };
        Ok(Some(FormFile { field, unread: Arc::clone(&self.unread), name }))
    }
}

impl FormFile {
    /// Its next piece.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>> {
        let piece = self.field.chunk().await.map_err(refused)?;
        self.unread.store(0, Ordering::Relaxed);
        Ok(piece)
    }
}

fn refused(error: multer::Error) -> Refusal {
    match error {
        multer::Error::StreamSizeExceeded { .. } => {
            let message = format!("the form is larger than {} MiB", MAX_FORM_BYTES >> 20);
            StableErrorEnvelope::new("body_too_large", ErrorCategory::Validation, message)
                .hint("send fewer or smaller files at once")
                .into()
        }
        multer::Error::StreamReadFailed(error) => Refusal::field("body", format!("it was interrupted: {error}")),
        // Whatever else it says quotes what was sent.
        _ => Refusal::field("body", "it is not complete multipart/form-data with this boundary"),
    }
}

/// Gives one piece of a body at a time: the reader behind it would otherwise take in all that is there.
struct Paced<S> {
    body: Pin<Box<S>>,
    unread: Arc<AtomicUsize>,
    pause: bool,
}

impl<S, E> Stream for Paced<S>
where
    S: Stream<Item = std::result::Result<Bytes, E>>,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Item = std::result::Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.pause) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = std::task::ready!(self.body.as_mut().poll_next(context));
        Poll::Ready(next.map(|piece| {
            let piece = piece.map_err(Into::into)?;
            self.pause = true;
            let unread = self.unread.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
            if unread > MAX_UNREAD + piece.len() { Err("its first boundary is missing".into()) } else { Ok(piece) }
        }))
    }
}
