//! This crate's own decoders, for whoever throws bytes at them. No interface: it changes with what it shows.

use crate::error::ModelError;
use crate::wire::sse_events;

/// The events in a stream that arrives in these portions.
///
/// # Errors
/// When an event is no text or too large.
pub fn events<'a>(portions: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, ModelError> {
    sse_events(portions)
}
