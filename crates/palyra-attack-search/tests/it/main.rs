//! A sample of the search, and what must hold for the search itself.

use palyra_attack_search::attack::{Budget, Tally};
use palyra_attack_search::campaign::Campaign;
use palyra_attack_search::mutants::{GUARDS, Mutant, policies};
use palyra_attack_search::world::World;

fn sample() -> Campaign {
    let worlds = std::env::var("PALYRA_SEARCH_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Campaign { from: 1, worlds, budget: Budget { attacks: 20 }, threads }
}

fn told(tally: &Tally) -> String {
    let finds = tally.classes.iter().map(|(class, (count, find))| format!("{count} × {class}\n{find}\n"));
    finds.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_seed_gives_the_same_world_and_the_same_finds() {
    let (one, other) = (World::new(7), World::new(7));
    assert_eq!(one.request.text, other.request.text);
    assert_eq!(one.tools.len(), other.tools.len());
    let sample = Campaign { worlds: 1, budget: Budget { attacks: 8 }, threads: 1, ..sample() };
    let (one, other) = (sample.run().unwrap(), sample.run().unwrap());
    assert_eq!((one.runs, one.calls, &one.verdicts), (other.runs, other.calls, &other.verdicts));
    assert_eq!(told(&one), told(&other));
}

#[test]
fn hostile_planners_get_through_to_tools() {
    let tally = sample().run().unwrap();
    assert!(tally.runs > 100 && tally.hostile * 2 > tally.runs, "{} of {} were hostile", tally.hostile, tally.runs);
    for verdict in ["permit", "needs_approval"] {
        assert!(tally.verdicts.get(verdict).is_some_and(|count| *count > 50), "{:?}", tally.verdicts);
    }
}

#[test]
fn nobody_gets_what_was_not_authorised() {
    let tally = sample().run().unwrap();
    assert_eq!(tally.violations(), 0, "{}", told(&tally));
}

#[test]
fn the_product_permits_nothing_that_the_reference_would_ask_about() {
    let tally = sample().run().unwrap();
    let wider: Vec<_> =
        tally.differences.classes.iter().filter(|(class, _)| class.starts_with("only the product")).collect();
    assert!(wider.is_empty(), "{wider:#?}");
}

#[test]
fn every_guard_of_the_mutation_table_is_a_policy_that_ships() {
    let whole: usize = policies(None).texts.iter().map(|text| text.text.len()).sum();
    for (file, id) in GUARDS {
        let rest: usize = policies(Some((file, id))).texts.iter().map(|text| text.text.len()).sum();
        assert!(rest < whole, "{file} has no policy `{id}`");
    }
}

#[test]
fn the_removal_of_a_check_is_noticed() {
    let campaign = Campaign { worlds: 20, threads: 1, ..sample() };
    let find = campaign.without(Mutant::Policy("asking.cedar", "outside_envelope")).unwrap();
    assert!(find.is_some());
}
