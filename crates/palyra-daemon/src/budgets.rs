//! Spending limits are followed while the daemon runs, as `models.toml` and the prices are.
//!
//! A configuration that cannot be used, or that is gone, changes nothing: limits that nobody lifted stay in force.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use palyra_agent::Spending;
use palyra_common::config::{self, BudgetConfig};
use palyra_common::{
    ComponentHealth, Environment, ErrorCategory, HealthStatus, StableErrorEnvelope, ToStableError as _,
};

use crate::spending::limits;

/// The limits of the configuration, and what is made of them.
pub(crate) struct Budgets {
    environment: Environment,
    /// `palyra.toml`, whether or not it is there.
    file: Option<PathBuf>,
    spending: Arc<Spending>,
    state: Mutex<State>,
}

struct State {
    in_force: BudgetConfig,
    /// Why the file on disk is not in force.
    problem: Option<StableErrorEnvelope>,
}

/// What came of looking at the configuration again.
#[derive(Debug)]
pub(crate) enum BudgetsReloaded {
    /// It says what it said before about budgets.
    Same,
    /// What it says holds from the next call on.
    TakenOver,
    /// It cannot be used.
    Refused(StableErrorEnvelope),
}

impl Budgets {
    /// Follows the limits from how they were at the start.
    pub(crate) fn new(
        config: &BudgetConfig,
        environment: &Environment,
        file: Option<PathBuf>,
        spending: Arc<Spending>,
    ) -> Self {
        let state = State { in_force: config.clone(), problem: None };
        Self { environment: environment.clone(), file, spending, state: Mutex::new(state) }
    }

    /// The file that is followed, whether or not it is there.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Looks at the configuration again.
    pub(crate) fn reload(&self) -> BudgetsReloaded {
        let read = self.read();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(budget) => {
                let mended = state.problem.take().is_some();
                if budget == state.in_force {
                    return if mended { BudgetsReloaded::TakenOver } else { BudgetsReloaded::Same };
                }
                match limits(&budget) {
                    Ok(limits) => {
                        self.spending.replace_limits(limits);
                        state.in_force = budget;
                        BudgetsReloaded::TakenOver
                    }
                    Err(error) => refused(&mut state, error.to_stable()),
                }
            }
            Err(error) => refused(&mut state, error),
        }
    }

    fn read(&self) -> Result<BudgetConfig, StableErrorEnvelope> {
        // Editors remove a file before they write it; in between no limit is lifted.
        if self.file.as_deref().is_some_and(|file| !file.exists()) {
            let message = "the configuration file is gone; its budgets stay in force until the daemon restarts";
            return Err(StableErrorEnvelope::new("config_missing", ErrorCategory::Validation, message));
        }
        let loaded = config::load(&self.environment).map_err(|error| error.to_stable())?;
        Ok(loaded.config().budget.clone())
    }

    /// What health says about the limits; nothing while all is well.
    pub(crate) fn health(&self) -> Option<ComponentHealth> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = state.problem.as_ref()?;
        let summary =
            format!("the budgets on disk are not in force; the previous ones still apply: {}", problem.message);
        Some(ComponentHealth::new("budgets", HealthStatus::Degraded, summary))
    }
}

fn refused(state: &mut State, error: StableErrorEnvelope) -> BudgetsReloaded {
    state.problem = Some(error.clone());
    BudgetsReloaded::Refused(error)
}
