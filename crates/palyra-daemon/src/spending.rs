//! Prices and budgets, as the configuration says.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use palyra_agent::Spending;
use palyra_budget::{BudgetScope, Limits, Threshold};
use palyra_common::config::{BudgetConfig, Config};
use palyra_common::{ComponentHealth, HealthStatus, StableErrorEnvelope, ToStableError as _};
use palyra_models::PriceTable;

use crate::error::DaemonError;
use crate::stamp::Stamp;

/// Name of the operator's price file, beside the configuration.
const PRICES: &str = "prices.toml";

/// The operator's price file, and what is made of it.
pub(crate) struct Prices {
    file: Option<PathBuf>,
    /// Whether the configuration names the file, so that it has to be there.
    named: bool,
    /// The file as it was when it was first read.
    read_at: Stamp,
    spending: Arc<Spending>,
    /// Why the file on disk is not in force.
    problem: Mutex<Option<StableErrorEnvelope>>,
}

impl Prices {
    /// What model calls cost and may cost.
    pub(crate) fn load(config: &Config, config_file: Option<&Path>) -> Result<Self, DaemonError> {
        let beside = || config_file.and_then(Path::parent).map(|directory| directory.join(PRICES));
        let named = config.budget.prices.is_some();
        let file = config.budget.prices.clone().or_else(beside);
        let read_at = Stamp::of(file.as_deref());
        let table = table(file.as_deref(), named).map_err(|error| value("budget.prices", error))?;
        let spending = Arc::new(Spending::new(table, limits(&config.budget)?));
        Ok(Self { file, named, read_at, spending, problem: Mutex::default() })
    }

    /// Prices, limits and the books.
    pub(crate) fn spending(&self) -> Arc<Spending> {
        Arc::clone(&self.spending)
    }

    /// The file that is followed, whether or not it is there.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file as it was when it was first read.
    pub(crate) fn read_at(&self) -> Stamp {
        self.read_at
    }

    /// Looks at the file again; one that cannot be used changes nothing.
    pub(crate) fn reload(&self) -> Result<(), StableErrorEnvelope> {
        let read = table(self.file.as_deref(), self.named).map(|table| self.spending.replace_prices(table));
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = read.as_ref().err().cloned();
        read
    }

    /// Why what is on the disk is not in force, if so.
    pub(crate) fn problem(&self) -> Option<StableErrorEnvelope> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What health says about the prices; nothing while all is well.
    pub(crate) fn health(&self) -> Option<ComponentHealth> {
        let problem = self.problem()?;
        let summary =
            format!("the prices on disk are not in force; the previous ones still apply: {}", problem.message);
        Some(ComponentHealth::new("prices", HealthStatus::Degraded, summary))
    }
}

/// The limits that a configuration means.
pub(crate) fn limits(config: &BudgetConfig) -> Result<Limits, DaemonError> {
    use BudgetScope as Scope;
    let settings = [
        (Scope::Run, &config.run, &config.run_warn),
        (Scope::Session, &config.session, &config.session_warn),
        (Scope::Agent, &config.agent, &config.agent_warn),
        (Scope::Day, &config.day, &config.day_warn),
        (Scope::Month, &config.month, &config.month_warn),
        (Scope::Global, &config.global, &config.global_warn),
    ];
    let texts = settings.iter().flat_map(|(scope, hard, soft)| {
        [(*scope, Threshold::Hard, hard.as_deref()), (*scope, Threshold::Soft, soft.as_deref())]
    });
    let given = texts.filter_map(|(scope, threshold, text)| Some((scope, threshold, text?)));
    Limits::from_settings(given).map_err(|error| value("budget", error.to_stable()))
}

/// The table that comes with the program, below the operator's own if there is one.
fn table(file: Option<&Path>, named: bool) -> Result<PriceTable, StableErrorEnvelope> {
    let Some(file) = file.filter(|file| named || file.exists()) else { return Ok(PriceTable::shipped()) };
    let origin = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| {
        let message = format!("the price file `{origin}` cannot be read: {error}");
        StableErrorEnvelope::new("config_invalid_value", palyra_common::ErrorCategory::Validation, message)
    })?;
    PriceTable::with_own(&text, &origin).map_err(|error| error.to_stable())
}

fn value(key: &str, reason: StableErrorEnvelope) -> DaemonError {
    DaemonError::Value { key: key.to_owned(), reason: Box::new(reason) }
}
