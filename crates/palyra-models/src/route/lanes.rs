//! The plan of one call: which targets are left, which of their keys, and which comes next.
//!
//! INVARIANT: a plan only ever shrinks. Each failure uses something up, so every call ends. Outages use up time instead of tries.

use std::time::Duration;

use palyra_common::Timestamp;

use super::breaker::Access;
use super::choose::Chain;
use super::gates::{Gates, Insist, Way, told};
use super::needs::Needs;
use super::policy::{Blame, Onward, RoutePolicy, course, needs_a_person};
use super::target::Target;
use crate::error::{ModelError, ModelErrorClass};

/// One target with its keys.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) target: Target,
    ways: Vec<KeyWay>,
    /// Tries that the provider was to blame for.
    tries: u32,
    /// Most of them, by the classes seen so far.
    limit: u32,
    not_before: Option<Timestamp>,
    spent: bool,
    /// Whether the provider is away, by the newest failure; then its tries do not count.
    outage: Outage,
}

/// Whether a failure is waited out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outage {
    /// No: it uses up a try.
    No,
    /// Yes: the provider has answered before and is away.
    Yes,
}

#[derive(Debug)]
struct KeyWay {
    way: Way,
    tries: u32,
    spent: bool,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// This way, after a wait.
    Try { lane: usize, key: usize, after: Duration, insist: Insist },
    /// Nothing; and if nothing was tried at all, why not.
    Nobody(Option<ModelError>),
}

/// The plan of one call.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
}

impl Lanes {
    /// The targets of a chain that can do what is needed. Keys take turns by run, so that one run stays with one key: providers keep
    /// what they have read by account.
    pub(super) fn new(chain: Chain, needs: &Needs, turn: usize) -> Result<Self, ModelError> {
        let Chain { route, targets, .. } = chain;
        let able = |target: &Target| target.lacks(&needs.capabilities).is_empty();
        if !targets.iter().any(able) {
            return Err(unable(&route, &targets, needs));
        }
        let largest =
            targets.iter().filter(|target| able(target)).map(|target| target.context_tokens).max().unwrap_or(0);
        // If it fits nowhere, the largest is asked all the same: the estimate may be wrong, and its refusal leads to a shorter history.
        let wanted = needs.tokens.min(largest);
        let fits = |target: &Target| able(target) && target.context_tokens >= wanted;
        Ok(Self { lanes: targets.into_iter().filter(fits).map(|target| Lane::new(target, turn)).collect() })
    }

    pub(super) fn lane(&self, at: usize) -> Option<&Lane> {
        self.lanes.get(at)
    }

    /// Uses up what an error has used up.
    pub(super) fn failed(
        &mut self,
        lane: usize,
        key: usize,
        error: &ModelError,
        not_before: Timestamp,
        outage: Outage,
    ) {
        let course = course(error);
        let Some(failed) = self.lanes.get_mut(lane) else { return };
        failed.not_before = None;
        failed.outage = outage;
        match course.blame {
            Blame::Provider => {
                failed.tries = failed.tries.saturating_add(1);
                failed.limit = failed.limit.min(course.tries);
                failed.not_before = Some(not_before);
            }
            Blame::Credential => {
                if let Some(way) = failed.ways.get_mut(key) {
                    way.tries = way.tries.saturating_add(1);
                    way.spent |= way.tries >= course.tries;
                }
            }
            Blame::Model if error.class == ModelErrorClass::Permission => {
                if let Some(way) = failed.ways.get_mut(key) {
                    way.spent = true;
                }
            }
            Blame::Model | Blame::Request => failed.spent = true,
        }
        if course.onward == Onward::LargerWindow {
            let window = failed.target.context_tokens;
            for lane in &mut self.lanes {
                lane.spent |= lane.target.context_tokens <= window;
            }
        }
        if course.onward == Onward::Nobody {
            self.lanes.iter_mut().for_each(|lane| lane.spent = true);
        }
    }

