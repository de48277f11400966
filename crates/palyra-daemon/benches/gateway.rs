//! The gateway under load: the release binary, its doors on loopback, a model that answers at once.
//!
//! - `gateway.health`: requests/s of `GET /healthz` over kept connections, against an axum server that does nothing; `gateway.health.grpc`: the standard
//!   health service, against a tonic server that has nothing else.
//! - `gateway.idle_streams`: memory that 1,000 streams of a waiting run add, as Server-Sent Events, WebSockets and gRPC.
//! - `gateway.runs64`: 64 runs at once over HTTP, against the same over the Unix socket.
//! - `gateway.sessions1000`: listing 1,000 sessions of 100 events each.
//! - `gateway.strangers`: the p99 of an owner's runs beside 2,000 connections without a credential, of each protocol, against the same alone; `load.p99`: the largest of these.
//! - `memory.returned`: resident memory 30 s after the heaviest of these loads, against before.
//! - `gateway.stopped_reader`: memory that a reader costs who stops reading for a minute while its run goes on, against one who reads.
//!
//! The load comes from this process on the same cores, and the references run beside the daemon in turns. Memory is what the processes hold; buffers of sockets,
//! which the kernel bounds, are left out. `PALYRA_FIGURES_PART` names one part alone (`health`, `idle`, `runs`, `sessions`, `strangers`, `returned`, `stopped`) for a quick look.

#[path = "gateway/bare.rs"]
mod bare;
#[path = "gateway/crowd.rs"]
mod crowd;
#[path = "gateway/daemon.rs"]
mod daemon;
#[path = "gateway/health.rs"]
mod health;
#[path = "gateway/idle.rs"]
mod idle;
#[path = "gateway/owner.rs"]
mod owner;
#[path = "gateway/reader.rs"]
mod reader;
#[path = "gateway/returned.rs"]
mod returned;
#[path = "gateway/runs.rs"]
mod runs;
#[path = "gateway/sessions.rs"]
mod sessions;
#[path = "gateway/socket.rs"]
mod socket;
#[path = "gateway/stopped.rs"]
mod stopped;
#[path = "gateway/strangers.rs"]
mod strangers;

use palyra_figures::{Report, Samples};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    if let Some(server) = std::env::args().find_map(|argument| bare::Server::of_argument(&argument)) {
        return server.serve();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(figures())
}

async fn figures() -> Result<(), Failure> {
    let only = std::env::var("PALYRA_FIGURES_PART").ok();
    let wanted = |part: &str| only.as_deref().is_none_or(|only| only == part);
    let mut report = Report::new("gateway");
    if wanted("health") {
        health::figures(&mut report).await?;
    }
    if wanted("idle") {
        idle::figures(&mut report).await?;
    }
    if wanted("runs") {
        runs::figures(&mut report).await?;
    }
    if wanted("sessions") {
        sessions::figures(&mut report).await?;
    }
    if wanted("strangers") {
        strangers::figures(&mut report).await?;
    }
    if wanted("returned") {
        returned::figures(&mut report).await?;
    }
    if wanted("stopped") {
        stopped::figures(&mut report).await?;
    }
    report.note("client, reference and daemon share the cores; buffers of sockets in the kernel are left out");
    report.finish()?;
    Ok(())
}

fn samples(values: Vec<f64>) -> Result<Samples, Failure> {
    Samples::from_values(values).ok_or_else(|| "no samples".into())
}
