//! RunStream: a run's events down, answers and messages up.
//!
//! The way down is pulled: a page of the tape is read when the client has taken the one before, so a client that stops reading holds one page
//! and nothing else, and the run neither waits for it nor notices. The way up is a task of its own, so that a client that does not read can
//! still stop its run; it ends with the stream. Receipts go from the task to the stream through a small channel: whoever sends faster
//! than it reads is made to wait.
//!
//! Deadlines and the daemon's end cut the stream from outside, see `bounded`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use palyra_client::api::RunTapeParams;
use palyra_client::command::{About, StreamCommand};
use palyra_common::{RunId, RunStreamEvent, SessionId, ToStableError as _};
use palyra_proto::ProtoError;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use palyra_proto::gateway::v1::run_stream_response::Body as Down;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Code, Status, Streaming};

use super::ask::{outcome, unreadable};
use super::{read, status, steering, write};
use crate::app::App;
use crate::dispatch::{self, Caller, Documents, HeldMessages, HeldPage, Page, Refusal};

/// How long a client may take for its first message; until then the stream is good for nothing.
const FIRST_MESSAGE: Duration = Duration::from_secs(30);
/// Receipts that wait for the client.
const RECEIPTS: usize = 4;

/// The method's path, for what the library refuses.
const PATH: &str = "/palyra.gateway.v1.GatewayService/RunStream";

/// The way down.
pub(super) type RunStream = Pin<Box<dyn Stream<Item = Result<wire::RunStreamResponse, Status>> + Send>>;

/// Reads the first message and begins.
pub(super) async fn open(
    app: Arc<App>,
    caller: Caller,
    mut up: Streaming<wire::RunStreamRequest>,
) -> Result<RunStream, Status> {
    let first = tokio::time::timeout(FIRST_MESSAGE, up.message())
        .await
        .map_err(|_| Status::from(Refusal::field("start", "no message came in time")))?
        .map_err(|error| status::of_library(error, PATH))?
        .ok_or_else(|| unreadable(ProtoError::missing("start")))?;
    let (run_id, session_id, from_seq, progress) = match first.body {
        Some(Up::Start(start)) => {
            let params = read::run_spec(start.run).map_err(unreadable)?;
            let run = outcome!(&app, &caller, RunCreate(params));
            (run.run_id, Some(run.session_id), 1, start.progress)
        }
        Some(Up::Resume(resume)) => {
            let run_id: RunId = read::parsed(&resume.run_id, "resume.run_id").map_err(unreadable)?;
            (run_id, None, resume.from_seq.max(1), resume.progress)
        }
        _ => return Err(Refusal::field("body", "the first message must be `start` or `resume`").into()),
    };
    let params = RunTapeParams {
        from_seq: Some(from_seq),
        follow: Some(true),
        progress: Some(progress),
        ..RunTapeParams::default()
    };
    let documents = dispatch::open(&app, &caller, StreamCommand::RunTape(About { target: run_id, params })).await?;

    let (receipts, received) = mpsc::channel(RECEIPTS);
    let over = CancellationToken::new();
    let upward = Upward { app, caller, run_id, receipts, over: over.clone() };
    let downward = Downward {
        documents,
        page: HeldMessages::default(),
        first: Some(receipt(first.request_id, run_id, session_id, None)),
        received,
        over,
        ended: false,
        _upward: AbortOnDropHandle::new(tokio::spawn(upward.read(up))),
    };
    Ok(Box::pin(futures::stream::unfold(Some(downward), |state| async {
        let mut state = state?;
        match state.next().await {
            Ok(Some(body)) => Some((Ok(wire::RunStreamResponse { body: Some(body) }), Some(state))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })))
}

fn message(event: Arc<RunStreamEvent>) -> Down {
    write::event(event).map_or_else(Down::Oversized, Down::Event)
}

fn receipt(request_id: String, run_id: RunId, session_id: Option<SessionId>, refusal: Option<Refusal>) -> Down {
    Down::Receipt(wire::RunStreamReceipt {
        request_id,
        run_id: run_id.to_string(),
        session_id: session_id.map(|id| id.to_string()).unwrap_or_default(),
        error: refusal.map(|refusal| refusal.into_envelope().into()),
    })
}

/// The way up, read until the client has said everything or the run is over.
struct Upward {
    app: Arc<App>,
    caller: Caller,
    run_id: RunId,
    receipts: mpsc::Sender<Result<Down, Status>>,
    /// The run is over: what is being done is finished, nothing more is read.
    over: CancellationToken,
}

impl Upward {
    async fn read(self, mut up: Streaming<wire::RunStreamRequest>) {
        loop {
            let message = tokio::select! {
                biased;
                () = self.over.cancelled() => return,
                message = up.message() => message,
            };
            let answer = match message {
                // Boxed, so that the many who say nothing do not pay for what could be said.
                Ok(Some(message)) => Ok(Box::pin(self.answer(message)).await),
                Ok(None) => return,
                // The connection broke or the client gave up: nobody is left to be told, and it is everyday life.
                Err(error) if matches!(error.code(), Code::Unknown | Code::Unavailable | Code::Cancelled) => return,
                Err(error) => Err(status::of_library(error, PATH)),
            };
            let broken = answer.is_err();
            // Nobody listens any more once the stream is gone, and then there is nothing to tell.
            if self.receipts.send(answer).await.is_err() || broken {
                return;
            }
        }
    }

    async fn answer(&self, message: wire::RunStreamRequest) -> Down {
        let done = match message.body {
            None => Err(Refusal::from(ProtoError::missing("body").to_stable())),
            Some(body) => steering::carry_out(&self.app, &self.caller, self.run_id, body).await,
        };
        receipt(message.request_id, self.run_id, None, done.err())
    }
}

/// The way down.
struct Downward {
    documents: Documents,
    page: HeldMessages<Down>,
    /// The receipt of the first message.
    first: Option<Down>,
    received: mpsc::Receiver<Result<Down, Status>>,
    over: CancellationToken,
    /// The tape has been read to its end.
    ended: bool,
    _upward: AbortOnDropHandle<()>,
}

impl Downward {
    /// The next message down; `None` after the run's last event and the last receipt.
    async fn next(&mut self) -> Result<Option<Down>, Status> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        loop {
            if let Ok(receipt) = self.received.try_recv() {
                return receipt.map(Some);
            }
            if let Some(message) = self.page.next() {
                return Ok(Some(message));
            }
            if self.ended {
                return self.received.recv().await.transpose();
            }
            tokio::select! {
                biased;
                Some(receipt) = self.received.recv() => return receipt.map(Some),
                page = self.documents.next() => match page? {
                    Some(HeldPage { page: Page::Events(events), permit }) => {
                        let messages = events.into_iter().map(message).collect();
                        self.page = HeldMessages::new(messages, Down::encoded_len, permit);
                    }
                    Some(_) => {}
                    None => {
                        self.ended = true;
                        self.over.cancel();
                    }
                },
            }
        }
    }
}
