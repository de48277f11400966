//! How messages lie in a QUIC stream: a length of four bytes, most significant first, and that many bytes of JSON.
//!
//! A frame holds at most 512 KiB. A message that does not fit goes on in the next frame, which the highest bit of the length announces; only answers
//! do, a command is one frame. Pure: no sockets and no clock, so that any bytes at all can be thrown at it.
//!
//! INVARIANT: a decoder never holds more than its limit and one frame, because a length is judged before anything behind it is kept.

use bytes::{Buf as _, Bytes, BytesMut};
use palyra_common::{ErrorCategory, StableErrorEnvelope, ToStableError};
use thiserror::Error;

/// Most bytes in one frame. What a peer sends must be kept until it is complete; this is how much of it that can be.
pub const MAX_FRAME_BYTES: usize = 512 * 1024;
/// Most bytes in one answer, of however many frames.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
const HEADER_BYTES: usize = 4;
/// The bit of the length that says: this message goes on in the next frame.
const MORE: u32 = 1 << 31;

/// Bytes that are not frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A frame is longer than it may be.
    #[error("a frame of {length} bytes was announced; the limit is {MAX_FRAME_BYTES}")]
    TooLarge {
        /// The length that was announced.
        length: usize,
    },
    /// A message of several frames is longer than it may be.
    #[error("a message is longer than {limit} bytes")]
    TooLong {
        /// The most that is read.
        limit: usize,
    },
    /// A frame without content, which no message has.
    #[error("a frame is empty")]
    Empty,
    /// The bytes end inside a message.
    #[error("the message is truncated")]
    CutOff,
    /// There are bytes behind the one message of a stream.
    #[error("there are extra bytes after the command")]
    Trailing,
}

impl ToStableError for FrameError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let message = self.to_string();
        match self {
            Self::TooLarge { .. } | Self::TooLong { .. } => {
                StableErrorEnvelope::new("frame_too_large", ErrorCategory::Validation, message)
                    .hint("send less at once, or use HTTP, which takes larger bodies; nothing was done")
            }
            Self::Empty | Self::CutOff | Self::Trailing => {
                StableErrorEnvelope::new("frame_malformed", ErrorCategory::Validation, message)
                    .hint("send one frame per stream: four bytes of length, then the JSON; nothing was done")
            }
        }
    }
}

/// Appends a message, in as many frames as it needs.
pub fn encode_message(message: &[u8], into: &mut Vec<u8>) {
    let mut parts = message.chunks(MAX_FRAME_BYTES).peekable();
    while let Some(part) = parts.next() {
        // INVARIANT: a part is at most `MAX_FRAME_BYTES` long, which fits with room for the bit.
        let length = u32::try_from(part.len()).unwrap_or_default();
        let more = if parts.peek().is_some() { MORE } else { 0 };
        into.extend_from_slice(&(length | more).to_be_bytes());
        into.extend_from_slice(part);
    }
}

/// Takes messages out of bytes that arrive in any portions.
#[derive(Debug)]
pub struct FrameDecoder {
    /// What has arrived and is not yet a whole frame.
    arrived: BytesMut,
    /// The frames so far of a message that goes on.
    begun: BytesMut,
    limit: usize,
}

impl FrameDecoder {
    /// For commands: one frame each.
    #[must_use]
    pub fn of_commands() -> Self {
        Self { arrived: BytesMut::new(), begun: BytesMut::new(), limit: MAX_FRAME_BYTES }
    }

    /// For answers, which may have many frames.
    #[must_use]
    pub fn of_answers() -> Self {
        Self { limit: MAX_ANSWER_BYTES, ..Self::of_commands() }
    }

