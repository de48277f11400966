//! Clients of a daemon's gRPC interface.

use std::time::Duration;

use palyra_common::{RunId, RunStreamEvent};
use palyra_proto::auth::v1::tokens_service_client::TokensServiceClient;
use palyra_proto::error_from_status;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::approvals_service_client::ApprovalsServiceClient;
use palyra_proto::gateway::v1::canvas_service_client::CanvasServiceClient;
use palyra_proto::gateway::v1::gateway_service_client::GatewayServiceClient;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use palyra_proto::gateway::v1::run_stream_response::Body as Down;
use tokio::sync::mpsc;
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use crate::support::{Daemon, Place};

/// Longer than anything here takes, so that a hang fails instead of blocking.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Shows a token with every call, or none.
#[derive(Clone)]
pub(crate) struct Shows(Option<String>);

impl Interceptor for Shows {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            let value = MetadataValue::try_from(format!("Bearer {token}")).unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        Ok(request)
    }
}

pub(crate) type Shown = InterceptedService<Channel, Shows>;

/// Every service of one daemon for one caller.
pub(crate) struct Grpc {
    pub(crate) gateway: GatewayServiceClient<Shown>,
    pub(crate) approvals: ApprovalsServiceClient<Shown>,
    pub(crate) canvases: CanvasServiceClient<Shown>,
    pub(crate) tokens: TokensServiceClient<Shown>,
}

impl Grpc {
    /// With the local token.
    pub(crate) async fn of(daemon: &Daemon) -> Self {
        Self::showing(daemon, Some(daemon.token())).await
    }

    /// With any token, or none.
    pub(crate) async fn showing(daemon: &Daemon, token: Option<String>) -> Self {
        let channel = channel(daemon).await;
        let shows = Shows(token);
        Self {
            gateway: GatewayServiceClient::with_interceptor(channel.clone(), shows.clone()),
            approvals: ApprovalsServiceClient::with_interceptor(channel.clone(), shows.clone()),
            canvases: CanvasServiceClient::with_interceptor(channel.clone(), shows.clone()),
            tokens: TokensServiceClient::with_interceptor(channel, shows),
        }
    }

    /// Opens a stream with its first message.
    pub(crate) async fn open(&mut self, first: Up) -> Result<Following, Status> {
        let (up, messages) = mpsc::channel(16);
        up.send(wire::RunStreamRequest { request_id: "first".into(), body: Some(first) }).await.unwrap();
        let messages = tokio_stream::wrappers::ReceiverStream::new(messages);
        let down = self.gateway.run_stream(messages).await?.into_inner();
        Ok(Following { up, down })
    }

    /// Starts a run and follows it.
    pub(crate) async fn start(&mut self, place: &Place, prompt: &str) -> Following {
        self.open(Up::Start(wire::StartRun { run: Some(spec(place, prompt)), progress: false })).await.unwrap()
    }

    /// Follows a run from a position.
    pub(crate) async fn resume(&mut self, run_id: &str, from_seq: u64) -> Following {
        let resume = wire::ResumeRun { run_id: run_id.to_owned(), from_seq, progress: false };
        self.open(Up::Resume(resume)).await.unwrap()
    }
}

pub(crate) async fn channel(daemon: &Daemon) -> Channel {
    let uri = format!("http://{}", grpc_address(daemon));
    // Small windows, so that a client that does not read makes the daemon wait.
    let endpoint = Channel::from_shared(uri).unwrap().initial_stream_window_size(65_535);
    endpoint.connect().await.unwrap()
}

/// Where gRPC is served.
pub(crate) fn grpc_address(daemon: &Daemon) -> String {
    std::fs::read_to_string(daemon.state_root.join("grpc.addr")).unwrap().trim().to_owned()
}

pub(crate) fn spec(place: &Place, prompt: &str) -> wire::RunSpec {
    wire::RunSpec {
        prompt: prompt.to_owned(),
        workspace: place.workspace().display().to_string(),
        ..wire::RunSpec::default()
    }
}

/// An open stream.
pub(crate) struct Following {
    up: mpsc::Sender<wire::RunStreamRequest>,
    pub(crate) down: Streaming<wire::RunStreamResponse>,
}

impl Following {
    pub(crate) async fn say(&self, request_id: &str, body: Up) {
        let message = wire::RunStreamRequest { request_id: request_id.to_owned(), body: Some(body) };
        self.up.send(message).await.unwrap();
    }

    /// The next message, `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Down>, Status> {
        let next = tokio::time::timeout(PATIENCE, self.down.message()).await.expect("the stream says nothing");
        Ok(next?.map(|message| message.body.unwrap()))
    }

    pub(crate) async fn receipt(&mut self) -> wire::RunStreamReceipt {
        loop {
            match self.next().await.unwrap().expect("the stream ended without a receipt") {
                Down::Receipt(receipt) => return receipt,
                Down::Event(_) | Down::Oversized(_) => {}
            }
        }
    }

    /// The first receipt, which names the run.
    pub(crate) async fn run_id(&mut self) -> RunId {
        let receipt = self.receipt().await;
        assert_eq!((receipt.request_id.as_str(), &receipt.error), ("first", &None));
        receipt.run_id.parse().unwrap()
    }

    /// The next event.
    pub(crate) async fn event(&mut self) -> RunStreamEvent {
        loop {
            match self.next().await.unwrap().expect("the stream ended") {
                Down::Event(event) => return event.try_into().unwrap(),
                Down::Receipt(_) | Down::Oversized(_) => {}
            }
        }
    }

    /// Everything that is left: events and receipts.
    pub(crate) async fn rest(mut self) -> (Vec<RunStreamEvent>, Vec<wire::RunStreamReceipt>) {
        let (mut events, mut receipts) = (Vec::new(), Vec::new());
        while let Some(message) = self.next().await.unwrap() {
            match message {
                Down::Event(event) => events.push(event.try_into().unwrap()),
                Down::Receipt(receipt) => receipts.push(receipt),
                Down::Oversized(oversized) => panic!("{oversized:?}"),
            }
        }
        (events, receipts)
    }
}

/// The codes of a refusal: of gRPC and of the envelope that came with it.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.unwrap_err();
    assert!(!status.details().is_empty(), "no envelope: {status:?}");
    (status.code(), error_from_status(&status).code)
}
