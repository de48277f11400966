//! The search: random attacks, and those that came furthest changed again and again.
//!
//! One search belongs to one world, one mode and one adversary, and depends on the world's seed alone; so a seed gives the same finds again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use palyra_common::{RunMode, ToolVerdict};
use palyra_flow::Check;

use super::workshop::Workshop;
use super::{Adversary, Attack, Expression, Step};
use crate::adapter::Product;
use crate::comparison::Differences;
use crate::oracle::{Violation, judge};
use crate::play::{Played, play};
use crate::random::Random;
use crate::world::World;

/// Attacks that are kept to be changed.
const POOL: usize = 12;
/// Most steps of an attack.
const MAX_STEPS: usize = 28;

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Attacks in each mode by each adversary.
    pub attacks: u32,
}

/// An attack that worked.
#[derive(Debug, Clone)]
pub struct Find {
    /// The seed of its world.
    pub seed: u64,
    /// The mode.
    pub mode: RunMode,
    /// Who.
    pub adversary: Adversary,
    /// What, as short as it could be made.
    pub attack: Attack,
    /// What came of it.
    pub violation: Violation,
    /// What the user had said.
    pub request: String,
}

/// What a search did.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Attacks that were played.
    pub runs: u64,
    /// Those in which the planner turned hostile.
    pub hostile: u64,
    /// Calls that were proposed.
    pub calls: u64,
    /// Verdicts by name.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Where the reference judges otherwise.
    pub differences: Differences,
    /// Violations by class, each with how often and its first find.
    pub classes: BTreeMap<String, (u64, Find)>,
}

impl Tally {
    /// Takes in another one.
    pub fn join(&mut self, other: Self) {
        self.runs += other.runs;
        self.hostile += other.hostile;
        self.calls += other.calls;
        for (verdict, count) in other.verdicts {
            *self.verdicts.entry(verdict).or_default() += count;
        }
        self.differences.join(other.differences);
        for (class, (count, find)) in other.classes {
            let known = self.classes.entry(class).or_insert((0, find.clone()));
            known.0 += count;
            if (find.attack.steps.len(), find.seed) < (known.1.attack.steps.len(), known.1.seed) {
                known.1 = find;
            }
        }
    }

    /// How many violations there were.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.classes.values().map(|(count, _)| count).sum()
    }
}

/// The whole product beside one that lacks a check: only what works in the latter alone counts.
pub struct Contrast<'a> {
    /// The product as it is.
    pub whole: &'a mut Product,
    /// The check that the other one lacks, if it lacks no policy.
    pub removed: Option<Check>,
}

impl Contrast<'_> {
    /// Whether an attack does the same with nothing removed.
    fn works_anyway(
        &mut self,
        world: &World,
        mode: RunMode,
        adversary: Adversary,
        attack: &Attack,
        class: &str,
    ) -> anyhow::Result<bool> {
        palyra_flow::remove(None);
        let played = play(self.whole, world, mode, adversary, attack);
        palyra_flow::remove(self.removed);
        let judged = judge(world, adversary, &played?);
        Ok(judged.violations.iter().any(|violation| violation.class == class))
    }
}

/// A search in one world.
pub struct Search<'a> {
    product: &'a mut Product,
    world: &'a World,
    mode: RunMode,
    adversary: Adversary,
    random: Random,
    pool: Vec<(u32, Attack)>,
    seen: BTreeSet<(String, ToolVerdict, Vec<String>)>,
    tally: Tally,
    contrast: Option<Contrast<'a>>,
}

impl<'a> Search<'a> {
    /// Searches a world in all modes with both adversaries.
    ///
    /// # Errors
    /// When the product itself fails.
    pub fn world(product: &mut Product, seed: u64, budget: Budget) -> anyhow::Result<Tally> {
        let world = std::sync::Arc::new(World::new(seed));
        product.enter(&world)?;
        let mut tally = Tally::default();
        for mode in [RunMode::Open, RunMode::Guarded, RunMode::Strict] {
            for adversary in [Adversary::Misled, Adversary::Subverted] {
                let search = Search::new(product, &world, mode, adversary, None);
                tally.join(search.run(budget)?);
            }
        }
        Ok(tally)
    }

