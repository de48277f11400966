//! What models used and cost: by day, provider, model, session and agent; and what is still reserved.
//!
//! The bill of a turn is part of its record, on the tape or of an auxiliary task; [`super::usage_booking`] enters it. A reservation that no bill
//! closed counts in full: its call was sent, or may have been, by a process that did not live to hear of the end.
//!
//! No record stops this projection. Sums end at the largest number there is instead of overflowing, and a record that makes no sense is set
//! aside in `usage_quarantine`, which health reports.

use palyra_budget::{Account, Charge, MicroUsd, Month, SpendRow, TokenSums, UsageRow, UsageSums};
use palyra_common::RunId;
use palyra_journal::{Projection, ProjectionError, StoredRecord};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::usage_booking::{
    account_key, bill_of_embeddings, bill_of_task, bill_of_test, bill_of_turn, book_abandoned, quarantine, reserve,
    saturating_sum, unsigned, whole,
};
use super::{parse, typed};
use crate::engine::auxiliary::{TaskPending, kind as task, payer_run};
use crate::engine::embeddings::{self, USED};
use crate::engine::model_tests::{self, TESTED};
use crate::engine::spending::{RESERVED, Reserved};
use crate::machine::{Action, Input};
use crate::tape::{TapeEntry, kind};

pub(super) struct UsageTables;

