use palyra_budget::UsageSums;
use palyra_common::{AuxiliaryTaskId, AuxiliaryTaskKind, AuxiliaryTaskState, Digest, Label};
use palyra_journal::Projection as _;
use serde::Serialize;

use super::*;
use crate::engine::auxiliary::{TaskPending, kind};
use crate::engine::spending::RESERVED;
use crate::projections::usage::{UsageTables, open_reservations, quarantined, spent, usage_rows};

/// The tables, fed with records as a journal would feed them.
struct Tables {
    connection: Connection,
    seq: u64,
}

impl Tables {
    fn new() -> Self {
        let connection = Connection::open_in_memory().unwrap();
        UsageTables.create(&connection).unwrap();
        Self { connection, seq: 0 }
    }

    fn apply(&mut self, kind: &'static str, payload: &impl Serialize) {
        self.apply_bytes(kind, serde_json::to_vec(payload).unwrap());
    }

    fn apply_bytes(&mut self, kind: &'static str, payload: Vec<u8>) {
        self.seq += 1;
        let record = StoredRecord {
            seq: self.seq,
            kind: kind.into(),
            at: Timestamp(1_700_000_000_000),
            session_id: Some(session()),
            run_id: None,
            run_seq: None,
            payload,
            hash: Digest::of(b""),
            prev_hash: Digest::of(b""),
        };
        UsageTables.apply(&self.connection, &record).unwrap();
    }

    fn total(&self) -> UsageSums {
        usage_rows(&self.connection, None).unwrap().iter().fold(UsageSums::default(), |sum, row| sum.plus(row.sums))
    }

    fn spent(&self) -> MicroUsd {
        let rows = spent(&self.connection).unwrap();
        rows.iter().find(|row| row.account == Account::Global).map(|row| row.spent).unwrap_or_default()
    }
}

fn session() -> SessionId {
    SessionId::from_u128(1)
}

fn task(number: u128) -> AuxiliaryTaskId {
    AuxiliaryTaskId::from_u128(number)
}

fn pending(number: u128) -> TaskPending {
    TaskPending {
        task_id: task(number),
        session_id: session(),
        run_id: None,
        owner: "me".into(),
        agent: "main".into(),
        kind: AuxiliaryTaskKind::Summary,
        label: Label::system(),
        budget_tokens: 100,
        provider: "work".into(),
        model: "work/large".into(),
        input: Digest::of(b""),
    }
}

fn ended(number: u128, usage: Usage, cost: Cost) -> TaskEnded {
    TaskEnded {
        task_id: task(number),
        run_id: None,
        agent: "main".into(),
        state: AuxiliaryTaskState::Succeeded,
        digest: None,
        output: None,
        error: None,
        bill: TaskBill { calls: 1, answering: None, usage, cost },
    }
}

fn reserved(number: u128, worst: u64) -> Reserved {
    let run_id = payer_run(None, task(number));
    Reserved {
        reservation: format!("{run_id}/auxiliary.{}.1.1", task(number)),
        charge: Charge {
            run_id,
            session_id: session(),
            agent: "main".into(),
            at: Timestamp(1_700_000_000_000),
            worst: MicroUsd(worst),
        },
        asked: None,
    }
}

fn cost(micro_usd: u64) -> Cost {
    Cost { micro_usd: MicroUsd(micro_usd), ..Cost::default() }
}

#[test]
fn absurd_bills_of_an_older_journal_are_set_aside_and_stall_nothing() {
    let mut tables = Tables::new();
    for number in 1..=5 {
        tables.apply(kind::PENDING, &pending(number));
    }
    tables.apply(kind::SUCCEEDED, &ended(1, Usage::plain(u64::MAX, u64::MAX), cost(u64::MAX)));
    tables.apply(kind::SUCCEEDED, &ended(2, Usage::plain(1_000_000_000_000_000_000, 1), cost(7)));
    assert_eq!(tables.total(), UsageSums::default(), "nothing is known of them");
    // What was reserved for a call is known whatever its bill says.
    let held = reserved(3, 500);
    tables.apply(RESERVED, &held);
    let absurd = Cost { closes: vec![held.reservation], ..cost(u64::MAX) };
    tables.apply(kind::SUCCEEDED, &ended(3, Usage::plain(1, 1), absurd));
    tables.apply(kind::SUCCEEDED, &ended(4, Usage::plain(10, 2), cost(30)));
    tables.apply_bytes(kind::SUCCEEDED, b"{\"no\":\"bill\"}".to_vec());
    tables.apply(kind::SUCCEEDED, &ended(5, Usage::plain(10, 2), cost(30)));
    assert_eq!((tables.total().calls, tables.total().micro_usd, tables.spent()), (3, MicroUsd(560), MicroUsd(560)));
    let found = quarantined(&tables.connection).unwrap().unwrap();
    assert_eq!((found.records, found.first_seq), (4, 6));
    assert!(found.reason.contains("no call can have had"), "{}", found.reason);
}

#[test]
fn sums_end_at_the_largest_number_instead_of_overflowing() {
    let mut tables = Tables::new();
    tables.apply(kind::PENDING, &pending(1));
    tables.connection.execute("INSERT INTO spent VALUES ('global:', 9223372036854775800)", []).unwrap();
    for _ in 0..3 {
        tables.apply(kind::SUCCEEDED, &ended(1, Usage::plain(10, 2), cost(30)));
    }
    assert_eq!(tables.spent(), MicroUsd(i64::MAX.unsigned_abs()));
    assert_eq!(tables.total().micro_usd, MicroUsd(90));
    assert_eq!(quarantined(&tables.connection).unwrap(), None);
}

#[test]
fn a_call_that_was_given_up_is_booked_in_full_in_the_one_row_of_its_model() {
    let mut tables = Tables::new();
    tables.apply(kind::PENDING, &pending(1));
    tables.apply(RESERVED, &reserved(1, 500));
    assert_eq!(open_reservations(&tables.connection).unwrap().len(), 1);
    let answering = Some(Answering { provider: "work".into(), model: "large".into(), credential: None });
    let mut end = ended(1, Usage::plain(10, 2), cost(30));
    end.bill.answering = answering;
    tables.apply(kind::CANCELLED, &end);
    assert_eq!(open_reservations(&tables.connection).unwrap(), []);
    let rows = usage_rows(&tables.connection, None).unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((rows[0].provider.as_str(), rows[0].model.as_str()), ("work", "large"));
    assert_eq!(
        (rows[0].sums.calls, rows[0].sums.micro_usd, rows[0].sums.assumed_micro_usd),
        (2, MicroUsd(530), MicroUsd(500))
    );
    assert_eq!(tables.spent(), MicroUsd(530));
}
