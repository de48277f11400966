//! Ways of sending an answer, and of failing at it.

use super::said::StreamForm;

/// How the body is cut into writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One chunk per event.
    #[default]
    PerEvent,
    /// One chunk for everything.
    Whole,
    /// One chunk per byte.
    ByteByByte,
}

/// What ends a line of the event stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineEnding {
    /// Line feed.
    #[default]
    Lf,
    /// Carriage return and line feed.
    CrLf,
}

impl LineEnding {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }
}

/// How events are written down. All of these mean the same; servers and what stands before them use every one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dress {
    /// As most servers do.
    #[default]
    Plain,
    /// A comment before each event, as keeps connections alive; an empty line where the wire has no comments.
    Comments,
    /// A byte order mark before everything.
    ByteOrderMark,
    /// No space between a field and its value.
    Tight,
    /// The data of an event on two lines.
    TwoLines,
}

impl Dress {
    /// What stands before the event at this place.
    pub(super) fn before(self, at: usize, form: StreamForm, end: &str) -> Vec<u8> {
        match (self, form) {
            (Self::ByteOrderMark, _) if at == 0 => b"\xEF\xBB\xBF".to_vec(),
            (Self::Comments, StreamForm::Events) => format!(": still here{end}{end}").into_bytes(),
            (Self::Comments, StreamForm::Lines) => end.as_bytes().to_vec(),
            _ => Vec::new(),
        }
    }

    /// The data of an event as fields.
    pub(super) fn fields(self, data: &[u8], end: &str) -> Vec<u8> {
        match (self, data.split_first()) {
            (Self::Tight, _) => [b"data:", data].concat(),
            // JSON may be broken after its first bracket.
            (Self::TwoLines, Some((b'{', rest))) => [b"data: {", end.as_bytes(), b"data: ", rest].concat(),
            _ => [b"data: ", data].concat(),
        }
    }
}

/// A way to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Closes the connection without a word.
    CloseBeforeAnswer,
    /// Closes the connection in the middle of a chunk, after this many bytes of the body.
    CloseAfter(usize),
    /// Resets the connection in the middle of a chunk, after this many bytes of the body.
    ResetAfter(usize),
    /// Goes silent after this many bytes of the body and keeps the connection open until the client leaves.
    SilentAfter(usize),
    /// Cuts the JSON of the event in the middle of the stream in half, and goes on.
    TruncateEvent,
    /// Sends every event twice.
    RepeatEvents,
    /// Puts bytes that are no UTF-8 into the event in the middle of the stream.
    InvalidUtf8,
    /// Sends an event of this many bytes in the middle of the stream.
    HugeEvent(usize),
}

impl Fault {
    /// After how many bytes of the body the connection is given up.
    pub(super) const fn bytes_before(self) -> Option<usize> {
        match self {
            Self::CloseAfter(bytes) | Self::ResetAfter(bytes) | Self::SilentAfter(bytes) => Some(bytes),
            Self::CloseBeforeAnswer
            | Self::TruncateEvent
            | Self::RepeatEvents
            | Self::InvalidUtf8
            | Self::HugeEvent(_) => None,
        }
    }

    /// The stream with this fault in it.
    pub(super) fn spoil(self, mut events: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let middle = events.len() / 2;
        match self {
            Self::RepeatEvents => return events.into_iter().flat_map(|event| [event.clone(), event]).collect(),
            Self::HugeEvent(bytes) => events.insert(middle, vec![b'x'; bytes]),
            Self::TruncateEvent => {
                if let Some(event) = events.get_mut(middle) {
                    event.truncate(event.len() / 2);
                }
            }
            Self::InvalidUtf8 => {
                if let Some(event) = events.get_mut(middle) {
                    let half = event.len() / 2;
                    event.splice(half..half, [0xFF, 0xFE]);
                }
            }
            Self::CloseBeforeAnswer | Self::CloseAfter(_) | Self::ResetAfter(_) | Self::SilentAfter(_) => {}
        }
        events
    }
}
