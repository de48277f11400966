//! Prices and budgets, as the configuration says.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use palyra_agent::Spending;
use palyra_budget::{BudgetScope, Limits, Threshold};
use palyra_common::config::{BudgetConfig, Config};
use palyra_common::{ComponentHealth, HealthStatus, StableErrorEnvelope, ToStableError as _, paths};
use palyra_models::PriceTable;

use crate::error::DaemonError;
use crate::stamp::Stamp;

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
        let named = config.budget.prices.is_some();
        let file = config.budget.prices.clone().or_else(|| Some(paths::prices_file(config_file?)));
        let read_at = Stamp::of(file.as_deref());
        let table =
            PriceTable::load(file.as_deref(), named).map_err(|error| value("budget.prices", error.to_stable()))?;
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
        let read = PriceTable::load(self.file.as_deref(), self.named)
            .map(|table| self.spending.replace_prices(table))
            .map_err(|error| error.to_stable());
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

fn value(key: &str, reason: StableErrorEnvelope) -> DaemonError {
    DaemonError::Value { key: key.to_owned(), reason: Box::new(reason) }
}
