//! Many worlds on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::anyhow;

use crate::adapter::Product;
use crate::attack::{Budget, Find, Search, Tally};
use crate::mutants::{Mutant, policies};

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Campaign {
    /// The seed of the first world.
    pub from: u64,
    /// How many worlds.
    pub worlds: u64,
    /// What is tried in each.
    pub budget: Budget,
    /// How many threads work at it.
    pub threads: usize,
}

impl Campaign {
    /// Searches for an attack that works without a check and not with it, and stops at the first one.
    ///
    /// # Errors
    /// When the product itself fails.
    pub fn without(self, mutant: Mutant) -> anyhow::Result<Option<Find>> {
        let (policy, check) = match mutant {
            Mutant::Check(check) => (None, Some(check)),
            Mutant::Policy(file, id) => (Some((file, id)), None),
        };
        let (mut product, mut whole) = (Product::start(policies(policy))?, Product::start(policies(None))?);
        palyra_flow::remove(check);
        let mut seeds = self.from..self.from + self.worlds;
        let found =
            seeds.find_map(|seed| Search::contrasted(&mut product, &mut whole, check, seed, self.budget).transpose());
        palyra_flow::remove(None);
        found.transpose()
    }

    /// Searches all worlds.
    ///
    /// # Errors
    /// When the product itself fails.
    pub fn run(self) -> anyhow::Result<Tally> {
        let next = AtomicU64::new(self.from);
        let all = Mutex::new(Tally::default());
        let work = || -> anyhow::Result<()> {
            let mut product = Product::start(policies(None))?;
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= self.from + self.worlds {
                    return Ok(());
                }
                let tally = Search::world(&mut product, seed, self.budget)?;
                let mut all = all.lock().map_err(|_| anyhow!("another thread failed"))?;
                all.join(tally);
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a thread failed"))?)
        })?;
        all.into_inner().map_err(|_| anyhow!("a thread failed"))
    }
}
