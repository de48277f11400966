//! Commands and streams over one WebSocket.
//!
//! Each message of the client is a command envelope, or `{"cancel": request_id}`. Each message of the daemon is the result of a command, one
//! document of a stream, or the end of one. Commands are carried out side by side, a bounded number at a time. A client that does not read stops
//! its own streams and nothing else: a document is made when there is room for it. What is no message ends the socket with a code that says why, and so does
//! silence: a client that answers no pings is gone, whatever the system says about its connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use futures::stream::SplitStream;
use futures::{Sink, SinkExt as _, StreamExt as _};
use palyra_client::command::{SocketMessage, SocketReply};
use palyra_client::command::{StreamCommand, read_socket_message};
use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, RequestId};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::extract::MAX_BODY_BYTES;
use crate::app::App;
use crate::dispatch::{self, Caller, HeldPage, PagePermit, Refusal, Transport};
use crate::serve::Connection;

/// Messages that wait for a slow client. Each may be as large as an event, so few: what waits longer stays on the journal.
const OUTBOX: usize = 2;
/// What is set aside for reading and for writing on each socket. The library would take 128 KiB for each, which a thousand idle sockets cannot have.
const BUFFER_BYTES: usize = 8 * 1024;
/// Commands and streams of one socket at a time.
const AT_ONCE: usize = 64;
/// How often a silent client is asked whether it is still there.
const PING: Duration = Duration::from_secs(20);
/// Pings in a row without a sign of life after which a client is gone: two minutes. Its streams would otherwise be kept for as long as the system believes in the connection.
const UNANSWERED: u32 = 6;
/// How long the last messages may take. A client that reads nothing does not hear them anyway.
const FLUSH: Duration = Duration::from_secs(1);

pub(super) async fn open(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Extension(connection): Extension<Connection>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let caller = Caller::new(caller.principal, Transport::WebSocket).on(&connection);
    let evicted = connection.evicted();
    upgrade
        .max_message_size(MAX_BODY_BYTES)
        .max_frame_size(MAX_BODY_BYTES)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .on_upgrade(move |socket| async move { Session::new(app, caller).serve(socket, evicted).await })
}

struct Session {
    app: Arc<App>,
    caller: Caller,
    streams: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
    slots: Arc<Semaphore>,
}

