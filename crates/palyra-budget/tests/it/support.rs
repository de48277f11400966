//! Charges and limits in few words.

use palyra_budget::{BudgetScope, Charge, Day, Limits, MicroUsd, Threshold};
use palyra_common::{RunId, SessionId, Timestamp};

/// Noon of a day.
pub(crate) fn noon(day: &str) -> Timestamp {
    Timestamp(day.parse::<Day>().unwrap().start().0 + 12 * 3_600_000)
}

/// A call of run and session `n` of agent `main` on 15 November 2026.
pub(crate) fn charge(n: u128, worst: u64) -> Charge {
    Charge {
        run_id: RunId::from_u128(n),
        session_id: SessionId::from_u128(n),
        agent: "main".to_owned(),
        at: noon("2026-11-15"),
        worst: MicroUsd(worst),
    }
}

/// A hard limit in micro-dollars.
pub(crate) fn hard(scope: BudgetScope, micros: u64) -> Limits {
    limits(&[(scope, Threshold::Hard, micros)])
}

/// Limits in micro-dollars.
pub(crate) fn limits(given: &[(BudgetScope, Threshold, u64)]) -> Limits {
    let texts: Vec<String> = given.iter().map(|(_, _, micros)| MicroUsd(*micros).to_string()).collect();
    Limits::from_settings(
        given.iter().zip(&texts).map(|((scope, threshold, _), text)| (*scope, *threshold, text.as_str())),
    )
    .unwrap()
}
