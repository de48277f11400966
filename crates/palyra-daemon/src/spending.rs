//! Prices and budgets, as the configuration says.

use std::fs;
use std::path::{Path, PathBuf};

use palyra_agent::Spending;
use palyra_budget::{BudgetScope, Limits, Threshold};
use palyra_common::config::{BudgetConfig, Config};
use palyra_common::{StableErrorEnvelope, ToStableError as _};
use palyra_models::PriceTable;

use crate::error::DaemonError;

/// Name of the operator's price file, beside the configuration.
const PRICES: &str = "prices.toml";

/// What model calls cost and may cost.
pub(crate) fn spending(config: &Config, config_file: Option<&Path>) -> Result<Spending, DaemonError> {
    Ok(Spending::new(prices(&config.budget, config_file)?, limits(&config.budget)?))
}

fn limits(config: &BudgetConfig) -> Result<Limits, DaemonError> {
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
fn prices(config: &BudgetConfig, config_file: Option<&Path>) -> Result<PriceTable, DaemonError> {
    let beside =
        || config_file.and_then(Path::parent).map(|directory| directory.join(PRICES)).filter(|file| file.exists());
    let Some(file): Option<PathBuf> = config.prices.clone().or_else(beside) else { return Ok(PriceTable::shipped()) };
    let origin = file.display().to_string();
    let text = fs::read_to_string(&file).map_err(|error| {
        let message = format!("the price file `{origin}` cannot be read: {error}");
        value(
            "budget.prices",
            StableErrorEnvelope::new("config_invalid_value", palyra_common::ErrorCategory::Validation, message),
        )
    })?;
    PriceTable::with_own(&text, &origin).map_err(|error| value("budget.prices", error.to_stable()))
}

fn value(key: &str, reason: StableErrorEnvelope) -> DaemonError {
    DaemonError::Value { key: key.to_owned(), reason: Box::new(reason) }
}