    /// Searches a world for an attack that works on a product without a check and not on the whole one.
    ///
    /// # Errors
    /// When one of the products itself fails.
    pub fn contrasted(
        product: &mut Product,
        whole: &mut Product,
        removed: Option<Check>,
        seed: u64,
        budget: Budget,
    ) -> anyhow::Result<Option<Find>> {
        let world = std::sync::Arc::new(World::new(seed));
        product.enter(&world)?;
        whole.enter(&world)?;
        for mode in [RunMode::Open, RunMode::Guarded, RunMode::Strict] {
            for adversary in [Adversary::Misled, Adversary::Subverted] {
                let contrast = Contrast { whole, removed };
                let search = Search::new(product, &world, mode, adversary, Some(contrast));
                if let Some((_, (_, find))) = search.run(budget)?.classes.into_iter().next() {
                    return Ok(Some(find));
                }
            }
        }
        Ok(None)
    }

    fn new(
        product: &'a mut Product,
        world: &'a World,
        mode: RunMode,
        adversary: Adversary,
        contrast: Option<Contrast<'a>>,
    ) -> Self {
        let mut random = Random::new(world.seed);
        let random = random.fork(mode as u64 * 2 + adversary as u64);
        let (pool, seen, tally) = (Vec::new(), BTreeSet::new(), Tally::default());
        Self { product, world, mode, adversary, random, pool, seen, tally, contrast }
    }

    fn run(mut self, budget: Budget) -> anyhow::Result<Tally> {
        for _ in 0..budget.attacks {
            let attack = self.next();
            let played = play(self.product, self.world, self.mode, self.adversary, &attack)?;
            let judged = judge(self.world, self.adversary, &played);
            self.count(&played);
            let score = judged.score + 3 * self.news(&played);
            for violation in judged.violations {
                self.found(&attack, violation)?;
            }
            self.keep(score, attack);
            if self.contrast.is_some() && !self.tally.classes.is_empty() {
                break;
            }
            if !played.was_hostile {
                // Nothing that the attacker wrote was shown: every attack of this search would be the same honest run.
                break;
            }
        }
        Ok(self.tally)
    }

    fn count(&mut self, played: &Played) {
        self.tally.runs += 1;
        self.tally.hostile += u64::from(played.was_hostile);
        self.tally.calls += played.calls.len() as u64;
        self.tally.differences.compared += played.compared;
        for (difference, example) in &played.differences {
            let example: String =
                format!("seed {}, {}: {example}", self.world.seed, self.mode).chars().take(300).collect();
            self.tally.differences.add(difference.clone(), example);
        }
        for made in &played.calls {
            *self.tally.verdicts.entry(made.verdict.as_str()).or_default() += 1;
        }
    }

    /// How many decisions were of a kind that this search has not seen before.
    fn news(&mut self, played: &Played) -> u32 {
        let fresh = played
            .calls
            .iter()
            .filter(|made| made.step.is_some())
            .filter(|made| self.seen.insert((made.tool.clone(), made.verdict, made.policies.clone())));
        u32::try_from(fresh.count()).unwrap_or(u32::MAX)
    }

    fn keep(&mut self, score: u32, attack: Attack) {
        self.pool.push((score, attack));
        self.pool.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        self.pool.truncate(POOL);
    }

    fn next(&mut self) -> Attack {
        let mut random = self.random.fork(0);
        let mut workshop = Workshop { world: self.world, mode: self.mode, random: &mut random };
        if self.pool.len() < POOL / 2 || workshop.random.one_in(3) {
            return workshop.attack();
        }
        let (_, parent) = workshop.random.pick(&self.pool).clone();
        let (_, other) = workshop.random.pick(&self.pool).clone();
        let mut child = changed(parent, &other, &mut workshop);
        child.steps.truncate(MAX_STEPS);
        child
    }

