//! Random histories, checked step by step against a model that knows no locks, no hash maps and no shortcuts: a list of calls,
//! summed anew each time.

use palyra_budget::{Account, BudgetScope, Charge, Ledger, Limits, MicroUsd, Reservation, Threshold};
use palyra_common::{RunId, SessionId, Timestamp};
use proptest::prelude::*;

use crate::support::{limits, noon};

const HARD: [(BudgetScope, u64); 6] = [
    (BudgetScope::Run, 300),
    (BudgetScope::Session, 450),
    (BudgetScope::Agent, 700),
    (BudgetScope::Day, 500),
    (BudgetScope::Month, 900),
    (BudgetScope::Global, 1_500),
];

#[derive(Debug, Clone)]
enum Step {
    Reserve { run: u8, hours: u16, worst: u64, granted: u64 },
    Settle { which: usize, percent: u64 },
    Release { which: usize },
    GiveUp { which: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0_u8..6, 0_u16..1_500, 0_u64..160, prop_oneof![3 => Just(0_u64), 1 => 1_u64..200])
            .prop_map(|(run, hours, worst, granted)| Step::Reserve { run, hours, worst, granted }),
        3 => (any::<usize>(), 0_u64..=100).prop_map(|(which, percent)| Step::Settle { which, percent }),
        1 => any::<usize>().prop_map(|which| Step::Release { which }),
        1 => any::<usize>().prop_map(|which| Step::GiveUp { which }),
    ];
    prop::collection::vec(step, 1..120)
}

/// A call in the model.
struct Call {
    charge: Charge,
    spent: u64,
    held: u64,
}

/// The day and month by the plain text of the instant.
fn date(at: Timestamp, letters: usize) -> String {
    at.to_rfc3339()[..letters].to_owned()
}

/// Whether two calls share the account of this scope.
fn together(scope: BudgetScope, left: &Charge, right: &Charge) -> bool {
    match scope {
        BudgetScope::Run => left.run_id == right.run_id,
        BudgetScope::Session => left.session_id == right.session_id,
        BudgetScope::Agent => left.agent == right.agent,
        BudgetScope::Day => date(left.at, 10) == date(right.at, 10),
        BudgetScope::Month => date(left.at, 7) == date(right.at, 7),
        BudgetScope::Global => true,
    }
}

fn charge_of(run: u8, hours: u16, worst: u64) -> Charge {
    Charge {
        run_id: RunId::from_u128(u128::from(run)),
        session_id: SessionId::from_u128(u128::from(run / 2)),
        agent: format!("agent-{}", run / 3),
        at: Timestamp(noon("2026-10-01").0 + i64::from(hours) * 3_600_000),
        worst: MicroUsd(worst),
    }
}

/// The first scope in which the model sees no room.
fn refused_by(calls: &[Call], charge: &Charge, granted: u64) -> Option<BudgetScope> {
    HARD.into_iter().map(|(scope, hard)| (scope, hard + granted)).find_map(|(scope, limit)| {
        let shared = calls.iter().filter(|call| together(scope, &call.charge, charge));
        let sum: u64 = shared.map(|call| call.spent + call.held).sum();
        (charge.worst.micros() > 0 && sum + charge.worst.micros() > limit).then_some(scope)
    })
}

fn all_hard() -> Limits {
    limits(&HARD.map(|(scope, micros)| (scope, Threshold::Hard, micros)))
}

proptest! {
    #[test]
    fn the_ledger_grants_and_books_exactly_what_the_model_does(steps in steps()) {
        let (ledger, limits) = (Ledger::new(), all_hard());
        let mut calls: Vec<Call> = Vec::new();
        let mut open: Vec<(usize, Reservation)> = Vec::new();
        let mut most_granted = 0;
        for step in steps {
            match step {
                Step::Reserve { run, hours, worst, granted } => {
                    let charge = charge_of(run, hours, worst);
                    let expected = refused_by(&calls, &charge, granted);
                    let given = (granted > 0).then_some(MicroUsd(granted));
                    match ledger.reserve(&charge, &limits, given) {
                        Ok(reservation) => {
                            prop_assert_eq!(expected, None);
                            most_granted = most_granted.max(granted);
                            open.push((calls.len(), reservation));
                            calls.push(Call { charge, spent: 0, held: worst });
                        }
                        Err(exceeded) => prop_assert_eq!(expected, Some(exceeded.scope)),
                    }
                }
                Step::Settle { which, percent } if !open.is_empty() => {
                    let (at, reservation) = open.swap_remove(which % open.len());
                    let actual = calls[at].held * percent / 100;
                    prop_assert!(reservation.settle(MicroUsd(actual)).breaches.is_empty());
                    (calls[at].spent, calls[at].held) = (actual, 0);
                }
                Step::Release { which } if !open.is_empty() => {
                    let (at, reservation) = open.swap_remove(which % open.len());
                    reservation.release();
                    calls[at].held = 0;
                }
                Step::GiveUp { which } if !open.is_empty() => {
                    let (at, reservation) = open.swap_remove(which % open.len());
                    drop(reservation);
                    (calls[at].spent, calls[at].held) = (calls[at].held, 0);
                }
                Step::Settle { .. } | Step::Release { .. } | Step::GiveUp { .. } => {}
            }
            let standing = ledger.standing(&Account::Global);
            prop_assert_eq!(standing.spent.micros(), calls.iter().map(|call| call.spent).sum::<u64>());
            prop_assert_eq!(standing.reserved.micros(), calls.iter().map(|call| call.held).sum::<u64>());
            prop_assert!(standing.spent.micros() + standing.reserved.micros() <= 1_500 + most_granted);
        }
        for call in &calls {
            for (account, scope) in [
                (Account::Run(call.charge.run_id), BudgetScope::Run),
                (Account::Session(call.charge.session_id), BudgetScope::Session),
                (Account::Agent(call.charge.agent.clone()), BudgetScope::Agent),
            ] {
                let shared = calls.iter().filter(|other| together(scope, &other.charge, &call.charge));
                prop_assert_eq!(ledger.standing(&account).spent.micros(), shared.map(|other| other.spent).sum::<u64>());
            }
        }
    }
}
