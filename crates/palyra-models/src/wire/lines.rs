//! One JSON document per line, from bytes as they arrive.
//!
//! Lines end with a line feed, a carriage return before it is dropped; empty lines mean nothing. What the end of the stream cuts
//! off is delivered: whether it is whole is for its reader to say. Invalid UTF-8 is an error, since replacing it would change
//! what a model said.

use std::collections::VecDeque;

use super::json::text;
use super::sse::MAX_EVENT_BYTES;
use crate::error::ModelError;

/// Cuts bytes into lines.
#[derive(Debug, Default)]
pub(crate) struct LineParser {
    line: Vec<u8>,
    ready: VecDeque<String>,
}

impl LineParser {
    /// Takes the next bytes.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<(), ModelError> {
        let mut parts = chunk.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            if self.line.len().saturating_add(part.len()) > MAX_EVENT_BYTES {
                return Err(ModelError::malformed("the server sent a line larger than 8 MiB"));
            }
            self.line.extend_from_slice(part);
            if parts.peek().is_some() {
                self.end_line()?;
            }
        }
        Ok(())
    }

    /// The stream has ended: delivers what is left.
    pub(crate) fn finish(&mut self) -> Result<(), ModelError> {
        self.end_line()
    }

    /// The next line that is not empty.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) -> Result<(), ModelError> {
        let line = text(std::mem::take(&mut self.line))
            .ok_or_else(|| ModelError::malformed("the server sent a line that is not valid UTF-8"))?;
        let line = line.trim();
        if !line.is_empty() {
            self.ready.push_back(line.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Result<Vec<String>, ModelError> {
        let mut parser = LineParser::default();
        for chunk in chunks {
            parser.push(chunk)?;
        }
        parser.finish()?;
        Ok(std::iter::from_fn(|| parser.next_line()).collect())
    }

    #[test]
    fn lines_come_out_whole() {
        assert_eq!(parse(&[b"{}\r\n\n  [1]\n", b"\"a", b"b\"\n{"]).unwrap(), ["{}", "[1]", "\"ab\"", "{"]);
        assert!(parse(&[b"\xff\n"]).is_err());
        assert!(parse(&[[b'x'; 1024 * 1024].as_slice(); 9]).is_err());
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(text in "[a\\n\\rü ]{0,40}", size in 1_usize..6) {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(parse(&chunks).unwrap(), parse(&[text.as_bytes()]).unwrap());
        }
    }
}