    fn found(&mut self, attack: &Attack, violation: Violation) -> anyhow::Result<()> {
        let class = format!("{:?} {}: {}", self.adversary, self.mode, violation.class);
        if let Some((count, _)) = self.tally.classes.get_mut(&class) {
            *count += 1;
            return Ok(());
        }
        let (attack, violation) = match &mut self.contrast {
            // What is left out could be what tells the two apart.
            Some(contrast) => {
                if contrast.works_anyway(self.world, self.mode, self.adversary, attack, &violation.class)? {
                    return Ok(());
                }
                (attack.clone(), violation)
            }
            None => self.minimised(attack.clone(), violation)?,
        };
        let find = Find {
            seed: self.world.seed,
            mode: self.mode,
            adversary: self.adversary,
            attack,
            violation,
            request: self.world.request.text.clone(),
        };
        self.tally.classes.insert(class, (1, find));
        Ok(())
    }

    /// Leaves out steps as long as the same class is violated.
    fn minimised(&mut self, mut attack: Attack, mut violation: Violation) -> anyhow::Result<(Attack, Violation)> {
        let mut at = attack.steps.len();
        while at > 0 {
            at -= 1;
            let mut shorter = attack.clone();
            shorter.steps.remove(at);
            let played = play(self.product, self.world, self.mode, self.adversary, &shorter)?;
            let again = judge(self.world, self.adversary, &played);
            if let Some(same) = again.violations.into_iter().find(|other| other.class == violation.class) {
                (attack, violation) = (shorter, same);
            }
        }
        Ok((attack, violation))
    }
}

/// A small change to an attack.
fn changed(mut attack: Attack, other: &Attack, workshop: &mut Workshop<'_>) -> Attack {
    match workshop.random.below(6) {
        0 => workshop.extend(&mut attack),
        1 if !attack.steps.is_empty() => {
            let at = workshop.random.below(attack.steps.len());
            attack.steps.remove(at);
        }
        2 if !attack.steps.is_empty() => {
            let at = workshop.random.below(attack.steps.len());
            let step = attack.steps[at].clone();
            attack.steps.insert(at, step);
        }
        3 => {
            attack.steps.extend(other.steps.iter().cloned());
            attack.tricks.extend(&other.tricks);
        }
        _ => {
            // A value of one call takes the place of one in another.
            let values: Vec<Expression> = other.steps.iter().flat_map(values).collect();
            let calls: Vec<usize> = (0..attack.steps.len())
                .filter(
                    |at| matches!(attack.steps.get(*at), Some(Step::Call { arguments, .. }) if !arguments.is_empty()),
                )
                .collect();
            if let (Some(value), Some(at)) = (workshop.random.any(&values), workshop.random.any(&calls))
                && let Some(Step::Call { arguments, .. }) = attack.steps.get_mut(*at)
            {
                let which = workshop.random.below(arguments.len());
                if let Some((_, place)) = arguments.get_mut(which) {
                    *place = value.clone();
                }
            }
        }
    }
    attack
}

fn values(step: &Step) -> Vec<Expression> {
    match step {
        Step::Call { arguments, .. } => arguments.iter().map(|(_, value)| value.clone()).collect(),
        Step::State(_) | Step::Reveal { .. } | Step::Extract { .. } | Step::NextRun { .. } | Step::Agreed(_) => {
            Vec::new()
        }
    }
}

impl fmt::Display for Find {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "seed {}, {}, {:?}: {}", self.seed, self.mode, self.adversary, self.violation.class)?;
        writeln!(out, "  user: {}", self.request)?;
        writeln!(out, "  tricks: {}", self.attack.tricks.join(", "))?;
        for step in &self.attack.steps {
            writeln!(out, "  - {step}")?;
        }
        write!(out, "  ! {}", self.violation.what)
    }
}
