//! `models.toml`, the price file and the budgets of `palyra.toml` are followed while the daemon runs, as policies are.
//!
//! All are looked at once a second, and before each command, so that a command right after an edit acts on what was written. What changed is read, judged
//! and taken over for the next call; calls under way end as they began. A file that cannot be used is told of once, in the log and on the journal, and in the
//! daemon's health until it is mended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{Clock, StableErrorEnvelope};
use palyra_journal::Journal;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::change::{self, BUDGETS_CHANGED, Came, MODELS_CHANGED, PRICES_CHANGED};
use super::{Models, Reloaded};
use crate::budgets::{Budgets, BudgetsReloaded};
use crate::spending::Prices;
use crate::stamp::Stamp;

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// What is followed, and where it is told.
pub(crate) struct Watched {
    models: Arc<Models>,
    prices: Arc<Prices>,
    budgets: Arc<Budgets>,
    journal: Journal,
    clock: Arc<dyn Clock>,
    /// The files as they were at the last look. Held while a change is taken over: who looks then waits for it.
    seen: Mutex<Seen>,
}

struct Seen {
    models: Stamp,
    prices: Stamp,
    config: Stamp,
}

/// Follows the files until the daemon ends.
pub(crate) async fn follow(watched: Arc<Watched>, closing: CancellationToken) {
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        watched.look().await;
    }
}

impl Watched {
    /// Follows the files from when they were first read.
    pub(crate) fn new(
        (models, prices, budgets): (Arc<Models>, Arc<Prices>, Arc<Budgets>),
        journal: Journal,
        clock: Arc<dyn Clock>,
    ) -> Self {
        // The configuration was read long before, so it is looked at once more.
        let seen = Seen { models: models.read_at(), prices: prices.read_at(), config: Stamp::of(None) };
        Self { models, prices, budgets, journal, clock, seen: Mutex::new(seen) }
    }

    /// Takes over what has changed since the last look, and is done when it holds.
    pub(crate) async fn look(&self) {
        let mut seen = self.seen.lock().await;
        let now = Stamp::of(self.models.file());
        if now != seen.models {
            seen.models = now;
            self.models_changed().await;
        }
        let now = Stamp::of(self.prices.file());
        if now != seen.prices {
            seen.prices = now;
            self.prices_changed().await;
        }
        let now = Stamp::of(self.budgets.file());
        if now != seen.config {
            seen.config = now;
            self.config_changed().await;
        }
    }

    async fn models_changed(&self) {
        let models = Arc::clone(&self.models);
        let reloaded = match tokio::task::spawn_blocking(move || models.reload()).await {
            Ok(reloaded) => reloaded,
            Err(error) => return tracing::error!(%error, "loading models.toml failed"),
        };
        let Some(file) = self.models.file() else { return };
        match reloaded {
            Reloaded::Same => {}
            Reloaded::TakenOver(difference) => {
                let reason = self.models.view().reason;
                tracing::info!(?difference, "models.toml reloaded: {reason}");
                let came = Came::TakenOver { difference: Some(&difference), reason: Some(&reason) };
                self.note(MODELS_CHANGED, file, came).await;
            }
            Reloaded::Refused(error) => self.refused(MODELS_CHANGED, file, &error).await,
        }
    }

    async fn prices_changed(&self) {
        let prices = Arc::clone(&self.prices);
        let reloaded = match tokio::task::spawn_blocking(move || prices.reload()).await {
            Ok(reloaded) => reloaded,
            Err(error) => return tracing::error!(%error, "loading the prices failed"),
        };
        let Some(file) = self.prices.file() else { return };
        match reloaded {
            Ok(()) => {
                tracing::info!(file = %file.display(), "prices reloaded");
                self.note(PRICES_CHANGED, file, Came::TakenOver { difference: None, reason: None }).await;
            }
            Err(error) => self.refused(PRICES_CHANGED, file, &error).await,
        }
    }

    async fn config_changed(&self) {
        let budgets = Arc::clone(&self.budgets);
        let reloaded = match tokio::task::spawn_blocking(move || budgets.reload()).await {
            Ok(reloaded) => reloaded,
            Err(error) => return tracing::error!(%error, "loading the budgets failed"),
        };
        let Some(file) = self.budgets.file() else { return };
        match reloaded {
            BudgetsReloaded::Same => {}
            BudgetsReloaded::TakenOver => {
                tracing::info!(file = %file.display(), "budgets reloaded");
                self.note(BUDGETS_CHANGED, file, Came::TakenOver { difference: None, reason: None }).await;
            }
            BudgetsReloaded::Refused(error) => self.refused(BUDGETS_CHANGED, file, &error).await,
        }
    }

    async fn refused(&self, kind: &'static str, file: &Path, error: &StableErrorEnvelope) {
        let shown = file.display();
        tracing::error!(code = %error.code, "`{shown}` IS NOT IN FORCE; the previous version still applies: {}", error.message);
        self.note(kind, file, Came::Refused(error)).await;
    }

    async fn note(&self, kind: &'static str, file: &Path, came: Came<'_>) {
        let noted = match change::record(kind, self.clock.now(), file, came) {
            Ok(record) => match self.journal.append(vec![record.clone()]).await {
                // It is in force already, and whoever caused it is not to wait for a disk.
                Err(error) if error.is_transient() => self.journal.append_detached(vec![record]),
                appended => appended.map(drop),
            }
            .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = noted {
            tracing::error!(error, kind, "the change is not on the journal");
        }
    }
}
