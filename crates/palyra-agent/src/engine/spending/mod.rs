//! What model calls cost, from the reservation before the call to the bill after it.
//!
//! Every call goes through a [`MeteredCall`]. Where it may cost something, the worst case is reserved first and the reservation is on the
//! journal before anything is sent, whether or not a budget limits it yet; so a process that dies in the middle of a call has not spent money that nobody counts. The bill itself is part of
//! the record of the turn, of the failure or of the auxiliary task, and closes the reservation.
//!
//! A call that does not fit while others are under way waits for them: they usually cost less than they reserved.

mod bill;
mod books;
mod metered;
mod plausible;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use palyra_budget::{Account, Charge, Exceeded, Ledger, Limits, MicroUsd, Reservation};
use palyra_common::{RunId, SessionId, Timestamp};
use palyra_journal::NewRecord;
use palyra_models::{Answering, ModelRequest, PriceTable, TokenCounter};
use serde::{Deserialize, Serialize};

pub(super) use self::bill::is_free;
pub(super) use self::metered::{Metered, MeteredCall};
pub(super) use self::plausible::{Assessment, Doubt, Own, StatedPrice, assess};
use super::EngineOptions;
use crate::error::AgentError;
use crate::projections::{self, QuarantinedUsage};
use crate::spec::RunSpec;

/// Kind of the record of a reservation.
pub(crate) const RESERVED: &str = "budget.reserved";
/// Models whose counters are kept.
const MOST_COUNTERS: usize = 32;

/// Prices, limits and the books.
#[derive(Debug, Default)]
pub struct Spending {
    prices: RwLock<Arc<PriceTable>>,
    limits: RwLock<Arc<Limits>>,
    ledger: Ledger,
    granted: Mutex<HashMap<RunId, MicroUsd>>,
    counters: Mutex<HashMap<String, Arc<TokenCounter>>>,
    /// Records that could not be booked, and how many records the journal had when that was looked up.
    quarantined: Mutex<(Option<QuarantinedUsage>, u64)>,
}

/// Money held for a call, as recorded before the call is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reserved {
    /// Names it; the bill refers to it.
    pub(crate) reservation: String,
    /// For whom, and how much.
    #[serde(flatten)]
    pub(crate) charge: Charge,
    /// Who is asked first, and pays the charge into its row if nobody lives to make the bill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Answering>,
}

/// Whom a call is made for.
#[derive(Debug, Clone)]
pub(super) struct Payer {
    pub(super) run_id: RunId,
    pub(super) session_id: SessionId,
    pub(super) agent: String,
    /// Names the call within its run.
    pub(super) call: String,
}

impl Payer {
    pub(super) fn of(spec: &RunSpec, call: String) -> Self {
        Self { run_id: spec.run_id, session_id: spec.session_id, agent: spec.agent.clone(), call }
    }
}

impl Spending {
    /// These prices and limits, with empty books.
    #[must_use]
    pub fn new(prices: PriceTable, limits: Limits) -> Self {
        Self { prices: RwLock::new(Arc::new(prices)), limits: RwLock::new(Arc::new(limits)), ..Self::default() }
    }

