//! `memory.returned`: what a daemon keeps of the memory that its heaviest load took.

use std::time::Duration;

use palyra_common::RequestId;
use palyra_figures::{Aim, Report};
use serde_json::json;
use tokio::task::JoinSet;

use crate::Failure;
use crate::crowd::{Crowd, Protocol};
use crate::daemon::{Daemon, Place, Security, begin, run};
use crate::reader::connect;
use crate::socket::Socket;

/// Until a daemon is idle after its start: the sandbox is proven meanwhile.
const IDLE: Duration = Duration::from_secs(15);
/// After the load, as the aim has it.
const AFTER: Duration = Duration::from_secs(30);
/// Runs with long prompts, which make the journal long.
const LONG: usize = 16;
const LONG_BYTES: usize = 400_000;
/// WebSockets that are not read, and what each of them asks for.
const SOCKETS: usize = 100;
const STREAMS: usize = 8;
const STOPPED: Duration = Duration::from_secs(12);
const RUNS: usize = 1_280;
const AT_ONCE: usize = 64;

pub(crate) async fn figures(report: &mut Report) -> Result<(), Failure> {
    let place = Place::new()?;
    let mut daemon = place.start().await?;
    tokio::time::sleep(IDLE).await;
    let idle = daemon.resident("VmRSS")?;
    load(&daemon).await?;
    let peak = daemon.resident("VmHWM")?;
    tokio::time::sleep(AFTER).await;
    let after = daemon.resident("VmRSS")?;
    daemon.stop()?;
    report.figure("memory.returned", after / idle, "ratio", Some("before the load"), Aim::AtMost(1.5), 1, None);
    for (name, value) in [("idle", idle), ("peak", peak), ("after", after)] {
        report.figure(&format!("memory.returned.{name}"), value, "MB", None, Aim::None, 1, None);
    }
    Ok(())
}

/// Many runs at once, readers that stop, and strangers over every protocol, one after the other.
async fn load(daemon: &Daemon) -> Result<(), Failure> {
    let http = daemon.over_http()?;
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (client, workspace) = (http.clone(), daemon.workspace.clone());
        workers.spawn(async move {
            for _ in 0..RUNS / AT_ONCE {
                run(&client, &workspace, "one tool").await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    for n in 0..LONG {
        begin(&http, &daemon.workspace, &format!("hello {n} {}", "x".repeat(LONG_BYTES))).await?;
    }
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        let mut socket = Socket::open(connect(daemon).await?, daemon.http, &daemon.token).await?;
        for _ in 0..STREAMS {
            let command = json!({ "request_id": RequestId::generate(), "command": "journal.export", "params": {} });
            socket.send(&command.to_string()).await?;
        }
        sockets.push(socket);
    }
    tokio::time::sleep(STOPPED).await;
    drop(sockets);
    // All that this daemon speaks.
    for protocol in Protocol::ALL.into_iter().filter(|protocol| protocol.security() == Security::Plain) {
        drop(Crowd::gather(protocol, daemon).await?);
    }
    Ok(())
}
