//! `gateway.sessions1000`: a list of a thousand sessions with a hundred events each, over HTTP.

use std::time::Instant;

use palyra_client::Client;
use palyra_client::api::ListSessionsParams;
use palyra_figures::{Aim, Report};
use tokio::task::JoinSet;

use crate::daemon::{Place, run};
use crate::{Failure, samples};

const SESSIONS: usize = 1_000;
const EVENTS: u64 = 100;
/// The largest page there is.
const PAGE: u32 = 500;
const AT_ONCE: usize = 40;
const TIMES: usize = 50;

pub(crate) async fn figures(report: &mut Report) -> Result<(), Failure> {
    let place = Place::new()?;
    let mut daemon = place.start().await?;
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (client, workspace) = (daemon.client.clone(), daemon.workspace.clone());
        workers.spawn(async move {
            let mut fewest = u64::MAX;
            for _ in 0..SESSIONS / AT_ONCE {
                fewest = fewest.min(run(&client, &workspace, "many turns").await?);
            }
            Ok::<_, Failure>(fewest)
        });
    }
    let mut fewest = u64::MAX;
    while let Some(worker) = workers.join_next().await {
        fewest = fewest.min(worker??);
    }
    if fewest < EVENTS {
        return Err(format!("a session has {fewest} events instead of {EVENTS}").into());
    }
    let client = daemon.over_http()?;
    for _ in 0..5 {
        list(&client).await?;
    }
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        list(&client).await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let times = samples(times)?;
    let n = TIMES as u64;
    report.figure("gateway.sessions1000", times.median(), "ms", None, Aim::AtMost(50.0), n, Some(times.spread()));
    report.figure("gateway.sessions1000.max", times.max(), "ms", None, Aim::None, n, None);
    report.figure("gateway.sessions1000.events", fewest as f64, "events per session", None, Aim::None, 1_000, None);
    daemon.stop()
}

/// All pages of the list.
async fn list(client: &Client) -> Result<(), Failure> {
    let mut listed = 0;
    let mut before = None;
    loop {
        let params = ListSessionsParams { limit: Some(PAGE), before, ..ListSessionsParams::default() };
        let page = client.sessions(&params).await?;
        listed += page.sessions.len();
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    if listed == SESSIONS { Ok(()) } else { Err(format!("{listed} sessions are listed").into()) }
}
