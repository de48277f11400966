//! One behaviour each.

use std::time::Duration;

use palyra_budget::{Account, BudgetScope, Day, Ledger, Limits, MicroUsd, Month, SpendRow, Standing, Threshold};
use palyra_common::{RunId, SessionId};

use crate::support::{charge, hard, limits, noon};

fn spent(ledger: &Ledger, account: &Account) -> u64 {
    ledger.standing(account).spent.micros()
}

#[test]
fn a_call_is_held_at_its_worst_and_booked_at_what_it_cost() {
    let ledger = Ledger::new();
    let reservation = ledger.reserve(&charge(1, 100), &Limits::none(), None).unwrap();
    let all = [
        Account::Run(RunId::from_u128(1)),
        Account::Session(SessionId::from_u128(1)),
        Account::Agent("main".to_owned()),
        Account::Day(Day::of(noon("2026-11-15"))),
        Account::Month(Month::of(noon("2026-11-15"))),
        Account::Global,
    ];
    for account in &all {
        assert_eq!(ledger.standing(account), Standing { spent: MicroUsd(0), reserved: MicroUsd(100) }, "{account}");
    }
    let settlement = reservation.settle(MicroUsd(30));
    assert_eq!((settlement.actual, settlement.above_worst), (MicroUsd(30), MicroUsd::ZERO));
    for account in &all {
        assert_eq!(ledger.standing(account), Standing { spent: MicroUsd(30), reserved: MicroUsd(0) }, "{account}");
    }
}

#[test]
fn every_scope_stops_at_its_own_limit() {
    for scope in BudgetScope::ALL {
        let ledger = Ledger::new();
        let limits = hard(*scope, 100);
        let _ = ledger.reserve(&charge(1, 100), &limits, None).unwrap().settle(MicroUsd(100));
        let exceeded = ledger.reserve(&charge(1, 1), &limits, None).unwrap_err();
        assert_eq!(exceeded.scope, *scope);
        assert_eq!((exceeded.limit, exceeded.spent, exceeded.needed), (MicroUsd(100), MicroUsd(100), MicroUsd(1)));
        assert_eq!(exceeded.renews_at.is_some(), matches!(scope, BudgetScope::Day | BudgetScope::Month));
        // Another run in another session is stopped by the shared scopes alone.
        let own = matches!(scope, BudgetScope::Run | BudgetScope::Session);
        assert_eq!(ledger.reserve(&charge(2, 1), &limits, None).is_ok(), own, "{scope}");
    }
}

#[test]
fn a_refused_call_leaves_no_trace() {
    let ledger = Ledger::new();
    let both = limits(&[(BudgetScope::Run, Threshold::Hard, 1_000), (BudgetScope::Global, Threshold::Hard, 50)]);
    assert!(ledger.reserve(&charge(1, 51), &both, None).is_err());
    assert_eq!(ledger.standing(&Account::Run(RunId::from_u128(1))), Standing::default());
    assert!(ledger.reserve(&charge(1, 50), &both, None).is_ok());
}

#[test]
fn days_and_months_begin_anew() {
    let ledger = Ledger::new();
    let both = limits(&[(BudgetScope::Day, Threshold::Hard, 100), (BudgetScope::Month, Threshold::Hard, 150)]);
    let on = |day: &str, worst| {
        let mut charge = charge(1, worst);
        charge.at = noon(day);
        charge
    };
    let _ = ledger.reserve(&on("2026-11-29", 100), &both, None).unwrap().settle(MicroUsd(100));
    assert_eq!(ledger.reserve(&on("2026-11-29", 1), &both, None).unwrap_err().scope, BudgetScope::Day);
    let _ = ledger.reserve(&on("2026-11-30", 50), &both, None).unwrap().settle(MicroUsd(50));
    let exceeded = ledger.reserve(&on("2026-11-30", 1), &both, None).unwrap_err();
    assert_eq!(exceeded.scope, BudgetScope::Month);
    assert_eq!(exceeded.renews_at.unwrap().to_rfc3339(), "2026-12-01T00:00:00.000Z");
    // Reserved before midnight, settled after it: it stays the old month's.
    let late = ledger.reserve(&on("2026-12-01", 100), &both, None).unwrap();
    let _ = ledger.reserve(&on("2026-12-02", 10), &both, None).unwrap().settle(MicroUsd(10));
    let _ = late.settle(MicroUsd(90));
    assert_eq!(spent(&ledger, &Account::Day("2026-12-01".parse().unwrap())), 90);
    assert_eq!(spent(&ledger, &Account::Day("2026-12-02".parse().unwrap())), 10);
    assert_eq!(spent(&ledger, &Account::Month("2026-12".parse().unwrap())), 100);
    // A clock that is set back finds the old day as it was left.
    assert!(ledger.reserve(&on("2026-11-29", 1), &both, None).is_err());
}

