//! The last words of a server's program: what it wrote to standard error, bounded and without what it must not tell.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use palyra_common::SecretString;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much is kept.
const KEPT: usize = 64 << 10;

/// Values shorter than this are not looked for: they would blot out half of the text and hide nothing.
const SHORTEST_SECRET: usize = 6;

/// The end of a stream of text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    hidden: Arc<Vec<SecretString>>,
}

impl Tail {
    /// An empty tail that will never show these values.
    pub(crate) fn hiding(hidden: impl IntoIterator<Item = String>) -> Self {
        let hidden = hidden.into_iter().filter(|value| value.len() >= SHORTEST_SECRET).map(SecretString::from);
        Self { bytes: Arc::default(), hidden: Arc::new(hidden.collect()) }
    }

    fn push(&self, chunk: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend(chunk);
        let surplus = bytes.len().saturating_sub(KEPT);
        bytes.drain(..surplus);
    }

    /// Reads to the end. Returns when the stream ends or fails.
    pub(crate) async fn follow(self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 << 10];
        while let Ok(read) = stream.read(&mut chunk).await {
            match chunk.get(..read) {
                Some(bytes) if read > 0 => self.push(bytes),
                _ => return,
            }
        }
    }

    /// What is kept: hidden values masked, nothing in it that a terminal would obey.
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = {
            let kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().copied().collect()
        };
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        for value in self.hidden.iter() {
            text = text.replace(value.expose().as_str(), "[redacted]");
        }
        text.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_end_is_kept_and_secrets_do_not_show() {
        let tail = Tail::hiding(["hunter2hunter2".to_owned(), "ab".to_owned()]);
        let mut stream = vec![b'x'; 200 << 10];
        stream.extend_from_slice(b"token hunter2hunter2 \x1b[2J ab\n");
        tail.clone().follow(stream.as_slice()).await;
        let text = tail.text();
        assert!(text.ends_with("token [redacted] \u{fffd}[2J ab\n"), "{}", &text[text.len() - 60..]);
        assert!(text.len() <= KEPT + 16);
    }
}
