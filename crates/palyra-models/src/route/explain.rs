//! Why a call would go where it goes, for people.

use palyra_common::Timestamp;
use serde::Serialize;

use super::breaker::Access;
use super::choose::Chain;
use super::gates::{Gates, Way, told};
use super::needs::Needs;
use super::target::Target;

/// Which models would be asked, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Where the list stands, such as `routes.default`.
    pub route: String,
    /// Why this list, in one line.
    pub reason: String,
    /// The models in order.
    pub steps: Vec<Step>,
}

/// One model of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The model.
    pub target: Target,
    /// Whether it would be asked.
    pub standing: Standing,
    /// What speaks against it, or what is worth knowing, in one line; empty if nothing.
    pub remark: String,
    /// Its keys with what is known of each.
    pub keys: Vec<KeyStanding>,
}

/// Whether a model would be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It would, in its place.
    Ready,
    /// Not before its rest is over.
    Rests,
    /// It cannot do what is needed.
    Unable,
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyStanding {
    /// Its name.
    pub name: String,
    /// Whether it would be used now.
    pub standing: Standing,
    /// Why not, or what happened lately; empty if nothing.
    pub remark: String,
}

pub(super) fn explain(chain: Chain, needs: &Needs, gates: &Gates, now: Timestamp) -> Explanation {
    let Chain { route, reason, targets } = chain;
    let largest = targets.iter().map(|target| target.context_tokens).max().unwrap_or(0);
    let steps = targets.into_iter().map(|target| step(target, needs, largest, gates, now)).collect();
    Explanation { route, reason, steps }
}

fn step(target: Target, needs: &Needs, largest: u32, gates: &Gates, now: Timestamp) -> Step {
    let key = |name: Option<&String>| {
        let way =
            Way { provider: target.name.provider.clone(), credential: name.cloned(), model: target.name.model.clone() };
        let trouble = gates.trouble(&way, now).and_then(|trouble| trouble.last);
        let said = trouble.map(|error| error.to_string());
        let (standing, remark) = match gates.access(&way, now) {
            Access::Rests { until, class } => {
                let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
                (Standing::Rests, format!("{}{said}", told(class, until, now)))
            }
            Access::Probe => (Standing::Ready, format!("the next call tries it again: {}", said.unwrap_or_default())),
            Access::Free => (Standing::Ready, said.map(|said| format!("failed lately: {said}")).unwrap_or_default()),
        };
        KeyStanding { name: name.cloned().unwrap_or_default(), standing, remark }
    };
    let all: Vec<KeyStanding> = if target.credentials.is_empty() {
        vec![key(None)]
    } else {
        target.credentials.iter().map(|name| key(Some(name))).collect()
    };
    let lacks: Vec<&str> = target.lacks(&needs.capabilities).into_iter().map(|one| one.as_str()).collect();
    let ready = all.iter().find(|key| key.standing == Standing::Ready);
    let (standing, remark) = if !lacks.is_empty() {
        (Standing::Unable, format!("lacks {}", lacks.join(" and ")))
    } else if target.context_tokens < needs.tokens.min(largest) {
        (Standing::Unable, format!("its window of {} tokens is too small", target.context_tokens))
    } else if let Some(ready) = ready {
        (Standing::Ready, ready.remark.clone())
    } else {
        (Standing::Rests, all.first().map(|key| key.remark.clone()).unwrap_or_default())
    };
    let keys = if target.credentials.is_empty() { Vec::new() } else { all };
    Step { target, standing, remark, keys }
}