impl Projection for UsageTables {
    fn name(&self) -> &'static str {
        "usage"
    }
    fn version(&self) -> u32 {
        4
    }
    fn tables(&self) -> &'static [&'static str] {
        &["usage", "usage_runs", "spent", "reservations", "usage_quarantine"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE usage (
                day TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL,
                calls INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, cached INTEGER NOT NULL,
                cache_write INTEGER NOT NULL, reasoning INTEGER NOT NULL, micro_usd INTEGER NOT NULL, assumed INTEGER NOT NULL,
                PRIMARY KEY (day, provider, model, session_id, agent)
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE usage_runs (
                run_id TEXT PRIMARY KEY NOT NULL, agent TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
                granted INTEGER NOT NULL DEFAULT 0
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX usage_granted ON usage_runs (run_id) WHERE granted > 0;
            CREATE TABLE spent (account TEXT PRIMARY KEY NOT NULL, micro_usd INTEGER NOT NULL) STRICT, WITHOUT ROWID;
            CREATE TABLE reservations (
                reservation TEXT PRIMARY KEY NOT NULL, charge TEXT NOT NULL, asked TEXT
            ) STRICT, WITHOUT ROWID;
            CREATE TABLE usage_quarantine (seq INTEGER PRIMARY KEY NOT NULL, reason TEXT NOT NULL) STRICT",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
        match enter(connection, record) {
            Err(ProjectionError::Refused(reason)) => quarantine(connection, record, &reason),
            entered => entered,
        }
    }
}

fn enter(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    match record.kind.as_ref() {
        kind::RUN_ACCEPTED => accept(connection, record),
        kind::MODEL_TURN_FINISHED | kind::MODEL_FAILED | kind::BUDGET_REFUSED => bill_of_turn(connection, record),
        task::PENDING => accept_task(connection, record),
        task::SUCCEEDED | task::FAILED | task::CANCELLED => bill_of_task(connection, record),
        USED => bill_of_embeddings(connection, record),
        TESTED => bill_of_test(connection, record),
        RESERVED => reserve(connection, record),
        kind::RUN_STATUS => match (parse(record)?, record.run_id) {
            (TapeEntry::Action(Action::Status(change)), Some(run)) if change.phase.is_terminal() => {
                book_abandoned(connection, &format!("{run}/t"))
            }
            _ => Ok(()),
        },
        kind::RUN_UNRECOVERABLE => match record.run_id {
            Some(run) => book_abandoned(connection, &format!("{run}/t")),
            None => Ok(()),
        },
        kind::RUN_RESUME => {
            if let (TapeEntry::Input(Input::Resume { model: Some(model), .. }), Some(run)) =
                (parse(record)?, record.run_id)
            {
                connection
                    .prepare_cached("UPDATE usage_runs SET provider = ?2, model = ?3 WHERE run_id = ?1")?
                    .execute(params![run.to_string(), model.provider, model.name])?;
            }
            Ok(())
        }
        kind::BUDGET_GRANT => {
            if let (TapeEntry::Action(Action::GrantBudget { micro_usd }), Some(run)) = (parse(record)?, record.run_id) {
                connection
                    .prepare_cached(&format!(
                        "UPDATE usage_runs SET granted = {} WHERE run_id = ?1",
                        saturating_sum("granted", "?2")
                    ))?
                    .execute(params![run.to_string(), whole(micro_usd.0)])?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn accept(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TapeEntry::Input(Input::Accepted(spec)) = parse(record)? else { return Ok(()) };
    connection
        .prepare_cached(
            "INSERT INTO usage_runs (run_id, agent, provider, model) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET agent = excluded.agent, provider = excluded.provider, model = excluded.model",
        )?
        .execute(params![spec.run_id.to_string(), spec.agent, spec.model.provider, spec.model.name])?;
    Ok(())
}

/// A task that belongs to no run is one of its own to the books; one that looks at an image comes before its run.
fn accept_task(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let task: TaskPending = parse(record)?;
    let run_id = payer_run(task.run_id, task.task_id);
    connection
        .prepare_cached("INSERT OR IGNORE INTO usage_runs (run_id, agent, provider, model) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![run_id.to_string(), task.agent, task.provider, task.model])?;
    Ok(())
}

/// The agent that carries a run out.
pub(crate) fn agent_of(connection: &Connection, run_id: RunId) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT agent FROM usage_runs WHERE run_id = ?1")?
        .query_row([run_id.to_string()], |row| row.get(0))
        .optional()
}

/// Everything that was used, of one owner's sessions or of all.
pub(crate) fn usage_rows(connection: &Connection, owner: Option<&str>) -> rusqlite::Result<Vec<UsageRow>> {
    let whose = if owner.is_some() {
        "WHERE session_id IN (SELECT session_id FROM sessions WHERE owner = ?1)"
    } else {
        "WHERE ?1 IS NULL"
    };
    connection
        .prepare_cached(&format!("SELECT * FROM usage {whose}"))?
        .query_map([owner], |row| {
            let count = |at| row.get(at).map(unsigned);
            Ok(UsageRow {
                day: typed(row, 0)?,
                provider: row.get(1)?,
                model: row.get(2)?,
                session_id: typed(row, 3)?,
                agent: row.get(4)?,
                sums: UsageSums {
                    calls: count(5)?,
                    tokens: TokenSums {
                        input: count(6)?,
                        output: count(7)?,
                        cached: count(8)?,
                        cache_write: count(9)?,
                        reasoning: count(10)?,
                    },
                    micro_usd: MicroUsd(count(11)?),
                    assumed_micro_usd: MicroUsd(count(12)?),
                },
            })
        })?
        .collect()
}

/// What the accounts that every call touches have spent, for the books of a new process. Runs and sessions are many and are looked up when one of them
/// is taken up again, see [`spent_by`].
pub(crate) fn spent(connection: &Connection) -> rusqlite::Result<Vec<SpendRow>> {
    let mut rows = Vec::new();
    let mut add = |prefix: &str, account: &dyn Fn(&str) -> Option<Account>| -> rusqlite::Result<()> {
        let mut statement =
            connection.prepare_cached("SELECT account, micro_usd FROM spent WHERE account >= ?1 AND account < ?2")?;
        // The character after `:` ends the range of keys that begin with the prefix.
        let range = params![format!("{prefix}:"), format!("{prefix};")];
        let found = statement.query_map(range, |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
        for pair in found {
            let (key, micro_usd) = pair?;
            let name = key.split_once(':').map_or("", |(_, name)| name);
            rows.extend(account(name).map(|account| SpendRow { account, spent: MicroUsd(unsigned(micro_usd)) }));
        }
        Ok(())
    };
    add("agent", &|agent| Some(Account::Agent(agent.to_owned())))?;
    add("day", &|day| day.parse().ok().map(Account::Day))?;
    add("month", &|month| month.parse::<Month>().ok().map(Account::Month))?;
    add("global", &|_| Some(Account::Global))?;
    Ok(rows)
}

/// What these accounts have spent.
pub(crate) fn spent_by(connection: &Connection, accounts: Vec<Account>) -> rusqlite::Result<Vec<SpendRow>> {
    let mut query = connection.prepare_cached("SELECT micro_usd FROM spent WHERE account = ?1")?;
    let look_up = |account: Account| {
        let micro_usd: Option<i64> = query.query_row([account_key(&account)], |row| row.get(0)).optional()?;
        Ok(SpendRow { account, spent: MicroUsd(unsigned(micro_usd.unwrap_or(0))) })
    };
    accounts.into_iter().map(look_up).collect()
}

/// Calls that were under way when the last process died.
pub(crate) fn open_reservations(connection: &Connection) -> rusqlite::Result<Vec<Charge>> {
    connection
        .prepare_cached("SELECT charge FROM reservations")?
        .query_map([], |row| super::from_json(row, 0))?
        .filter_map(|charge: rusqlite::Result<Option<Charge>>| charge.transpose())
        .collect()
}

/// A model call that belongs to no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallWithoutRun {
    Embeddings,
    ModelTest,
}

/// Calls without a run that were under way when the last process died.
pub(crate) fn open_calls_without_run(connection: &Connection) -> rusqlite::Result<Vec<(CallWithoutRun, Reserved)>> {
    let found = connection
        .prepare_cached("SELECT reservation, charge, asked FROM reservations")?
        .query_map([], |row| Ok((row.get::<_, String>(0)?, super::from_json(row, 1)?, super::from_json(row, 2)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let whole = found.into_iter().filter_map(|(reservation, charge, asked)| {
        let call = reservation.split_once('/')?.1;
        let kind = match call.split_once('.').map_or(call, |(name, _)| name) {
            embeddings::CALL => CallWithoutRun::Embeddings,
            model_tests::CALL => CallWithoutRun::ModelTest,
            _ => return None,
        };
        Some((kind, Reserved { reservation, charge: charge?, asked }))
    });
    Ok(whole.collect())
}

/// What people granted to runs on top of the budgets.
pub(crate) fn grants(connection: &Connection) -> rusqlite::Result<Vec<(RunId, MicroUsd)>> {
    connection
        .prepare_cached("SELECT run_id, granted FROM usage_runs WHERE granted > 0")?
        .query_map([], |row| Ok((typed(row, 0)?, MicroUsd(unsigned(row.get(1)?)))))?
        .collect()
}

/// How many records were set aside, and the first of them with the reason.
pub(crate) fn quarantined(connection: &Connection) -> rusqlite::Result<Option<QuarantinedUsage>> {
    let count: i64 = connection.query_row("SELECT count(*) FROM usage_quarantine", [], |row| row.get(0))?;
    connection
        .query_row("SELECT seq, reason FROM usage_quarantine ORDER BY seq LIMIT 1", [], |row| {
            Ok(QuarantinedUsage { records: unsigned(count), first_seq: unsigned(row.get(0)?), reason: row.get(1)? })
        })
        .optional()
}

/// Records about usage that could not be booked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedUsage {
    /// How many.
    pub records: u64,
    /// Where the first one stands in the journal.
    pub first_seq: u64,
    /// What is wrong with it.
    pub reason: String,
}
