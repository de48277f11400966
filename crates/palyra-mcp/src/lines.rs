//! Lines of bounded length from a stream that somebody else writes.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// How much of an oversized line is kept from each end: enough to find the id of the request it answers.
const EDGE: usize = 256;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line without its end.
    Whole(Vec<u8>),
    /// A line beyond the limit; only its two ends were kept.
    TooLong {
        /// Its first bytes.
        head: Vec<u8>,
        /// Its last bytes.
        tail: Vec<u8>,
    },
    /// The stream ended.
    End,
}

/// Reads lines. INVARIANT: never holds more than the limit, and a dropped [`next`](Self::next) loses nothing.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// The last bytes of a line that is already known to be too long.
    overflow: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, stream), limit, line: Vec::new(), overflow: None }
    }

    /// The next line.
    pub(crate) async fn next(&mut self) -> Line {
        loop {
            let Ok(available) = self.reader.fill_buf().await else {
                return Line::End;
            };
            if available.is_empty() {
                return Line::End;
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let (chunk, _) = available.split_at(newline.unwrap_or(available.len()));
            match &mut self.overflow {
                Some(tail) => keep_end(tail, chunk),
                None if self.line.len() + chunk.len() > self.limit => {
                    let mut tail = std::mem::take(&mut self.line);
                    // The head stays in `line`, the rest of it is given back at once.
                    self.line = tail.iter().chain(chunk).copied().take(EDGE).collect();
                    keep_end(&mut tail, chunk);
                    tail.shrink_to_fit();
                    self.overflow = Some(tail);
                }
                None => self.line.extend_from_slice(chunk),
            }
            let consumed = chunk.len() + usize::from(newline.is_some());
            self.reader.consume(consumed);
            if newline.is_some() {
                let mut line = std::mem::take(&mut self.line);
                if let Some(tail) = self.overflow.take() {
                    return Line::TooLong { head: line, tail };
                }
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Line::Whole(line);
            }
        }
    }
}

fn keep_end(tail: &mut Vec<u8>, chunk: &[u8]) {
    tail.extend_from_slice(chunk);
    let surplus = tail.len().saturating_sub(EDGE);
    tail.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_line_costs_only_itself() {
        let mut input = b"one\r\n\n".to_vec();
        input.extend_from_slice(b"{\"id\":7,");
        input.extend_from_slice(&vec![b'x'; 300_000]);
        input.extend_from_slice(b",\"end\":1}\ntwo\nunfinished");
        let mut lines = Lines::new(input.as_slice(), 1000);
        assert_eq!(lines.next().await, Line::Whole(b"one".to_vec()));
        assert_eq!(lines.next().await, Line::Whole(Vec::new()));
        let Line::TooLong { head, tail } = lines.next().await else { panic!("the line is too long") };
        assert!(head.starts_with(b"{\"id\":7,") && head.len() <= EDGE);
        assert!(tail.ends_with(b",\"end\":1}") && tail.len() <= EDGE);
        assert_eq!(lines.next().await, Line::Whole(b"two".to_vec()));
        assert_eq!(lines.next().await, Line::End);
    }

    #[tokio::test]
    async fn a_line_of_exactly_the_limit_is_whole() {
        let mut lines = Lines::new(b"12345\n123456\n".as_slice(), 5);
        assert_eq!(lines.next().await, Line::Whole(b"12345".to_vec()));
        assert!(matches!(lines.next().await, Line::TooLong { .. }));
    }
}