    /// Takes in what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.arrived.extend_from_slice(bytes);
    }

    /// The next whole message, if it is there.
    ///
    /// # Errors
    /// When the bytes cannot become a message any more; nothing that follows can be read then.
    pub fn next_message(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            let Some(header) = self.arrived.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
            let header = u32::from_be_bytes(*header);
            let (length, more) = ((header & !MORE) as usize, header & MORE != 0);
            if length == 0 {
                return Err(FrameError::Empty);
            }
            if length > MAX_FRAME_BYTES {
                return Err(FrameError::TooLarge { length });
            }
            // One that goes on at the limit would have to pass it.
            if self.begun.len() + length + usize::from(more) > self.limit {
                return Err(FrameError::TooLong { limit: self.limit });
            }
            if self.arrived.len() < HEADER_BYTES + length {
                return Ok(None);
            }
            self.arrived.advance(HEADER_BYTES);
            let frame = self.arrived.split_to(length);
            if !more && self.begun.is_empty() {
                return Ok(Some(frame.freeze()));
            }
            self.begun.extend_from_slice(&frame);
            if !more {
                return Ok(Some(self.begun.split().freeze()));
            }
        }
    }

    /// Whether the bytes may end here.
    ///
    /// # Errors
    /// When a message has begun and is not complete.
    pub fn finish(&self) -> Result<(), FrameError> {
        if self.arrived.is_empty() && self.begun.is_empty() { Ok(()) } else { Err(FrameError::CutOff) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_message(message, &mut bytes);
        bytes
    }

    #[test]
    fn the_form_on_the_wire_is_fixed() {
        assert_eq!(framed(b"{}"), b"\x00\x00\x00\x02{}");
        let long = vec![b'x'; MAX_FRAME_BYTES + 1];
        let bytes = framed(&long);
        assert_eq!(bytes[..4], [0x80, 0x08, 0x00, 0x00]);
        assert_eq!(bytes[4 + MAX_FRAME_BYTES..], *b"\x00\x00\x00\x01x");
        let mut answers = FrameDecoder::of_answers();
        answers.push(&bytes);
        assert_eq!(answers.next_message().unwrap().unwrap(), long);
        answers.finish().unwrap();
    }

    #[test]
    fn what_is_too_much_is_refused_before_it_is_kept() {
        let refused = |mut decoder: FrameDecoder, bytes: &[u8]| {
            decoder.push(bytes);
            decoder.next_message().unwrap_err()
        };
        let commands = FrameDecoder::of_commands;
        assert_eq!(refused(commands(), b"\x00\x08\x00\x01"), FrameError::TooLarge { length: MAX_FRAME_BYTES + 1 });
        assert_eq!(refused(commands(), b"\x7f\xff\xff\xff"), FrameError::TooLarge { length: 0x7fff_ffff });
        assert_eq!(refused(commands(), b"\x00\x00\x00\x00"), FrameError::Empty);
        assert_eq!(refused(commands(), b"\x80\x08\x00\x00"), FrameError::TooLong { limit: MAX_FRAME_BYTES });
        // Frames that go on for ever.
        let mut answers = FrameDecoder::of_answers();
        let endless = [&b"\x80\x08\x00\x00"[..], &vec![b'x'; MAX_FRAME_BYTES]].concat();
        let refusal = (0..=MAX_ANSWER_BYTES / MAX_FRAME_BYTES).find_map(|_| {
            answers.push(&endless);
            answers.next_message().err()
        });
        assert_eq!(refusal, Some(FrameError::TooLong { limit: MAX_ANSWER_BYTES }));
    }

    #[test]
    fn an_end_in_the_middle_is_noticed() {
        let bytes = framed(b"{\"a\":1}");
        for kept in 1..bytes.len() {
            let mut decoder = FrameDecoder::of_commands();
            decoder.push(&bytes[..kept]);
            assert_eq!(decoder.next_message(), Ok(None), "{kept}");
            assert_eq!(decoder.finish(), Err(FrameError::CutOff), "{kept}");
        }
        // A first part without its second is not complete either.
        let mut decoder = FrameDecoder::of_answers();
        decoder.push(b"\x80\x00\x00\x01x");
        assert_eq!((decoder.next_message(), decoder.finish()), (Ok(None), Err(FrameError::CutOff)));
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in_whatever_the_portions(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..8),
            portion in 1_usize..64,
        ) {
            let bytes: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
            let mut decoder = FrameDecoder::of_commands();
            let mut found = Vec::new();
            for part in bytes.chunks(portion) {
                decoder.push(part);
                while let Some(message) = decoder.next_message().unwrap() {
                    found.push(message.to_vec());
                }
            }
            prop_assert_eq!(found, messages);
            prop_assert_eq!(decoder.finish(), Ok(()));
        }

        #[test]
        fn any_bytes_are_read_or_refused_and_little_is_kept(bytes in prop::collection::vec(any::<u8>(), 0..4096), portion in 1_usize..512) {
            let mut decoder = FrameDecoder::of_answers();
            let mut taken = 0;
            for part in bytes.chunks(portion) {
                decoder.push(part);
                loop {
                    match decoder.next_message() {
                        Ok(Some(message)) => taken += message.len(),
                        Ok(None) => break,
                        Err(_) => return Ok(()),
                    }
                }
                prop_assert!(taken + decoder.arrived.len() + decoder.begun.len() <= bytes.len());
            }
        }
    }
}
