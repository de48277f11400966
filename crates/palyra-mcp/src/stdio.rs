//! The protocol over the standard streams of a program, bounded while reading.
//!
//! The SDK has such a transport; it drops an oversized message in silence, which leaves the caller waiting for its deadline, and it
//! reads garbage for ever. This one answers an oversized message with an error for the request it belongs to and ends a
//! connection that babbles or floods. It also cuts the wait for servers that ignore what they do not know: the probe for the newest
//! revision is answered "unknown" on their behalf, so that the older handshake follows on the same connection.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::handler::{Closed, Shared};
use crate::lines::{Line, Lines};

/// How much that is not the protocol is read between two proper messages. Some programs greet people on their standard output.
const MAX_GARBAGE: usize = 1 << 20;

/// Most messages that nobody asked for, per second. Progress of a busy server is some hundreds; reading more is work for nothing.
const MAX_UNASKED_PER_SECOND: u32 = 5000;

/// The transport of one running program.
pub(crate) struct StdioTransport<R, W> {
    lines: Lines<R>,
    writer: Arc<Mutex<Option<W>>>,
    shared: Arc<Shared>,
    probe_patience: Duration,
    probe: Option<(RequestId, Instant)>,
    /// A probe that was answered on the server's behalf; its own late answer would only confuse.
    answered: Option<RequestId>,
    garbage: usize,
    window: (Instant, u32),
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> StdioTransport<R, W> {
    pub(crate) fn new(output: R, input: W, limit: usize, probe_patience: Duration, shared: Arc<Shared>) -> Self {
        Self {
            lines: Lines::new(output, limit),
            writer: Arc::new(Mutex::new(Some(input))),
            shared,
            probe_patience,
            probe: None,
            answered: None,
            garbage: 0,
            window: (Instant::now(), 0),
        }
    }

    fn end(&self, why: Closed) -> Option<ServerJsonRpcMessage> {
        self.shared.note_closed(why);
        None
    }

    /// The next line, or the id of a probe that has waited long enough.
    async fn next(&mut self) -> Result<Line, RequestId> {
        let Some((id, deadline)) = self.probe.clone() else {
            return Ok(self.lines.next().await);
        };
        tokio::select! {
            biased;
            line = self.lines.next() => Ok(line),
            () = tokio::time::sleep_until(deadline) => {
                self.probe = None;
                self.answered = Some(id.clone());
                Err(id)
            }
        }
    }

    /// Whether so many messages that nobody asked for are still bearable.
    fn bearable(&mut self, message: &ServerJsonRpcMessage) -> bool {
        if matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)) {
            return true;
        }
        let now = Instant::now();
        if now.duration_since(self.window.0) >= Duration::from_secs(1) {
            self.window = (now, 0);
        }
        self.window.1 += 1;
        self.window.1 <= MAX_UNASKED_PER_SECOND
    }
}

impl<R, W> Transport<RoleClient> for StdioTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        if let ClientJsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
        {
            self.probe = Some((request.id.clone(), Instant::now() + self.probe_patience));
        }
        let writer = Arc::clone(&self.writer);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            writer.write_all(&line).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let line = match self.next().await {
                Ok(Line::Whole(line)) => line,
                Ok(Line::End) => return self.end(Closed::EndOfOutput),
                Ok(Line::TooLong { head, tail }) => match answered_id(&head, &tail) {
                    Some(id) => {
                        self.shared.note_oversized(id.clone());
                        return Some(error_for(id, "the answer is too large"));
                    }
                    None => return self.end(Closed::Oversized),
                },
                Err(id) => {
                    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no answer to server/discover", None);
                    return Some(ServerJsonRpcMessage::error(error, Some(id)));
                }
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if is_echo(&line) {
                return self.end(Closed::Echoing);
            }
            let Some(message) = parsed(&line) else {
                self.garbage += line.len();
                if self.garbage > MAX_GARBAGE {
                    return self.end(Closed::Babbling);
                }
                continue;
            };
            self.garbage = 0;
            self.shared.note_received();
            if !self.bearable(&message) {
                return self.end(Closed::Flooding);
            }
            let id = match &message {
                ServerJsonRpcMessage::Response(response) => Some(&response.id),
                ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
                _ => None,
            };
            if id.is_some() && id == self.answered.as_ref() {
                continue;
            }
            if id.is_some() && id == self.probe.as_ref().map(|(probe, _)| probe) {
                self.probe = None;
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A write that hangs holds the lock; the process is ended by its owner in any case.
        if let Ok(mut writer) = self.writer.try_lock() {
            drop(writer.take());
        }
        Ok(())
    }
}

/// A message, or an error in place of an answer that cannot be understood: its caller need not wait for the deadline.
fn parsed(line: &[u8]) -> Option<ServerJsonRpcMessage> {
    if let Ok(message) = serde_json::from_slice(line) {
        return Some(message);
    }
    let value: Value = serde_json::from_slice(line).ok()?;
    let answer = value.get("result").is_some() || value.get("error").is_some();
    let id: RequestId = serde_json::from_value(value.get("id")?.clone()).ok()?;
    answer.then(|| error_for(id, "the answer is not a valid protocol message"))
}

/// Whether a line is a request that only clients make: whoever writes it sends back what it read.
fn is_echo(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Request {
        method: String,
    }
    serde_json::from_slice::<Request>(line)
        .is_ok_and(|request| matches!(request.method.as_str(), "server/discover" | "initialize"))
}

fn error_for(id: RequestId, words: &'static str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::internal_error(words, None), Some(id))
}

/// The id of the request that an oversized line answers. Servers write it at the beginning or at the end; text inside the answer may
/// look like it, but a wrong id only fails another call of the same server.
fn answered_id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let payload = ["\"result\"", "\"params\"", "\"error\""].iter().filter_map(|key| head.find(key)).min();
    let before = head.get(..payload.unwrap_or(head.len())).unwrap_or_default();
    if let Some((_, rest)) = before.split_once("\"id\"") {
        return number(rest.trim_start().strip_prefix(':')?);
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, rest) = tail.trim_end().strip_suffix('}')?.rsplit_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?;
    // Whatever follows the number means that this was not the last key.
    rest.trim().bytes().all(|byte| byte.is_ascii_digit()).then(|| number(rest)).flatten()
}

fn number(text: &str) -> Option<RequestId> {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(RequestId::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_of_an_oversized_answer_is_found() {
        let id = |head: &str, tail: &str| match answered_id(head.as_bytes(), tail.as_bytes()) {
            Some(RequestId::Number(number)) => Some(number),
            _ => None,
        };
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{"#, "}}"), Some(7));
        assert_eq!(id(r#"{"jsonrpc": "2.0", "id" : 12 , "result":{"#, "}}"), Some(12));
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"x"}],"isError":false},"jsonrpc":"2.0","id":9}"#), Some(9));
        assert_eq!(id(r#"{"result":{"id":3,"#, r#"x","id":5}}"#), None);
        assert_eq!(id(r#"{"method":"notifications/progress","params":{"id":3"#, "}}"), None);
        assert_eq!(id("garbage", "garbage"), None);
    }
}
