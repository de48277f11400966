//! `gateway.runs64`: runs over HTTP, 64 at once, one tool call each, every record durable.

use std::time::Instant;

use palyra_client::Client;
use palyra_figures::{Aim, Report};
use tokio::task::JoinSet;

use crate::daemon::{Place, run};
use crate::{Failure, samples};

const AT_ONCE: usize = 64;
const RUNS: usize = 640;
const ROUNDS: usize = 5;

pub(crate) async fn figures(report: &mut Report) -> Result<(), Failure> {
    let place = Place::new()?;
    let mut daemon = place.start().await?;
    let (http, unix) = (daemon.over_http()?, daemon.client.clone());
    let workspace = daemon.workspace.clone();
    batch(&http, &workspace, AT_ONCE).await?;
    batch(&unix, &workspace, AT_ONCE).await?;
    let (mut rates, mut ratios, mut waves) = (Vec::new(), Vec::new(), Vec::new());
    let mut failed = 0;
    for _ in 0..ROUNDS {
        let over_http = batch(&http, &workspace, RUNS).await?;
        let over_unix = batch(&unix, &workspace, RUNS).await?;
        let wave = batch(&http, &workspace, AT_ONCE).await?;
        rates.push(RUNS as f64 / over_http.seconds);
        ratios.push(over_unix.seconds / over_http.seconds);
        waves.push(wave.seconds * 1e3);
        failed += over_http.failed + over_unix.failed + wave.failed;
    }
    let (rates, ratios, waves) = (samples(rates)?, samples(ratios)?, samples(waves)?);
    let n = (ROUNDS * RUNS) as u64;
    let reference = Some("the same over the Unix socket");
    report.figure("gateway.runs64", ratios.median(), "ratio", reference, Aim::None, n, Some(ratios.spread()));
    report.figure("gateway.runs64.rate", rates.median(), "runs/s", None, Aim::None, n, Some(rates.spread()));
    report.figure("gateway.runs64.wave", waves.median(), "ms", None, Aim::None, ROUNDS as u64, Some(waves.spread()));
    report.figure("gateway.runs64.failed", f64::from(failed), "runs", None, Aim::AtMost(0.0), n, None);
    daemon.stop()
}

struct Batch {
    seconds: f64,
    failed: u32,
}

async fn batch(client: &Client, workspace: &str, runs: usize) -> Result<Batch, Failure> {
    let began = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (client, workspace) = (client.clone(), workspace.to_owned());
        workers.spawn(async move {
            let mut failed = 0;
            for _ in 0..runs / AT_ONCE {
                if let Err(error) = run(&client, &workspace, "one tool").await {
                    eprintln!("a run failed: {error}");
                    failed += 1;
                }
            }
            failed
        });
    }
    let mut failed = 0;
    while let Some(worker) = workers.join_next().await {
        failed += worker?;
    }
    Ok(Batch { seconds: began.elapsed().as_secs_f64(), failed })
}