impl Session {
    fn new(app: Arc<App>, caller: Caller) -> Self {
        Self { app, caller, streams: Arc::default(), slots: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    async fn serve(self, socket: WebSocket, evicted: impl Future<Output = ()> + Send) {
        let (sink, stream) = socket.split();
        let (outbox, inbox) = mpsc::channel(OUTBOX);
        let mut tasks = JoinSet::new();
        let writer = AbortOnDropHandle::new(tokio::spawn(write(sink, inbox)));
        let closing = self.app.closing.clone();
        let goodbye = tokio::select! {
            goodbye = self.read(stream, &outbox, &mut tasks) => goodbye,
            // The connection is gone.
            () = outbox.closed() => None,
            // Others of the same principal wait for what is not read here. Dropped in the middle of a frame: there is no way to say why.
            () = evicted => {
                drop(writer);
                tasks.shutdown().await;
                return;
            }
            () = closing.cancelled() => Some(goodbye(close_code::RESTART, "the daemon is stopping")),
        };
        // Whoever is gone wants no answers; commands that were begun are on the journal and go on.
        tasks.shutdown().await;
        let last = async {
            if let Some(goodbye) = goodbye {
                let _ = outbox.send(Message::Close(Some(goodbye)).into()).await;
            }
            drop(outbox);
            let _ = writer.await;
        };
        let _ = tokio::time::timeout(FLUSH, last).await;
    }

    /// Reads until the socket ends, and gives what the client is told about it, if it can still be told.
    async fn read(
        &self,
        mut stream: SplitStream<WebSocket>,
        outbox: &mpsc::Sender<Outgoing>,
        tasks: &mut JoinSet<()>,
    ) -> Option<CloseFrame> {
        let mut ticks = tokio::time::interval(PING);
        let mut liveness = Liveness::default();
        let mut lease = self.app.gate.lease(&self.caller.principal);
        loop {
            let message = tokio::select! {
                message = stream.next() => message,
                _ = lease.lost() => return Some(goodbye(close_code::POLICY, "the credential is no longer valid")),
                _ = ticks.tick() => {
                    if liveness.is_gone() {
                        return Some(goodbye(close_code::AWAY, "no ping was answered"));
                    }
                    // A client that reads nothing has a full outbox; it is not asked again until there is room.
                    if outbox.try_send(Message::Ping(bytes::Bytes::new()).into()).is_ok() {
                        liveness.asked();
                    }
                    continue;
                }
                Some(_) = tasks.join_next() => continue,
            };
            liveness.heard();
            let text = match message {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Binary(_))) => {
                    return Some(goodbye(close_code::UNSUPPORTED, "messages must be JSON text"));
                }
                Some(Err(error)) => return no_message(error),
                Some(Ok(Message::Close(_))) | None => return None,
            };
            match read_socket_message(text.as_bytes()) {
                Ok(SocketMessage::Cancel(id)) => {
                    if let Some(stream) = self.lock_streams().remove(&id) {
                        stream.cancel();
                    }
                }
                Ok(SocketMessage::Command(envelope)) => {
                    let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return None };
                    let answer = self.answer(*envelope, outbox.clone());
                    tasks.spawn(async move {
                        answer.await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    if outbox.send(reply(&SocketReply::unreadable(text.as_bytes(), error))).await.is_err() {
                        return None;
                    }
                }
            }
        }
    }

    fn lock_streams(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that one message of the client leads to.
    fn answer(&self, envelope: AcpCommandEnvelope, outbox: mpsc::Sender<Outgoing>) -> impl Future<Output = ()> + use<> {
        let (app, caller, streams) = (Arc::clone(&self.app), self.caller.clone(), Arc::clone(&self.streams));
        let stopped = CancellationToken::new();
        let request_id = envelope.request_id;
        let stream = StreamCommand::from_value(envelope.command, envelope.params.clone());
        if stream.is_some() {
            self.lock_streams().insert(request_id, stopped.clone());
        }
        async move {
            let last = match stream {
                // Boxed, so that a stream, which lasts, has no room set aside for the largest of all commands.
                None => {
                    let result = Box::pin(dispatch::envelope(&app, &caller, envelope)).await;
                    Some(SocketReply::Result(Box::new(result)))
                }
                Some(parsed) => {
                    let sent = match parsed {
                        Ok(command) => {
                            let sending = Sending { request_id, outbox: &outbox, stopped: &stopped };
                            send_stream(&app, &caller, command, sending).await
                        }
                        Err(error) => Err(error.into()),
                    };
                    streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&request_id);
                    match sent {
                        Ok(()) => Some(SocketReply::End { request_id }),
                        Err(refusal) => {
                            let failed = AcpCommandResultEnvelope::answer(&envelope, Err(refusal.into_envelope()));
                            Some(SocketReply::Result(Box::new(failed)))
                        }
                    }
                }
            };
            if let Some(last) = last {
                let _ = outbox.send(counted(&app, &caller, &last)).await;
            }
        }
    }
}

/// Whether the other side still says anything.
#[derive(Debug, Default)]
struct Liveness {
    unanswered: u32,
}

impl Liveness {
    /// Anything at all came.
    fn heard(&mut self) {
        self.unanswered = 0;
    }

    /// A ping was sent.
    fn asked(&mut self) {
        self.unanswered += 1;
    }

    /// Whether too many of them went unanswered.
    fn is_gone(&self) -> bool {
        self.unanswered >= UNANSWERED
    }
}

fn goodbye(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: Utf8Bytes::from_static(reason) }
}

/// What a client is told whose bytes are no message; nothing if the connection itself is gone.
fn no_message(error: axum::Error) -> Option<CloseFrame> {
    match *error.into_inner().downcast::<tungstenite::Error>().ok()? {
        tungstenite::Error::Capacity(_) => Some(goodbye(close_code::SIZE, "the message is too large")),
        tungstenite::Error::Utf8(_) => Some(goodbye(close_code::INVALID, "the message is not text")),
        tungstenite::Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => None,
        tungstenite::Error::Protocol(_) => Some(goodbye(close_code::PROTOCOL, "invalid WebSocket frames")),
        _ => None,
    }
}

/// Where the documents of a stream go.
struct Sending<'a> {
    request_id: RequestId,
    outbox: &'a mpsc::Sender<Outgoing>,
    stopped: &'a CancellationToken,
}