    /// Asks this target no more.
    pub(super) fn give_up(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.spent = true;
        }
    }

    /// What comes next. `last` is the lane that failed just now; `waited` is what this call has spent waiting so far.
    pub(super) fn next(
        &self,
        last: Option<usize>,
        gates: &Gates,
        now: Timestamp,
        policy: &RoutePolicy,
        waited: Duration,
    ) -> Next {
        let ready: Vec<Ready> = self.ready(gates, now, policy);
        let at_once = |ready: &&Ready| ready.at <= now && ready.fresh;
        let left = policy.patience.saturating_sub(waited).min(policy.longest_wait);
        let left_in_outage =
            policy.outage_patience.max(policy.patience).saturating_sub(waited).min(policy.longest_wait);
        let soon = |ready: &&Ready| {
            let left = if ready.outage == Outage::Yes { left_in_outage } else { left };
            ready.at.since(now) <= left
        };
        // The model that is wanted most is worth a short wait; after that whoever is ready goes first.
        let short = policy.short_wait.min(left);
        let same = ready.iter().filter(|ready| Some(ready.lane) == last && ready.fresh && ready.at.since(now) <= short);
        let chosen = same.min_by_key(|ready| ready.at).or_else(|| ready.iter().find(at_once));
        let chosen = chosen.or_else(|| ready.iter().filter(soon).min_by_key(|ready| ready.at));
        if let Some(Ready { lane, key, at, .. }) = chosen {
            return Next::Try { lane: *lane, key: *key, after: at.since(now), insist: Insist::No };
        }
        let mendable = ready.iter().find(|ready| ready.class.is_some_and(needs_a_person));
        if let Some(Ready { lane, key, .. }) = mendable {
            return Next::Try { lane: *lane, key: *key, after: Duration::ZERO, insist: Insist::Yes };
        }
        Next::Nobody(ready.iter().min_by_key(|ready| ready.at).map(|ready| self.all_rest(ready, gates, now)))
    }

    /// All ways that are left, in order.
    fn ready(&self, gates: &Gates, now: Timestamp, policy: &RoutePolicy) -> Vec<Ready> {
        let mut ready = Vec::new();
        for (at, lane) in self.lanes.iter().enumerate() {
            let used_up = lane.outage == Outage::No && lane.tries >= policy.tries_per_target.min(lane.limit);
            if lane.spent || used_up {
                continue;
            }
            let has_answered = gates.has_answered(&lane.target.name.provider);
            for (key, candidate) in lane.ways.iter().enumerate() {
                if candidate.spent || candidate.tries >= policy.tries_per_target {
                    continue;
                }
                let (rested, class) = match gates.access(&candidate.way, now) {
                    Access::Free | Access::Probe => (now, None),
                    Access::Rests { until, class } => (until, Some(class)),
                };
                let opens = lane.not_before.map_or(rested, |not_before| rested.max(not_before));
                let fresh = lane.tries < policy.tries_before_another && candidate.tries < policy.tries_before_another;
                // Somebody else's call found out that it is away.
                let found_away = has_answered && class.is_some_and(is_of_provider);
                let outage = if found_away { Outage::Yes } else { lane.outage };
                ready.push(Ready { lane: at, key, at: opens, class, fresh, outage });
            }
        }
        ready
    }

    fn all_rest(&self, soonest: &Ready, gates: &Gates, now: Timestamp) -> ModelError {
        let class = soonest.class.unwrap_or(ModelErrorClass::Transient);
        let told = self.lanes.iter().filter_map(|lane| {
            let trouble = lane.ways.first().and_then(|key| gates.trouble(&key.way, now))?;
            let error = trouble.last?;
            let rest = told(error.class, trouble.until.unwrap_or(soonest.at), now);
            Some(format!("`{}` {rest} ({error})", lane.target.name))
        });
        let message = format!("no model can be asked now: {}", told.collect::<Vec<_>>().join("; "));
        ModelError::new(class, message).retry_after(soonest.at.since(now)).not_sent()
    }
}

/// A way that is left, and when it opens.
#[derive(Debug)]
struct Ready {
    lane: usize,
    key: usize,
    at: Timestamp,
    /// Why it rests, if it does.
    class: Option<ModelErrorClass>,
    /// Whether it may be tried even while somebody else is ready.
    fresh: bool,
    /// Whether it is worth the longer patience.
    outage: Outage,
}

/// Whether a rest for this reason is the provider's as a whole.
const fn is_of_provider(class: ModelErrorClass) -> bool {
    use ModelErrorClass as Class;
    matches!(class, Class::Transient | Class::Network | Class::Timeout | Class::Malformed)
}

impl Lane {
    fn new(target: Target, turn: usize) -> Self {
        let names: Vec<Option<String>> = if target.credentials.is_empty() {
            vec![None]
        } else {
            let first = turn % target.credentials.len();
            target.credentials.iter().cycle().skip(first).take(target.credentials.len()).cloned().map(Some).collect()
        };
        let way =
            |credential| Way { provider: target.name.provider.clone(), credential, model: target.name.model.clone() };
        let ways = names.into_iter().map(|name| KeyWay { way: way(name), tries: 0, spent: false }).collect();
        Self { target, ways, tries: 0, limit: u32::MAX, not_before: None, spent: false, outage: Outage::No }
    }

    pub(super) fn way(&self, key: usize) -> Option<&Way> {
        self.ways.get(key).map(|key| &key.way)
    }

    pub(super) fn tries(&self) -> u32 {
        self.tries
    }
}

fn unable(route: &str, targets: &[Target], needs: &Needs) -> ModelError {
    let each = targets.iter().map(|target| {
        let lacks: Vec<&str> = target.lacks(&needs.capabilities).into_iter().map(|one| one.as_str()).collect();
        format!("`{}` lacks {}", target.name, lacks.join(" and "))
    });
    let each = each.collect::<Vec<_>>().join(", ");
    let message =
        format!("no model of `{route}` can do this: {each}; add one that can, or say in models.toml what yours can do");
    ModelError::new(ModelErrorClass::Permanent, message)
}
