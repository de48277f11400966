//! The search by hand: `palyra-attack-search [--worlds N] [--from SEED] [--attacks N] [--threads N] [--without CHECK|each]`.

use std::time::Instant;

use palyra_attack_search::attack::Budget;
use palyra_attack_search::campaign::Campaign;
use palyra_attack_search::mutants::Mutant;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let number = |name: &str, default: u64| option(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let campaign = Campaign {
        from: number("--from", 1),
        worlds: number("--worlds", 20),
        budget: Budget { attacks: u32::try_from(number("--attacks", 40))? },
        threads: usize::try_from(number("--threads", 1))?,
    };
    let began = Instant::now();
    if let Some(name) = option("--without") {
        for mutant in Mutant::all().into_iter().filter(|mutant| name == "each" || mutant.name() == name) {
            match campaign.without(mutant)? {
                Some(find) => println!("noticed: {}\n{find}\n", mutant.name()),
                None => println!("NOT noticed: {}\n", mutant.name()),
            }
        }
        return Ok(());
    }
    let tally = campaign.run()?;
    let seconds = began.elapsed().as_secs_f64();
    for (class, (count, find)) in &tally.classes {
        println!("{count:6} × {class}\n{find}\n");
    }
    for (class, (count, example)) in &tally.differences.classes {
        println!("{count:6} of {} calls: {class}\n    {example}", tally.differences.compared);
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = tally.runs as f64 / seconds;
    println!(
        "{} runs, {} hostile, {} calls, {:?}, {} violations of {} classes, {rate:.0} runs/s",
        tally.runs,
        tally.hostile,
        tally.calls,
        tally.verdicts,
        tally.violations(),
        tally.classes.len()
    );
    Ok(())
}
