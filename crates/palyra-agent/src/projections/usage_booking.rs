//! Entering bills and abandoned reservations into the tables of usage and spending.
//!
//! A bill that no call can have run up (a server's invented numbers, recorded before they were checked at the wire) is set aside: its record is
//! listed in `usage_quarantine`, and only what was reserved for the call is booked.

use palyra_budget::{Account, Charge, Day, MicroUsd};
use palyra_common::{RunId, SessionId, Timestamp};
use palyra_journal::{ProjectionError, StoredRecord};
use palyra_models::{Answering, Usage};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::parse;
use crate::engine::auxiliary::{TaskBill, TaskEnded, payer_run};
use crate::engine::embeddings::EmbeddingsUsed;
use crate::engine::model_tests::ModelTested;
use crate::engine::spending::Reserved;
use crate::machine::{Cost, Input};
use crate::spec::MAIN_AGENT;
use crate::tape::TapeEntry;

/// Most tokens of one kind in one bill, which is of a few tries at one call. The largest windows hold ten million.
const MAX_BILL_TOKENS: u64 = 10_000_000_000;
/// Most that one bill can come to: a million dollars.
const MAX_BILL: MicroUsd = MicroUsd(1_000_000_000_000);

/// What one call came to.
struct Bill {
    run_id: RunId,
    session_id: SessionId,
    at: Timestamp,
    calls: u32,
    answering: Option<Answering>,
    usage: Usage,
    cost: Cost,
}

/// One entry into the tables.
struct Entry<'a> {
    /// Who gets it; the model of the run if nobody is known.
    by: Option<&'a Answering>,
    calls: u32,
    usage: Usage,
    micro_usd: MicroUsd,
    assumed: bool,
}

pub(super) fn bill_of_turn(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TapeEntry::Input(input) = parse(record)? else { return Ok(()) };
    let (answering, usage, cost) = match input {
        Input::ModelTurnFinished(turn) => (turn.answering, turn.usage, turn.cost),
        Input::ModelFailed(failure) => (failure.answering, failure.usage, failure.cost),
        Input::BudgetRefused { cost, .. } => (None, Usage::default(), cost),
        _ => return Ok(()),
    };
    let (Some(run_id), Some(session_id)) = (record.run_id, record.session_id) else { return Ok(()) };
    book(connection, record, Bill { run_id, session_id, at: record.at, calls: 1, answering, usage, cost })
}

pub(super) fn bill_of_task(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let TaskEnded { task_id, run_id, bill: told, .. } = parse(record)?;
    let Some(session_id) = record.session_id else { return Ok(()) };
    let TaskBill { calls, answering, usage, cost } = told;
    let run_id = payer_run(run_id, task_id);
    book(connection, record, Bill { run_id, session_id, at: record.at, calls, answering, usage, cost })?;
    book_abandoned(connection, &format!("{run_id}/auxiliary.{task_id}."))
}

