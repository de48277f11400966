//! The books of an engine: opened from the journal, read by reports, widened by a person.

use palyra_budget::{UsageGrouping, UsageReport};
use palyra_common::Timestamp;

use super::Spending;
use crate::engine::Engine;
use crate::engine::embeddings::EmbeddingsUsed;
use crate::engine::model_tests::ModelTested;
use crate::error::AgentError;
use crate::projections::{self, CallWithoutRun};

impl Engine {
    /// Enters into the books what was spent before this process began.
    pub(in crate::engine) async fn open_books(&self) -> Result<(), AgentError> {
        if let Err(error) = self.close_interrupted_calls().await {
            // Their reservations still count in full; only reports do not name them.
            tracing::warn!(%error, "model calls without a run that a crash interrupted could not be booked");
        }
        let head = self.shared.options.journal.head().count;
        let (spent, open, grants, quarantined) = self
            .query(|reader| {
                let db = reader.connection();
                Ok((
                    projections::spent(db)?,
                    projections::open_reservations(db)?,
                    projections::grants(db)?,
                    projections::quarantined(db)?,
                ))
            })
            .await?;
        let spending = &self.shared.options.spending;
        if let Some(found) = &quarantined {
            tracing::warn!(records = found.records, first = found.first_seq, reason = %found.reason, "records about usage could not be booked");
        }
        spending.set_quarantined(quarantined, head);
        spending.ledger.seed(spent);
        spending.ledger.seed_open(open);
        for (run_id, amount) in grants {
            spending.grant(run_id, amount);
        }
        Ok(())
    }

    /// Books the calls in full that belong to no run and that the last process did not live to see the end of.
    async fn close_interrupted_calls(&self) -> Result<(), AgentError> {
        let options = &self.shared.options;
        let open = self.query(|reader| projections::open_calls_without_run(reader.connection())).await?;
        let mut records = Vec::new();
        for (kind, reserved) in open {
            let record = match kind {
                CallWithoutRun::Embeddings => {
                    EmbeddingsUsed::interrupted(reserved).map(|used| options.embeddings_record(&used))
                }
                CallWithoutRun::ModelTest => {
                    ModelTested::interrupted(reserved).map(|tested| options.model_test_record(&tested))
                }
            };
            records.extend(record.transpose()?);
        }
        if !records.is_empty() {
            options.journal.append(records).await?;
        }
        Ok(())
    }

    /// Looks up which records about usage could not be booked, if there is anything new on the journal.
    pub async fn refresh_quarantined_usage(&self) {
        let spending = &self.shared.options.spending;
        let head = self.shared.options.journal.head().count;
        if spending.quarantine_checked_at(head) {
            return;
        }
        match self.query(|reader| projections::quarantined(reader.connection())).await {
            Ok(found) => spending.set_quarantined(found, head),
            Err(error) => tracing::warn!(%error, "whether records about usage were set aside cannot be looked up"),
        }
    }

    /// Prices, limits and the books.
    #[must_use]
    pub fn spending(&self) -> &Spending {
        &self.shared.options.spending
    }

    /// What time it is for this engine.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared.options.clock.now()
    }

    /// What models used and cost, in the sessions of one owner or in all.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn usage(&self, owner: Option<String>, by: UsageGrouping) -> Result<UsageReport, AgentError> {
        let rows = self.query(move |reader| projections::usage_rows(reader.connection(), owner.as_deref())).await?;
        Ok(UsageReport::of(&rows, by))
    }
}