#[test]
fn a_call_given_up_counts_in_full_and_a_released_one_not_at_all() {
    let ledger = Ledger::new();
    drop(ledger.reserve(&charge(1, 70), &Limits::none(), None).unwrap());
    assert_eq!(ledger.standing(&Account::Global), Standing { spent: MicroUsd(70), reserved: MicroUsd(0) });
    ledger.reserve(&charge(1, 70), &Limits::none(), None).unwrap().release();
    assert_eq!(ledger.standing(&Account::Global), Standing { spent: MicroUsd(70), reserved: MicroUsd(0) });
}

#[test]
fn soft_limits_warn_once_and_again_when_they_were_raised() {
    let ledger = Ledger::new();
    let soft =
        |micros| limits(&[(BudgetScope::Day, Threshold::Soft, micros), (BudgetScope::Day, Threshold::Hard, 1_000)]);
    let spend =
        |micros, limits: &Limits| ledger.reserve(&charge(1, 500), limits, None).unwrap().settle(MicroUsd(micros));
    assert_eq!(spend(99, &soft(100)).warnings, []);
    let warned = spend(1, &soft(100)).warnings;
    assert_eq!(warned.len(), 1);
    assert_eq!(
        warned[0].to_string(),
        "spent $0.0001 on day 2026-11-15, over the soft limit of $0.0001; calls stop at $0.001"
    );
    assert_eq!(spend(100, &soft(100)).warnings, []);
    assert_eq!(spend(50, &soft(300)).warnings, []);
    assert_eq!(spend(50, &soft(300)).warnings.len(), 1);
    assert_eq!(spend(1, &soft(100)).warnings, [], "a limit lowered again was told before");

    // What the journal told before a restart is not told again.
    let restarted = Ledger::new();
    restarted.seed([SpendRow { account: warned[0].account.clone(), spent: MicroUsd(200) }]);
    restarted.warned(&warned[0]);
    assert_eq!(restarted.reserve(&charge(1, 1), &soft(100), None).unwrap().settle(MicroUsd(1)).warnings, []);
}

#[test]
fn a_call_given_up_is_warned_about_by_the_next_one() {
    let ledger = Ledger::new();
    let soft = limits(&[(BudgetScope::Global, Threshold::Soft, 100)]);
    drop(ledger.reserve(&charge(1, 150), &soft, None).unwrap());
    assert_eq!(ledger.reserve(&charge(1, 5), &soft, None).unwrap().settle(MicroUsd(0)).warnings.len(), 1);
}

#[test]
fn what_a_person_grants_raises_the_limit_for_that_run_alone() {
    let ledger = Ledger::new();
    let limits = hard(BudgetScope::Day, 100);
    let _ = ledger.reserve(&charge(1, 90), &limits, None).unwrap().settle(MicroUsd(90));
    let exceeded = ledger.reserve(&charge(1, 40), &limits, None).unwrap_err();
    assert_eq!(exceeded.shortfall(), MicroUsd(30));
    assert!(ledger.reserve(&charge(1, 40), &limits, Some(MicroUsd(29))).is_err());
    let _ = ledger.reserve(&charge(1, 40), &limits, Some(exceeded.shortfall())).unwrap().settle(MicroUsd(40));
    assert!(ledger.reserve(&charge(1, 1), &limits, Some(MicroUsd(30))).is_err(), "it is used up");
    assert!(ledger.reserve(&charge(2, 1), &limits, None).is_err(), "others gain nothing by it");
    assert!(ledger.reserve(&charge(2, 1), &limits, Some(MicroUsd(30))).is_err(), "grants do not add up");
}

#[test]
fn a_call_that_costs_more_than_its_worst_is_reported_and_stops_the_next() {
    let ledger = Ledger::new();
    let limits = hard(BudgetScope::Global, 100);
    let fine = ledger.reserve(&charge(1, 10), &limits, None).unwrap().settle(MicroUsd(20));
    assert_eq!((fine.above_worst, fine.breaches.len()), (MicroUsd(10), 0));
    let other = ledger.reserve(&charge(2, 40), &limits, None).unwrap();
    let breach = ledger.reserve(&charge(1, 10), &limits, None).unwrap().settle(MicroUsd(60));
    assert_eq!(breach.above_worst, MicroUsd(50));
    assert_eq!(breach.breaches.len(), 1);
    assert_eq!((breach.breaches[0].spent, breach.breaches[0].reserved), (MicroUsd(80), MicroUsd(40)));
    assert!(ledger.reserve(&charge(3, 1), &limits, None).is_err());
    other.release();
    assert!(ledger.reserve(&charge(3, 21), &limits, None).is_err());
    assert!(ledger.reserve(&charge(3, 20), &limits, None).is_ok());
}