/// Embeddings belong to no run; each call is one of its own to the books.
pub(super) fn bill_of_embeddings(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let used: EmbeddingsUsed = parse(record)?;
    connection
        .prepare_cached("INSERT OR IGNORE INTO usage_runs (run_id, agent, provider, model) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![used.run_id.to_string(), MAIN_AGENT, used.provider, used.model])?;
    let closes = used.closes.into_iter().collect();
    let cost = Cost { micro_usd: used.micro_usd, assumed: used.assumed, closes, ..Cost::default() };
    let (run_id, session_id, usage) = (used.run_id, used.session_id, Usage::plain(used.input_tokens, 0));
    book(connection, record, Bill { run_id, session_id, at: record.at, calls: 1, answering: None, usage, cost })
}

/// A test of a model belongs to no run either.
pub(super) fn bill_of_test(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let ModelTested { run_id, session_id, asked, usage, cost } = parse(record)?;
    connection
        .prepare_cached("INSERT OR IGNORE INTO usage_runs (run_id, agent, provider, model) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![run_id.to_string(), MAIN_AGENT, asked.provider, asked.model])?;
    book(connection, record, Bill { run_id, session_id, at: record.at, calls: 1, answering: Some(asked), usage, cost })
}

/// Notes money that is held for a call.
pub(super) fn reserve(connection: &Connection, record: &StoredRecord) -> Result<(), ProjectionError> {
    let Reserved { reservation, charge, asked } = parse(record)?;
    connection.prepare_cached("INSERT OR REPLACE INTO reservations VALUES (?1, ?2, ?3)")?.execute(params![
        reservation,
        super::json(&charge)?,
        asked.as_ref().map(super::json).transpose()?
    ])?;
    Ok(())
}

/// Sets a record aside that cannot be booked.
pub(super) fn quarantine(connection: &Connection, record: &StoredRecord, reason: &str) -> Result<(), ProjectionError> {
    let seq = whole(record.seq);
    connection
        .prepare_cached("INSERT OR REPLACE INTO usage_quarantine VALUES (?1, ?2)")?
        .execute(params![seq, format!("`{}` {reason}", record.kind)])?;
    Ok(())
}

/// Enters a bill and closes the reservations that it settles.
fn book(connection: &Connection, record: &StoredRecord, mut bill: Bill) -> Result<(), ProjectionError> {
    let mut reserved = MicroUsd::ZERO;
    for name in &bill.cost.closes {
        if let Some(charge) = take_reservation(connection, name)? {
            reserved = reserved.saturating_add(charge.worst);
            // A call stays on the day on which it was reserved.
            bill.at = charge.at;
        }
    }
    if is_absurd(&bill) {
        let reason = format!("reports usage that no call can have had; {reserved} is booked for it");
        quarantine(connection, record, &reason)?;
        bill.usage = Usage::default();
        bill.cost = Cost { micro_usd: reserved, assumed: true, ..Cost::default() };
    }
    let Bill { run_id, session_id, at, calls, answering, usage, cost } = &bill;
    let known = connection
        .prepare_cached("SELECT agent, provider, model FROM usage_runs WHERE run_id = ?1")?
        .query_row([run_id.to_string()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((agent, provider, model)): Option<(String, String, String)> = known else { return Ok(()) };
    let own = by_parts(&provider, &model);
    let place = Place { day: Day::of(*at), session_id: *session_id, run_id: *run_id, agent: &agent };
    let (mut rest, mut micro_usd) = (*usage, cost.micro_usd);
    for lost in &cost.lost {
        rest = minus(rest, lost.usage);
        micro_usd = micro_usd.saturating_sub(lost.micro_usd);
        let entry = Entry {
            by: Some(&lost.asked),
            calls: 1,
            usage: lost.usage,
            micro_usd: lost.micro_usd,
            assumed: lost.assumed,
        };
        enter(connection, &place, &own, &entry)?;
    }
    let last = Entry { by: answering.as_ref(), calls: *calls, usage: rest, micro_usd, assumed: cost.assumed };
    enter(connection, &place, &own, &last)
}

/// Enters in full the calls whose reservations begin with this and were never settled: they were given up in the middle.
pub(super) fn book_abandoned(connection: &Connection, prefix: &str) -> Result<(), ProjectionError> {
    let mut query = connection.prepare_cached(
        "SELECT reservation, charge, asked FROM reservations WHERE reservation >= ?1 AND reservation < ?2 ORDER BY reservation",
    )?;
    // The character after the last one possible in a name ends the range.
    let end = format!("{prefix}~");
    let open = query
        .query_map([prefix, end.as_str()], |row| {
            Ok((row.get::<_, String>(0)?, super::from_json::<Charge>(row, 1)?, super::from_json::<Answering>(row, 2)?))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (name, charge, asked) in open {
        connection.prepare_cached("DELETE FROM reservations WHERE reservation = ?1")?.execute([&name])?;
        let Some(Charge { run_id, session_id, agent, at, worst }) = charge else { continue };
        let model = connection
            .prepare_cached("SELECT provider, model FROM usage_runs WHERE run_id = ?1")?
            .query_row([run_id.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (provider, model): (String, String) = model.unwrap_or_default();
        let place = Place { day: Day::of(at), session_id, run_id, agent: &agent };
        let entry = Entry { by: asked.as_ref(), calls: 1, usage: Usage::default(), micro_usd: worst, assumed: true };
        enter(connection, &place, &by_parts(&provider, &model), &entry)?;
    }
    Ok(())
}

/// Where an entry belongs.
struct Place<'a> {
    day: Day,
    session_id: SessionId,
    run_id: RunId,
    agent: &'a str,
}

fn enter(
    connection: &Connection,
    place: &Place<'_>,
    own: &Answering,
    entry: &Entry<'_>,
) -> Result<(), ProjectionError> {
    let Entry { by, calls, usage, micro_usd, assumed } = entry;
    if *usage == Usage::default() && micro_usd.is_zero() {
        return Ok(());
    }
    let Answering { provider, model, .. } = by.unwrap_or(own);
    let amount = whole(micro_usd.0);
    let sums = ["calls", "input", "output", "cached", "cache_write", "reasoning", "micro_usd", "assumed"]
        .map(|column| format!("{column} = {}", saturating_sum(column, &format!("excluded.{column}"))));
    connection
        .prepare_cached(&format!(
            "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT DO UPDATE SET {}",
            sums.join(", ")
        ))?
        .execute(params![
            place.day.to_string(),
            provider,
            model,
            place.session_id.to_string(),
            place.agent,
            calls,
            whole(usage.input_tokens),
            whole(usage.output_tokens),
            whole(usage.cached_tokens),
            whole(usage.cache_write_tokens),
            whole(usage.reasoning_tokens),
            amount,
            if *assumed { amount } else { 0 },
        ])?;
    // Only what costs something is entered, so models that cost nothing leave no trace here.
    if micro_usd.is_zero() {
        return Ok(());
    }
    let mut add = connection.prepare_cached(&format!(
        "INSERT INTO spent VALUES (?1, ?2) ON CONFLICT DO UPDATE SET micro_usd = {}",
        saturating_sum("micro_usd", "excluded.micro_usd")
    ))?;
    for account in [
        Account::Run(place.run_id),
        Account::Session(place.session_id),
        Account::Agent(place.agent.to_owned()),
        Account::Day(place.day),
        Account::Month(place.day.month()),
        Account::Global,
    ] {
        add.execute(params![account_key(&account), amount])?;
    }
    Ok(())
}

fn take_reservation(connection: &Connection, name: &str) -> Result<Option<Charge>, ProjectionError> {
    let charge: Option<Option<Charge>> = connection
        .prepare_cached("DELETE FROM reservations WHERE reservation = ?1 RETURNING charge")?
        .query_row([name], |row| super::from_json(row, 0))
        .optional()?;
    Ok(charge.flatten())
}

/// The model of a run as providers name it. Runs know a model of several providers as `provider/model`.
fn by_parts(provider: &str, model: &str) -> Answering {
    let bare = model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model);
    Answering { provider: provider.to_owned(), model: bare.to_owned(), credential: None }
}

fn is_absurd(bill: &Bill) -> bool {
    let Usage { input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens, cost_micro_usd: _ } =
        bill.usage;
    [input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens]
        .iter()
        .any(|count| *count > MAX_BILL_TOKENS)
        || bill.cost.micro_usd > MAX_BILL
}

/// What is left of the tokens of all tries without those of one.
const fn minus(all: Usage, one: Usage) -> Usage {
    Usage {
        input_tokens: all.input_tokens.saturating_sub(one.input_tokens),
        output_tokens: all.output_tokens.saturating_sub(one.output_tokens),
        cached_tokens: all.cached_tokens.saturating_sub(one.cached_tokens),
        cache_write_tokens: all.cache_write_tokens.saturating_sub(one.cache_write_tokens),
        reasoning_tokens: all.reasoning_tokens.saturating_sub(one.reasoning_tokens),
        cost_micro_usd: None,
    }
}

/// The SQL of a sum of two numbers that are not negative. SQLite turns a sum that is too large into a fraction, which no column takes.
pub(super) fn saturating_sum(column: &str, more: &str) -> String {
    format!("min({column}, 9223372036854775807 - {more}) + {more}")
}

/// The text an account is found by.
pub(super) fn account_key(account: &Account) -> String {
    match account {
        Account::Run(id) => format!("run:{id}"),
        Account::Session(id) => format!("session:{id}"),
        Account::Agent(agent) => format!("agent:{agent}"),
        Account::Day(day) => format!("day:{day}"),
        Account::Month(month) => format!("month:{month}"),
        Account::Global => "global:".to_owned(),
    }
}

/// SQLite has no unsigned numbers; nothing real comes near the end of the signed ones.
pub(super) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
#[path = "usage_booking_tests.rs"]
mod tests;
