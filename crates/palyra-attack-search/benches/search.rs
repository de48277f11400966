//! How many attacks the search tries, how many work, and how many checks it misses when they are taken away.
//!
//! - `search.runs`: attacks that were played, in worlds of consecutive seeds, in all modes, by both adversaries;
//! - `search.violations`: those after which the oracle found something that nobody authorised;
//! - `search.differences`: calls that the product permits and the reference would not;
//! - `search.mutants`: checks whose removal the search did not notice;
//! - `search.rate`: runs per second on all cores.
//!
//! `PALYRA_SEARCH_WORLDS` says how many worlds, each of which is about 200 runs.

use std::time::Instant;

use palyra_attack_search::attack::Budget;
use palyra_attack_search::campaign::Campaign;
use palyra_attack_search::mutants::Mutant;
use palyra_figures::{Aim, Report};

/// Worlds that give about a million runs.
const WORLDS: u64 = 5_000;
/// Attacks in each mode by each adversary.
const ATTACKS: u32 = 40;
/// Worlds in which the removal of a check is searched for.
const WORLDS_OF_MUTANT: u64 = 60;

#[expect(clippy::cast_precision_loss, reason = "figures are numbers for people")]
fn main() -> anyhow::Result<()> {
    let worlds = std::env::var("PALYRA_SEARCH_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(WORLDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign = Campaign { from: 1, worlds, budget: Budget { attacks: ATTACKS }, threads };
    let began = Instant::now();
    let tally = campaign.run()?;
    let rate = tally.runs as f64 / began.elapsed().as_secs_f64();
    let mut report = Report::new("search");
    let runs = tally.runs;
    report.figure("search.runs", runs as f64, "runs", None, Aim::AtLeast(1e6), runs, None);
    report.figure("search.violations", tally.violations() as f64, "violations", None, Aim::AtMost(0.0), runs, None);
    let wider = tally.differences.classes.iter().filter(|(class, _)| class.starts_with("only the product"));
    let wider: u64 = wider.map(|(_, (count, _))| count).sum();
    let compared = tally.differences.compared;
    report.figure("search.differences", wider as f64, "calls", None, Aim::AtMost(0.0), compared, None);
    let mutants = Mutant::all();
    let mut missed = Vec::new();
    for mutant in &mutants {
        if (Campaign { worlds: WORLDS_OF_MUTANT, ..campaign }).without(*mutant)?.is_none() {
            missed.push(mutant.name());
        }
    }
    report.figure("search.mutants", missed.len() as f64, "missed", None, Aim::AtMost(0.0), mutants.len() as u64, None);
    report.figure("search.rate", rate, "runs/s", None, Aim::AtLeast(1_000.0), runs, None);
    report.note(&format!("{} worlds, {ATTACKS} attacks in each of three modes by each of two adversaries", worlds));
    if !missed.is_empty() {
        report.note(&format!("removals that were not noticed: {}", missed.join(", ")));
    }
    for (class, (count, find)) in &tally.classes {
        println!("{count} × {class}\n{find}\n");
    }
    report.finish()?;
    Ok(())
}