async fn send_stream(
    app: &Arc<App>,
    caller: &Caller,
    command: StreamCommand,
    sending: Sending<'_>,
) -> dispatch::Result<()> {
    let Sending { request_id, outbox, stopped } = sending;
    let mut documents = Box::pin(dispatch::open(app, caller, command)).await?;
    loop {
        let next = tokio::select! {
            next = documents.next() => next?,
            () = stopped.cancelled() => return Ok(()),
        };
        let Some(held) = next else { return Ok(()) };
        for message in outgoing(request_id, held)? {
            if outbox.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// A message on its way to the client.
struct Outgoing {
    message: Message,
    /// The right to hold the page or the answer that the message is of, shared by all messages of it.
    permit: Option<Arc<PagePermit>>,
}

impl From<Message> for Outgoing {
    fn from(message: Message) -> Self {
        Self { message, permit: None }
    }
}

/// The documents of a page as messages. A client that does not read holds one page as texts, not as events too.
fn outgoing(request_id: RequestId, held: HeldPage) -> dispatch::Result<Vec<Outgoing>> {
    let HeldPage { page, mut permit } = held;
    let mut texts = Vec::new();
    page.each(|document| {
        let mut text = format!("{{\"request_id\":\"{request_id}\",\"document\":").into_bytes();
        document.write_json(&mut text)?;
        text.push(b'}');
        text.shrink_to_fit();
        texts.push(text);
        Ok::<_, serde_json::Error>(())
    })
    .map_err(|error| Refusal::internal(format!("a document cannot be written: {error}")))?;
    permit.resize(texts.iter().map(Vec::len).sum());
    let permit = Arc::new(permit);
    let texts = texts.into_iter().filter_map(|text| Utf8Bytes::try_from(text).ok());
    Ok(texts.map(|text| Outgoing { message: Message::Text(text), permit: Some(Arc::clone(&permit)) }).collect())
}

fn reply(reply: &SocketReply) -> Outgoing {
    Message::Text(serde_json::to_string(reply).unwrap_or_default().into()).into()
}

/// A reply that counts until the client has taken it.
fn counted(app: &App, caller: &Caller, reply: &SocketReply) -> Outgoing {
    let text = serde_json::to_string(reply).unwrap_or_default();
    let permit = dispatch::answers_to(app, caller).charge_large(text.len());
    Outgoing { message: Message::Text(text.into()), permit: permit.map(Arc::new) }
}

async fn write<S: Sink<Message> + Unpin>(mut sink: S, mut inbox: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { message, permit }) = inbox.recv().await {
        let last = matches!(message, Message::Close(_));
        let sent = sink.send(message).await;
        // Only now: until the client takes it the message is in the buffer of the sink.
        drop(permit);
        if last {
            return;
        }
        // Also what is refused because the client said goodbye meanwhile.
        if sent.is_err() {
            break;
        }
    }
    // The answer to a goodbye of the client waits in the sink; a connection that ends without it looks broken from the other side.
    let _ = sink.close().await;
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use palyra_client::api::{VerifyLine, VerifyProgress};

    use super::*;
    use crate::dispatch::{Page, TestBudget};

    #[tokio::test]
    async fn a_page_is_held_until_its_last_message_is_sent() {
        let budget = TestBudget::new();
        let line = VerifyLine::Progress(VerifyProgress { done: 1, total: 2 });
        let held = budget.hold(Page::Verification(line)).await;
        let (outbox, inbox) = mpsc::channel(OUTBOX);
        for message in outgoing(RequestId::generate(), held).unwrap() {
            outbox.send(message).await.unwrap();
        }
        drop(outbox);
        assert!(!budget.is_free(), "a message in the outbox counts");
        let (sink, mut client) = futures::channel::mpsc::channel(0);
        let mut writing = pin!(write(sink, inbox));
        assert!(futures::poll!(writing.as_mut()).is_pending());
        assert!(!budget.is_free(), "and so does one that the client does not take");
        assert!(matches!(client.next().await, Some(Message::Text(_))));
        writing.await;
        assert!(budget.is_free());
    }

    #[test]
    fn whoever_says_anything_is_there() {
        let mut liveness = Liveness::default();
        let ask_until_one_is_left = |liveness: &mut Liveness| {
            for _ in 1..UNANSWERED {
                liveness.asked();
                assert!(!liveness.is_gone());
            }
        };
        ask_until_one_is_left(&mut liveness);
        liveness.heard();
        ask_until_one_is_left(&mut liveness);
        liveness.asked();
        assert!(liveness.is_gone());
    }
}
