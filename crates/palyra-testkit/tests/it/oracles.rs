//! The oracles of the fuzz targets over their seeds and over input that is drawn, so that neither can rot between two runs of the fuzzer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use palyra_testkit::generators::crossed;
use palyra_testkit::oracles::{TARGETS, Target};
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};

fn fuzz(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(part)
}

fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let directory = fuzz("seeds").join(target.name);
    let listed = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut found: Vec<_> = listed.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty(), "{} has no seeds", target.name);
    found.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// An oracle without a fuzz target is never tried hard, and a target without an oracle tries nothing.
#[test]
fn every_oracle_has_a_fuzz_target_and_every_target_an_oracle() {
    let named = |part: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(fuzz(part)).unwrap();
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let oracles: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(named("fuzz_targets"), oracles);
    assert_eq!(named("seeds"), oracles);
    let manifest = std::fs::read_to_string(fuzz("Cargo.toml")).unwrap();
    for name in &oracles {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
        let source = std::fs::read_to_string(fuzz("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(source.contains(&format!("oracles::{name}(")), "{name} tries something else");
    }
}

#[test]
fn the_oracles_hold_over_all_seeds() {
    for target in TARGETS {
        for seed in seeds(target) {
            (target.check)(&seed);
        }
    }
}

#[test]
fn the_oracles_hold_over_what_is_drawn() {
    for target in TARGETS {
        let seeds = seeds(target);
        let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
        let drawn = (any::<Index>(), any::<Index>(), vec(any::<u8>(), 0..64), vec(any::<u8>(), 0..300));
        let tried = runner.run(&drawn, |(one, other, decisions, bytes)| {
            (target.check)(&bytes);
            let (one, other): (&Vec<u8>, &Vec<u8>) = (one.get(&seeds), other.get(&seeds));
            (target.check)(&crossed(one, other, &decisions));
            Ok(())
        });
        tried.unwrap_or_else(|error| panic!("{}: {error}", target.name));
    }
}
