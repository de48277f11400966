//! Somebody with a credential who works at one of the listeners: run after run, each followed to its end.

use std::time::{Duration, Instant};

use palyra_client::api::{CreateRunParams, RunView};
use palyra_client::command::Command;
use palyra_client::quic::QuicClient;
use palyra_client::{Client, Follow};
use palyra_common::{RunLifecyclePhase, RunStreamBody, RunStreamEvent};
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::gateway_service_client::GatewayServiceClient;
use palyra_proto::gateway::v1::run_stream_request::Body as Up;
use palyra_proto::gateway::v1::run_stream_response::Body as Down;
use tokio::sync::mpsc;
use tonic::transport::Channel;

use crate::Failure;
use crate::daemon::{self, Daemon};
use crate::reader::channel;

/// How long the daemon may take to issue the certificate that QUIC needs.
const CERTIFICATE: Duration = Duration::from_secs(10);

/// Which listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    Unix,
    Http,
    Tls,
    Grpc,
    Quic,
}

pub(crate) struct Owner {
    client: Speaks,
    workspace: String,
}

enum Speaks {
    /// Over the Unix socket or over HTTP, with a new connection for each request.
    Http(Client),
    /// One connection for everything.
    Grpc {
        client: GatewayServiceClient<Channel>,
        token: String,
    },
    Quic(QuicClient),
}

impl Owner {
    pub(crate) async fn at(listener: Listener, daemon: &Daemon) -> Result<Self, Failure> {
        let client = match listener {
            Listener::Unix => Speaks::Http(daemon.client.clone()),
            Listener::Http => Speaks::Http(daemon.over_http()?),
            Listener::Tls => Speaks::Http(daemon.over_tls()?),
            Listener::Grpc => {
                let client = GatewayServiceClient::new(channel(daemon).await?);
                Speaks::Grpc { client, token: daemon.token.clone() }
            }
            Listener::Quic => Speaks::Quic(connect(daemon).await?),
        };
        Ok(Self { client, workspace: daemon.workspace.clone() })
    }

    /// Milliseconds that each of some runs takes, from asking for it to its last event, one after the other.
    pub(crate) async fn latencies(&self, runs: usize) -> Result<Vec<f64>, Failure> {
        let mut latencies = Vec::with_capacity(runs);
        for _ in 0..runs {
            let began = Instant::now();
            self.run().await?;
            latencies.push(began.elapsed().as_secs_f64() * 1e3);
        }
        Ok(latencies)
    }

    async fn run(&self) -> Result<(), Failure> {
        let task = daemon::task(&self.workspace, "hello");
        let ended = match &self.client {
            Speaks::Http(client) => {
                let mut tape = client.tape(client.create_run(&task).await?.run_id, 1, Follow::UntilEnd);
                let mut ended = None;
                while let Some(event) = tape.next().await? {
                    ended = phase(&event).or(ended);
                }
                ended
            }
            Speaks::Quic(client) => {
                let run: RunView = client.ask(&Command::RunCreate(task)).await?;
                let mut tape = client.tape(run.run_id, 1, Follow::UntilEnd);
                let mut ended = None;
                while let Some(event) = tape.next().await? {
                    ended = phase(&event).or(ended);
                }
                ended
            }
            Speaks::Grpc { client, token } => over_grpc(client.clone(), token, task).await?,
        };
        if ended == Some(RunLifecyclePhase::Completed) {
            Ok(())
        } else {
            Err(format!("a run of the owner ended as {ended:?}").into())
        }
    }
}

async fn connect(daemon: &Daemon) -> Result<QuicClient, Failure> {
    let began = Instant::now();
    loop {
        match QuicClient::connect_local(daemon.state()).await {
            Ok(client) => return Ok(client),
            Err(error) if began.elapsed() > CERTIFICATE => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

async fn over_grpc(
    mut client: GatewayServiceClient<Channel>,
    token: &str,
    task: CreateRunParams,
) -> Result<Option<RunLifecyclePhase>, Failure> {
    let run = wire::RunSpec { prompt: task.prompt, workspace: task.workspace, ..wire::RunSpec::default() };
    let start = wire::StartRun { run: Some(run), progress: false };
    let (up, messages) = mpsc::channel(1);
    up.send(wire::RunStreamRequest { request_id: "run".into(), body: Some(Up::Start(start)) }).await?;
    let mut request = tonic::Request::new(tokio_stream::wrappers::ReceiverStream::new(messages));
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse()?);
    let mut down = client.run_stream(request).await?.into_inner();
    let mut ended = None;
    while let Some(message) = down.message().await? {
        if let Some(Down::Event(event)) = message.body {
            ended = phase(&RunStreamEvent::try_from(event)?).or(ended);
        }
    }
    Ok(ended)
}

fn phase(event: &RunStreamEvent) -> Option<RunLifecyclePhase> {
    match &event.body {
        RunStreamBody::Status(status) => Some(status.phase),
        _ => None,
    }
}