#[test]
fn a_call_made_again_holds_more_or_what_it_held() {
    let ledger = Ledger::new();
    let limits = hard(BudgetScope::Day, 100);
    let mut reservation = ledger.reserve(&charge(1, 40), &limits, None).unwrap();
    reservation.hold_more(MicroUsd(40)).unwrap();
    assert_eq!(reservation.hold_more(MicroUsd(21)).unwrap_err().shortfall(), MicroUsd(1));
    assert_eq!(reservation.held(), MicroUsd(80));
    assert_eq!(ledger.standing(&Account::Global).reserved, MicroUsd(80));
    let settlement = reservation.settle(MicroUsd(70));
    assert_eq!((settlement.above_worst, ledger.standing(&Account::Global).reserved), (MicroUsd::ZERO, MicroUsd::ZERO));
}

#[test]
fn free_calls_go_on_when_the_money_is_gone() {
    let ledger = Ledger::new();
    let limits = hard(BudgetScope::Day, 0);
    assert!(ledger.reserve(&charge(1, 1), &limits, None).is_err());
    let settlement = ledger.reserve(&charge(1, 0), &limits, None).unwrap().settle(MicroUsd::ZERO);
    assert!(settlement.breaches.is_empty());
    // A call that was said to be free and is not is found out.
    let settlement = ledger.reserve(&charge(1, 0), &limits, None).unwrap().settle(MicroUsd(1));
    assert_eq!(settlement.breaches.len(), 1);
}

#[test]
fn the_past_counts() {
    let ledger = Ledger::new();
    let today = Account::Day(Day::of(noon("2026-11-15")));
    ledger.seed([
        SpendRow { account: today.clone(), spent: MicroUsd(60) },
        SpendRow { account: Account::Global, spent: MicroUsd(500) },
    ]);
    ledger.seed_open([charge(1, 30)]);
    assert_eq!(ledger.standing(&today), Standing { spent: MicroUsd(90), reserved: MicroUsd(0) });
    assert_eq!(spent(&ledger, &Account::Global), 530);
    let limits = hard(BudgetScope::Day, 100);
    assert!(ledger.reserve(&charge(2, 11), &limits, None).is_err());
    assert!(ledger.reserve(&charge(2, 10), &limits, None).is_ok());
}

#[test]
fn accounts_taken_up_again_are_remembered_once() {
    let ledger = Ledger::new();
    let run = Account::Run(RunId::from_u128(1));
    let row = |spent| SpendRow { account: run.clone(), spent: MicroUsd(spent) };
    ledger.seed_open([charge(1, 5)]);
    ledger.remember(&row(40));
    ledger.remember(&row(1_000));
    assert_eq!(spent(&ledger, &run), 45, "what was open is not part of what was remembered");
    let reservation = ledger.reserve(&charge(1, 10), &Limits::none(), None).unwrap();
    ledger.forget(&run);
    assert_eq!(ledger.standing(&run).reserved, MicroUsd(10), "a call is under way");
    let _ = reservation.settle(MicroUsd(10));
    ledger.forget(&run);
    assert_eq!(ledger.standing(&run), Standing::default());
    ledger.remember(&row(55));
    assert_eq!(spent(&ledger, &run), 55);
}

#[test]
fn amounts_too_large_to_add_fit_under_no_limit() {
    let ledger = Ledger::new();
    let limits = hard(BudgetScope::Global, u64::MAX);
    ledger.seed([SpendRow { account: Account::Global, spent: MicroUsd(10) }]);
    assert!(ledger.reserve(&charge(1, u64::MAX), &limits, Some(MicroUsd::MAX)).is_err());
    assert!(ledger.reserve(&charge(1, u64::MAX - 10), &limits, None).is_ok());
}

#[tokio::test(flavor = "current_thread")]
async fn those_who_wait_are_told_when_money_is_given_back() {
    let ledger = Ledger::new();
    let limits = hard(BudgetScope::Global, 100);
    let held = ledger.reserve(&charge(1, 80), &limits, None).unwrap();
    let mut changes = ledger.changes();
    let exceeded = ledger.reserve(&charge(2, 50), &limits, None).unwrap_err();
    assert!(exceeded.may_pass_when_others_settle());
    let settling = tokio::spawn(async move { held.settle(MicroUsd(20)) });
    tokio::time::timeout(Duration::from_secs(20), changes.changed()).await.unwrap().unwrap();
    assert!(ledger.reserve(&charge(2, 50), &limits, None).is_ok());
    assert_eq!(settling.await.unwrap().actual, MicroUsd(20));
}
