//! Server-sent events, from bytes as they arrive.
//!
//! The format is that of the HTML standard: lines end with CR, LF or CRLF; `data` lines of one event are joined by a line
//! feed; a line that begins with a colon is a comment; an empty line ends the event; other fields are of no interest here.
//! Chunks may be cut anywhere, inside a character or between CR and LF.
//!
//! Two departures: invalid UTF-8 is an error rather than replaced, since it would change what a model said; and an event
//! that the end of the stream cuts off is delivered, since some servers forget the last empty line. Whether such an event
//! is whole is for its reader to say.

use std::collections::VecDeque;

use super::json::text;
use crate::error::ModelError;

/// Most bytes of one event. A server that never ends its line must not fill the memory.
pub(super) const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// The mark some servers put at the start of a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Cuts bytes into the `data` of events.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    data: Option<String>,
    after_carriage_return: bool,
    past_first_line: bool,
    ready: VecDeque<String>,
}

impl SseParser {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), ModelError> {
        let mut rest = chunk;
        while let Some(first) = rest.first() {
            // The second half of a CRLF whose first half ended the line.
            if std::mem::take(&mut self.after_carriage_return) && *first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            self.check_size(part.len())?;
            self.line.extend_from_slice(part);
            if let Some(terminator) = after.first() {
                self.after_carriage_return = *terminator == b'\r';
                self.end_line()?;
            }
            rest = after.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// The stream has ended: delivers what is left.
    pub(crate) fn finish(&mut self) -> Result<(), ModelError> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.ready.extend(self.data.take());
        Ok(())
    }

    /// The next complete event.
    pub(crate) fn next_event(&mut self) -> Option<String> {
        self.ready.pop_front()
    }

    fn check_size(&self, more: usize) -> Result<(), ModelError> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held.saturating_add(more) > MAX_EVENT_BYTES {
            return Err(ModelError::malformed("the server sent an event larger than 8 MiB"));
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), ModelError> {
        let mut bytes = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.past_first_line, true) && bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        let line =
            text(bytes).ok_or_else(|| ModelError::malformed("the server sent an event that is not valid UTF-8"))?;
        if line.is_empty() {
            self.ready.extend(self.data.take());
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        Ok(())
    }
}

/// The events in a stream that arrives in these portions and then ends.
pub(crate) fn sse_events<'a>(portions: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, ModelError> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    for portion in portions {
        parser.push(portion)?;
        events.extend(std::iter::from_fn(|| parser.next_event()));
    }
    parser.finish()?;
    events.extend(parser.ready);
    Ok(events)
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
