//! Many calls at once against a budget for few: nothing is ever spent twice.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use palyra_budget::{Account, BudgetScope, Day, Ledger, MicroUsd};

use crate::support::{charge, hard, noon};

const ROUNDS: u64 = 100;
const RUNS: u64 = 200;
const BUDGET_FOR: u64 = 50;
const COST: u64 = 7_919;

/// How a call ends.
fn finish(reservation: palyra_budget::Reservation, way: u64) -> u64 {
    match way % 4 {
        0 => {
            drop(reservation); // Cancelled half-way: counts in full.
            COST
        }
        1 => {
            reservation.release();
            0
        }
        2 => reservation.settle(MicroUsd(COST / 3)).actual.micros(),
        _ => reservation.settle(MicroUsd(COST)).actual.micros(),
    }
}

#[test]
fn two_hundred_runs_against_a_budget_for_fifty_never_overrun_it() {
    for round in 0..ROUNDS {
        let ledger = Ledger::new();
        let limits = hard(BudgetScope::Day, BUDGET_FOR * COST);
        let (granted, spent) = (AtomicU64::new(0), AtomicU64::new(0));
        let start = Barrier::new(RUNS as usize);
        thread::scope(|scope| {
            for run in 0..RUNS {
                let (ledger, limits, start, granted, spent) = (ledger.clone(), &limits, &start, &granted, &spent);
                thread::Builder::new()
                    .stack_size(64 * 1024)
                    .spawn_scoped(scope, move || {
                        start.wait();
                        if let Ok(reservation) = ledger.reserve(&charge(u128::from(run), COST), limits, None) {
                            granted.fetch_add(1, Ordering::Relaxed);
                            spent.fetch_add(reservation.settle(MicroUsd(COST)).actual.micros(), Ordering::Relaxed);
                        }
                    })
                    .unwrap();
            }
        });
        assert_eq!(granted.into_inner(), BUDGET_FOR, "round {round}");
        assert_eq!(spent.into_inner(), BUDGET_FOR * COST, "round {round}");
        let standing = ledger.standing(&Account::Day(Day::of(noon("2026-11-15"))));
        assert_eq!((standing.spent, standing.reserved), (MicroUsd(BUDGET_FOR * COST), MicroUsd::ZERO));
    }
}

#[test]
fn however_calls_end_their_sum_stays_under_the_limit() {
    for round in 0..ROUNDS {
        let ledger = Ledger::new();
        let limits = hard(BudgetScope::Global, BUDGET_FOR * COST);
        let (spent, seen_over) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for worker in 0..8_u64 {
                let (ledger, limits, spent, seen_over) = (ledger.clone(), &limits, &spent, &seen_over);
                scope.spawn(move || {
                    for call in 0..RUNS / 8 {
                        let Ok(reservation) = ledger.reserve(&charge(u128::from(worker), COST), limits, None) else {
                            continue;
                        };
                        let standing = ledger.standing(&Account::Global);
                        if standing.spent.saturating_add(standing.reserved) > MicroUsd(BUDGET_FOR * COST) {
                            seen_over.fetch_add(1, Ordering::Relaxed);
                        }
                        spent.fetch_add(finish(reservation, worker + call + round), Ordering::Relaxed);
                    }
                });
            }
        });
        let standing = ledger.standing(&Account::Global);
        assert_eq!(seen_over.into_inner(), 0, "round {round}");
        assert_eq!(standing.reserved, MicroUsd::ZERO);
        assert_eq!(standing.spent, MicroUsd(spent.into_inner()), "nothing is lost or counted twice, round {round}");
        assert!(standing.spent <= MicroUsd(BUDGET_FOR * COST), "round {round}: {}", standing.spent);
    }
}

/// Four workers that want eighty calls at once between them, against a budget for fifty, so that nearly every call is decided at the very
/// edge. Checking and booking in two steps instead of one is found out here within moments.
#[test]
fn at_the_edge_no_call_too_many_is_granted() {
    const WORKERS: u64 = 4;
    const HELD: usize = 20;
    const CALLS: u64 = 20_000;
    let ledger = Ledger::new();
    let limits = hard(BudgetScope::Global, BUDGET_FOR * COST);
    let (most, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Barrier::new(WORKERS as usize);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (ledger, limits, start, most, refused) = (ledger.clone(), &limits, &start, &most, &refused);
            scope.spawn(move || {
                let mut held = VecDeque::new();
                start.wait();
                for _ in 0..CALLS {
                    let granted = ledger.reserve(&charge(u128::from(worker), COST), limits, None);
                    most.fetch_max(ledger.standing(&Account::Global).reserved.micros(), Ordering::Relaxed);
                    let room = granted.is_ok() && held.len() < HELD;
                    match granted {
                        Ok(reservation) => held.push_back(reservation),
                        Err(_) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    if !room && let Some(oldest) = held.pop_front() {
                        oldest.release();
                    }
                }
                held.into_iter().for_each(palyra_budget::Reservation::release);
            });
        }
    });
    assert!(most.into_inner() <= BUDGET_FOR * COST, "more was held at once than there is");
    assert!(refused.into_inner() > 0, "the edge was never reached, so nothing was shown");
    assert_eq!(ledger.standing(&Account::Global), palyra_budget::Standing::default());
}
