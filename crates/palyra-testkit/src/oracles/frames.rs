//! Formats that are cut out of a stream: frames of QUIC in both directions, and the events that a model's server sends.

use bytes::Bytes;
use palyra_client::quic::{FrameDecoder, FrameError, MAX_FRAME_BYTES, encode_message};

use crate::generators::portions;

/// Frames, as the daemon reads commands and as a client reads answers.
pub fn quic_frame(bytes: &[u8]) {
    let (size, stream) = portions(bytes);
    for decoder in [FrameDecoder::of_commands, FrameDecoder::of_answers] {
        let (messages, end) = decoded(decoder(), [stream]);
        assert_eq!(decoded(decoder(), stream.chunks(size)), (messages.clone(), end), "in portions of {size}");
        let mut written = Vec::new();
        for message in &messages {
            assert!(!message.is_empty() && message.len() <= stream.len());
            encode_message(message, &mut written);
        }
        // A frame is never longer than it may be, however the message came.
        assert!(written.len() <= stream.len() || messages.iter().any(|message| message.len() > MAX_FRAME_BYTES));
        assert_eq!(decoded(decoder(), [&written[..]]), (messages, Ok(())));
    }
}

fn decoded<'a>(
    mut decoder: FrameDecoder,
    portions: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Bytes>, Result<(), FrameError>) {
    let mut messages = Vec::new();
    for portion in portions {
        decoder.push(portion);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Err(error)),
            }
        }
    }
    let end = decoder.finish();
    (messages, end)
}

/// Server-sent events of a model's server.
pub fn model_sse(bytes: &[u8]) {
    let (size, stream) = portions(bytes);
    let whole = palyra_models::fuzzing::events([stream]);
    let parts = palyra_models::fuzzing::events(stream.chunks(size));
    let Ok(events) = whole else {
        assert!(parts.is_err(), "only whole it is refused");
        return;
    };
    assert_eq!(Ok(&events), parts.as_ref(), "in portions of {size}");
    assert!(events.iter().map(String::len).sum::<usize>() <= stream.len());
    // Written as the standard has it, they are the same events.
    let written: String = events
        .iter()
        .map(|event| event.split('\n').map(|line| format!("data: {line}\n")).collect::<String>() + "\n")
        .collect();
    assert_eq!(palyra_models::fuzzing::events([written.as_bytes()]), Ok(events));
}
