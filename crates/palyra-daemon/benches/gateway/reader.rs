//! Somebody who follows a run, over any of the streaming interfaces, and reads only when asked to.

use std::collections::VecDeque;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use palyra_common::{RequestId, RunId, RunStreamEvent};
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::gateway_service_client::GatewayServiceClient;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use palyra_proto::gateway::v1::run_stream_response::Body as Down;
use serde::Deserialize;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::Failure;
use crate::daemon::Daemon;
use crate::socket::Socket;

/// What the kernel takes for a reader that does not read: little, so that the daemon notices at once.
const RECEIVE_BYTES: u32 = 32 * 1024;
/// The same for one stream of HTTP/2.
const STREAM_BYTES: u32 = 65_535;

/// How to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Events,
    Socket,
    Grpc,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Events, Self::Socket, Self::Grpc];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Events => "sse",
            Self::Socket => "websocket",
            Self::Grpc => "grpc",
        }
    }
}

pub(crate) enum Reader {
    Events(Incoming, Lines),
    Socket(Socket),
    /// The way up stays open for as long as the way down is read.
    Grpc {
        down: Streaming<wire::RunStreamResponse>,
        _up: mpsc::Sender<wire::RunStreamRequest>,
    },
}

impl Reader {
    /// Follows a run from its beginning, over a connection of its own.
    pub(crate) async fn open(daemon: &Daemon, kind: Kind, run_id: RunId) -> Result<Self, Failure> {
        match kind {
            Kind::Events => Self::events(daemon, run_id).await,
            Kind::Socket => {
                let mut socket = Socket::open(connect(daemon).await?, daemon.http, &daemon.token).await?;
                let params = serde_json::json!({ "run_id": run_id, "follow": true });
                let request_id = RequestId::generate();
                let command = serde_json::json!({ "request_id": request_id, "command": "run.tape", "params": params });
                socket.send(&command.to_string()).await?;
                Ok(Self::Socket(socket))
            }
            Kind::Grpc => Self::grpc(channel(daemon).await?, daemon, run_id).await,
        }
    }

    async fn events(daemon: &Daemon, run_id: RunId) -> Result<Self, Failure> {
        let stream = TokioIo::new(connect(daemon).await?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        tokio::spawn(connection);
        let request = http::Request::get(format!("/api/v1/runs/{run_id}/events"))
            .header("host", daemon.http.to_string())
            .header("authorization", format!("Bearer {}", daemon.token))
            .body(Empty::<Bytes>::new())?;
        let answer = sender.send_request(request).await?;
        if answer.status() != http::StatusCode::OK {
            return Err(format!("no events: {}", answer.status()).into());
        }
        Ok(Self::Events(answer.into_body(), Lines::default()))
    }

    /// Follows a run over a connection that others use too.
    pub(crate) async fn grpc(channel: Channel, daemon: &Daemon, run_id: RunId) -> Result<Self, Failure> {
        let (up, messages) = mpsc::channel(1);
        let resume = wire::ResumeRun { run_id: run_id.to_string(), from_seq: 1, progress: false };
        up.send(wire::RunStreamRequest { request_id: "first".into(), body: Some(Up::Resume(resume)) }).await?;
        let mut request = tonic::Request::new(tokio_stream::wrappers::ReceiverStream::new(messages));
        request.metadata_mut().insert("authorization", format!("Bearer {}", daemon.token).parse()?);
        let down = GatewayServiceClient::new(channel).run_stream(request).await?.into_inner();
        Ok(Self::Grpc { down, _up: up })
    }

    /// The position of the next event, `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<u64>, Failure> {
        match self {
            Self::Events(body, lines) => loop {
                match lines.next() {
                    Some(Line::Event(seq)) => return Ok(Some(seq)),
                    Some(Line::End) => return Ok(None),
                    None => {}
                }
                let frame = body.frame().await.ok_or("the events broke off")??;
                lines.push(frame.data_ref().map(|data| data.as_ref()).unwrap_or_default());
            },
            Self::Socket(socket) => {
                let text = socket.next().await?.ok_or("the socket was closed")?;
                let reply: Reply = serde_json::from_slice(&text)?;
                Ok(reply.document.map(|event| event.seq))
            }
            Self::Grpc { down, .. } => loop {
                match down.message().await?.and_then(|message| message.body) {
                    Some(Down::Event(event)) => return Ok(Some(RunStreamEvent::try_from(event)?.seq)),
                    Some(Down::Receipt(wire::RunStreamReceipt { error: None, .. })) => {}
                    Some(other) => return Err(format!("not an event: {other:?}").into()),
                    None => return Ok(None),
                }
            },
        }
    }

    /// Reads as far as this position.
    pub(crate) async fn read_to(&mut self, seq: u64) -> Result<(), Failure> {
        while self.next().await?.ok_or("the run ended early")? < seq {}
        Ok(())
    }
}

/// What a socket says: a document, or the end.
#[derive(Deserialize)]
struct Reply {
    document: Option<RunStreamEvent>,
}

/// Positions in a text of Server-Sent Events that comes in pieces.
#[derive(Default)]
pub(crate) struct Lines {
    open: Vec<u8>,
    found: VecDeque<Line>,
}

enum Line {
    Event(u64),
    End,
}

impl Lines {
    fn push(&mut self, piece: &[u8]) {
        for byte in piece {
            if *byte != b'\n' {
                // Only the beginning of a line tells what it is.
                if self.open.len() < 64 {
                    self.open.push(*byte);
                }
                continue;
            }
            if let Some(id) = self.open.strip_prefix(b"id: ") {
                let seq = std::str::from_utf8(id).ok().and_then(|text| text.parse().ok());
                self.found.extend(seq.map(Line::Event));
            } else if self.open == b"event: end" {
                self.found.push_back(Line::End);
            }
            self.open.clear();
        }
    }

    fn next(&mut self) -> Option<Line> {
        self.found.pop_front()
    }
}

/// A connection over which little fits that is not read.
pub(crate) async fn connect(daemon: &Daemon) -> Result<TcpStream, Failure> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVE_BYTES)?;
    Ok(socket.connect(daemon.http).await?)
}

/// A connection for gRPC.
pub(crate) async fn channel(daemon: &Daemon) -> Result<Channel, Failure> {
    let endpoint = Endpoint::from_shared(format!("http://{}", daemon.grpc))?;
    Ok(endpoint.initial_stream_window_size(STREAM_BYTES).initial_connection_window_size(STREAM_BYTES).connect().await?)
}
