//! `gateway.idle_streams`: what a thousand streams cost that have nothing to say.

use std::time::Duration;

use palyra_common::RunLifecyclePhase;
use palyra_figures::{Aim, Report};

use crate::Failure;
use crate::daemon::{Daemon, Place};
use crate::reader::{Kind, Reader, channel};

const STREAMS: usize = 1_000;
/// Streams on one connection of gRPC; the daemon allows 128.
const PER_CHANNEL: usize = 100;
/// Streams that are opened and closed before anything is measured.
const WARM_UP: usize = 20;
/// Longer than the time between two heartbeats, so that every stream has sent one.
const SETTLE: Duration = Duration::from_secs(12);

pub(crate) async fn figures(report: &mut Report) -> Result<(), Failure> {
    for kind in Kind::ALL {
        let place = Place::new()?;
        let mut daemon = place.start().await?;
        let added = added(&daemon, kind).await?;
        let id = match kind {
            Kind::Events => "gateway.idle_streams".to_owned(),
            other => format!("gateway.idle_streams.{}", other.name()),
        };
        report.figure(&id, added, "MB", None, Aim::AtMost(30.0), STREAMS as u64, None);
        daemon.stop()?;
    }
    Ok(())
}

/// Megabytes that the streams add. All follow one run, which waits for a person.
async fn added(daemon: &Daemon, kind: Kind) -> Result<f64, Failure> {
    let run_id = daemon.begin("ask me").await?;
    while daemon.phase(run_id).await? != RunLifecyclePhase::WaitingForApproval {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let last = daemon.client.run(run_id).await?.run.last_seq;
    let open = async |count: usize| {
        let mut readers = Vec::new();
        let mut shared = None;
        for n in 0..count {
            let mut reader = match kind {
                Kind::Grpc => {
                    if n % PER_CHANNEL == 0 {
                        shared = Some(channel(daemon).await?);
                    }
                    Reader::grpc(shared.clone().ok_or("no connection")?, daemon, run_id).await?
                }
                Kind::Events | Kind::Socket => Reader::open(daemon, kind, run_id).await?,
            };
            reader.read_to(last).await?;
            readers.push(reader);
        }
        Ok::<_, Failure>(readers)
    };
    drop(open(WARM_UP).await?);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = daemon.memory()?;
    let readers = open(STREAMS).await?;
    tokio::time::sleep(SETTLE).await;
    let after = daemon.memory()?;
    drop(readers);
    Ok(after - before)
}
