//! How much may be spent. Plain data: who may spend is decided by [`crate::Ledger::reserve`].

use palyra_common::runtime_contract_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::BudgetError;
use crate::money::MicroUsd;
use crate::scope::BudgetScope;

runtime_contract_enum! {
    /// What happens at a limit.
    pub enum Threshold("budget_threshold") {
        /// A warning, once.
        Soft = "soft" | "warn",
        /// No further call.
        Hard = "hard" | "stop",
    }
}

/// The limits of one scope; without either it bounds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetLimit {
    /// What it bounds.
    pub scope: BudgetScope,
    /// Spending that is warned about when it is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<MicroUsd>,
    /// Spending that is never gone beyond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<MicroUsd>,
}

/// All limits that a call is under.
///
/// INVARIANT: at most one entry per scope, in the order of [`BudgetScope::ALL`], and no soft limit above its hard one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Limits(Vec<BudgetLimit>);

impl Limits {
    /// No limits at all: every call is granted and nothing is warned about.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// These limits.
    pub fn new(limits: impl IntoIterator<Item = BudgetLimit>) -> Result<Self, BudgetError> {
        let mut limits: Vec<BudgetLimit> = limits.into_iter().collect();
        limits.sort_by_key(|limit| limit.scope);
        for (limit, next) in limits.iter().zip(limits.iter().skip(1)) {
            if limit.scope == next.scope {
                return Err(BudgetError::LimitedTwice { scope: limit.scope });
            }
        }
        for limit in &limits {
            if let (Some(soft), Some(hard)) = (limit.soft, limit.hard)
                && soft > hard
            {
                return Err(BudgetError::SoftAboveHard { scope: limit.scope, soft, hard });
            }
        }
        Ok(Self(limits))
    }

    /// Limits as an operator writes them, such as `(Day, Hard, "$5")`. An empty text is no limit.
    pub fn from_settings<'a>(
        settings: impl IntoIterator<Item = (BudgetScope, Threshold, &'a str)>,
    ) -> Result<Self, BudgetError> {
        let mut limits: Vec<BudgetLimit> = Vec::new();
        for (scope, threshold, text) in settings {
            if text.trim().is_empty() {
                continue;
            }
            let amount = text.parse()?;
            let at = limits.iter().position(|limit| limit.scope == scope).unwrap_or(limits.len());
            if at == limits.len() {
                limits.push(BudgetLimit { scope, soft: None, hard: None });
            }
            let Some(limit) = limits.get_mut(at) else { continue };
            let place = match threshold {
                Threshold::Soft => &mut limit.soft,
                Threshold::Hard => &mut limit.hard,
            };
            if place.replace(amount).is_some() {
                return Err(BudgetError::LimitedTwice { scope });
            }
        }
        Self::new(limits)
    }

    /// These limits where `narrower` says nothing, `narrower`'s where it does: an agent's own limits over everybody's.
    #[must_use]
    pub fn overlaid(&self, narrower: &Self) -> Self {
        let kept = self.0.iter().filter(|limit| narrower.get(limit.scope).is_none());
        let mut limits: Vec<BudgetLimit> = kept.chain(&narrower.0).copied().collect();
        limits.sort_by_key(|limit| limit.scope);
        Self(limits)
    }

    /// The limits of this scope.
    #[must_use]
    pub fn get(&self, scope: BudgetScope) -> Option<&BudgetLimit> {
        self.0.iter().find(|limit| limit.scope == scope)
    }

    /// Where this scope warns.
    #[must_use]
    pub fn soft(&self, scope: BudgetScope) -> Option<MicroUsd> {
        self.get(scope).and_then(|limit| limit.soft)
    }

    /// Where this scope stops.
    #[must_use]
    pub fn hard(&self, scope: BudgetScope) -> Option<MicroUsd> {
        self.get(scope).and_then(|limit| limit.hard)
    }

    /// All limits, in the order of their scopes.
    pub fn iter(&self) -> impl Iterator<Item = &BudgetLimit> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use BudgetScope::{Day, Global, Run};
    use Threshold::{Hard, Soft};

    use super::*;

    #[test]
    fn settings_become_limits() {
        let limits =
            Limits::from_settings([(Global, Hard, "100"), (Day, Soft, "$4"), (Run, Hard, " "), (Day, Hard, "5 USD")])
                .unwrap();
        assert_eq!(limits.iter().map(|limit| limit.scope).collect::<Vec<_>>(), [Day, Global]);
        assert_eq!(limits.soft(Day), Some(MicroUsd::dollars(4)));
        assert_eq!(limits.hard(Day), Some(MicroUsd::dollars(5)));
        assert_eq!(limits.hard(Run), None);
    }

    #[test]
    fn limits_that_contradict_are_refused() {
        assert_eq!(
            Limits::from_settings([(Day, Hard, "1"), (Day, Hard, "2")]),
            Err(BudgetError::LimitedTwice { scope: Day })
        );
        let above = Limits::from_settings([(Day, Hard, "1"), (Day, Soft, "2")]);
        assert!(matches!(above, Err(BudgetError::SoftAboveHard { .. })), "{above:?}");
        assert!(matches!(Limits::from_settings([(Day, Hard, "one")]), Err(BudgetError::InvalidAmount { .. })));
        let twice = BudgetLimit { scope: Run, soft: None, hard: None };
        assert_eq!(Limits::new([twice, twice]), Err(BudgetError::LimitedTwice { scope: Run }));
    }

    #[test]
    fn narrower_limits_stand_instead_of_wider_ones() {
        let everybody = Limits::from_settings([(Run, Hard, "1"), (Day, Hard, "5")]).unwrap();
        let agent = Limits::from_settings([(Run, Hard, "3"), (Global, Soft, "9")]).unwrap();
        let both = everybody.overlaid(&agent);
        assert_eq!(both, Limits::from_settings([(Run, Hard, "3"), (Day, Hard, "5"), (Global, Soft, "9")]).unwrap());
    }
}
