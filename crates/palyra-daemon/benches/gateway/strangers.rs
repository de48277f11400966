//! `gateway.strangers`: what an owner notices of two thousand strangers at the same listener; `load.p99`: the same of the protocol where it is most.
//!
//! The owner works alone and beside the strangers in turns. What the strangers' own side costs is counted against the daemon, since both share the cores.

use palyra_figures::{Aim, Report};

use crate::crowd::{Crowd, Protocol, STRANGERS};
use crate::daemon::Place;
use crate::owner::Owner;
use crate::{Failure, samples};

/// Times that the strangers come and go.
const ROUNDS: usize = 3;
/// Runs of the owner before anything is measured, and in each half of a round.
const WARM_UP: usize = 50;
const RUNS: usize = 400;

pub(crate) async fn figures(report: &mut Report) -> Result<(), Failure> {
    let mut most: f64 = 0.0;
    for protocol in Protocol::ALL {
        let place = Place::new()?;
        let mut daemon = place.start_with(protocol.security()).await?;
        let owner = Owner::at(protocol.listener(), &daemon).await?;
        owner.latencies(WARM_UP).await?;
        let (mut ratios, mut alone, mut beside) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let quiet = samples(owner.latencies(RUNS).await?)?;
            let crowd = Crowd::gather(protocol, &daemon).await?;
            let crowded = samples(owner.latencies(RUNS).await?)?;
            drop(crowd);
            ratios.push(crowded.p99() / quiet.p99());
            alone.push(quiet.p99());
            beside.push(crowded.p99());
        }
        let (ratios, alone, beside) = (samples(ratios)?, samples(alone)?, samples(beside)?);
        let id = format!("gateway.strangers.{}", protocol.name());
        let n = (ROUNDS * RUNS) as u64;
        let reference = Some("p99 of the owner alone");
        report.figure(&id, ratios.median(), "ratio", reference, Aim::AtMost(2.0), n, Some(ratios.spread()));
        for (name, values) in [("alone", &alone), ("p99", &beside)] {
            report.figure(&format!("{id}.{name}"), values.median(), "ms", None, Aim::None, n, Some(values.spread()));
        }
        most = most.max(ratios.median());
        daemon.stop()?;
    }
    let n = (Protocol::ALL.len() * ROUNDS * RUNS) as u64;
    report.figure("load.p99", most, "ratio", Some("p99 of the owner alone"), Aim::AtMost(2.0), n, None);
    report.note(&format!(
        "strangers: {STRANGERS} at a time; each says one thing and comes back 5 s after it was turned away"
    ));
    Ok(())
}