    /// The prices in force.
    pub(super) fn prices(&self) -> Arc<PriceTable> {
        // One assignment replaces them, so a panic elsewhere does not spoil them.
        Arc::clone(&self.prices.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Other prices from now on: for reservations, and for bills that are not made yet.
    pub fn replace_prices(&self, prices: PriceTable) {
        *self.prices.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(prices);
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.limits.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Other limits from now on: for reservations that are not made yet.
    pub fn replace_limits(&self, limits: Limits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(limits);
    }

    /// Records of the journal that could not be booked, if there are any.
    #[must_use]
    pub fn quarantined(&self) -> Option<QuarantinedUsage> {
        self.quarantined.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn set_quarantined(&self, found: Option<QuarantinedUsage>, head: u64) {
        *self.quarantined.lock().unwrap_or_else(PoisonError::into_inner) = (found, head);
    }

    /// Whether nothing was recorded since quarantined records were looked up.
    fn quarantine_checked_at(&self, head: u64) -> bool {
        self.quarantined.lock().unwrap_or_else(PoisonError::into_inner).1 == head
    }

    /// The books.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The counter of a model's tokens; it remembers what it has counted.
    pub(in crate::engine) fn counter(&self, model: &str) -> Arc<TokenCounter> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = counters.get(model) {
            return Arc::clone(counter);
        }
        // A daemon has a handful of models; names that come from clients must not make it more.
        if counters.len() >= MOST_COUNTERS {
            counters.clear();
        }
        let counter = Arc::new(TokenCounter::new(model));
        counters.insert(model.to_owned(), Arc::clone(&counter));
        counter
    }

    /// What is granted to a run on top of the budgets.
    pub(super) fn granted(&self, run_id: RunId) -> Option<MicroUsd> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).get(&run_id).copied()
    }

    /// Grants a run so much more.
    pub(super) fn grant(&self, run_id: RunId, amount: MicroUsd) {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = granted.entry(run_id).or_default();
        *sum = sum.saturating_add(amount);
    }
}

/// Money held for one call, and what is needed to make the bill.
#[derive(Debug)]
struct Meter {
    reservation: Option<(String, Reservation)>,
    /// Tokens of the request, where they had to be counted beforehand.
    input_tokens: Option<u64>,
}

/// Why a call was not made.
pub(super) enum NotMade {
    /// It could cost more than a budget leaves.
    Exceeded(Box<Exceeded>),
    /// The reservation could not be recorded.
    NotRecorded(AgentError),
}

/// Enters into the books what a run and its session spent before this process began. Before their first reservation, so nothing is counted twice.
async fn remember(options: &EngineOptions, payer: &Payer) -> Result<(), AgentError> {
    let ledger = &options.spending.ledger;
    let mut accounts = vec![Account::Run(payer.run_id), Account::Session(payer.session_id)];
    accounts.retain(|account| !ledger.remembers(account));
    if accounts.is_empty() {
        return Ok(());
    }
    let rows = options.journal.read(move |reader| Ok(projections::spent_by(reader.connection(), accounts)?)).await?;
    for row in &rows {
        ledger.remember(row);
    }
    Ok(())
}

/// Reserves what a call may cost at worst; waits while calls under way hold what it needs.
async fn reserve(options: &EngineOptions, payer: &Payer, request: &ModelRequest) -> Result<Meter, NotMade> {
    if is_free(options, request) {
        return Ok(Meter { reservation: None, input_tokens: None });
    }
    let counted = bill::input_tokens(options, request);
    let worst = bill::worst(options, request, counted);
    let asked = options.provider.may_answer(request).into_iter().next();
    let reservation = hold(options, payer, worst, asked).await?;
    Ok(Meter { reservation, input_tokens: Some(counted) })
}

/// Reserves an amount for a call and records that before anything is sent; gives the reservation with its name, or none if there is nothing to reserve.
pub(super) async fn hold(
    options: &EngineOptions,
    payer: &Payer,
    worst: MicroUsd,
    asked: Option<Answering>,
) -> Result<Option<(String, Reservation)>, NotMade> {
    let spending = &options.spending;
    remember(options, payer).await.map_err(NotMade::NotRecorded)?;
    let charge = |at: Timestamp| Charge {
        run_id: payer.run_id,
        session_id: payer.session_id,
        agent: payer.agent.clone(),
        at,
        worst,
    };
    // Subscribed before asking, so that money given back in between is not missed.
    let mut changes = spending.ledger.changes();
    let (charge, reservation) = loop {
        let charge = charge(options.clock.now());
        match spending.ledger.reserve(&charge, &spending.limits(), spending.granted(payer.run_id)) {
            Ok(reservation) => break (charge, reservation),
            Err(exceeded) if exceeded.may_pass_when_others_settle() => {
                if changes.changed().await.is_err() {
                    return Err(NotMade::Exceeded(Box::new(exceeded)));
                }
            }
            Err(exceeded) => return Err(NotMade::Exceeded(Box::new(exceeded))),
        }
    };
    if worst.is_zero() {
        return Ok(None);
    }
    let name = format!("{}/{}", payer.run_id, payer.call);
    let reserved = Reserved { reservation: name.clone(), charge, asked };
    match record(options, &reserved).await {
        Ok(()) => Ok(Some((name, reservation))),
        Err(error) => {
            reservation.release();
            Err(NotMade::NotRecorded(error))
        }
    }
}

async fn record(options: &EngineOptions, reserved: &Reserved) -> Result<(), AgentError> {
    let payload = serde_json::to_vec(reserved).map_err(|error| AgentError::Internal(error.to_string()))?;
    let record = NewRecord::new(RESERVED, reserved.charge.at, payload).in_session(reserved.charge.session_id);
    options.journal.append(vec![record]).await?;
    Ok(())
}
