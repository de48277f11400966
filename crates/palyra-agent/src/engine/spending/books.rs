//! The books of an engine: opened from the journal, read by reports, widened by a person.

use palyra_budget::{UsageGrouping, UsageReport};
use palyra_common::Timestamp;

use super::Spending;
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections;

impl Engine {
    /// Enters into the books what was spent before this process began.
    pub(in crate::engine) async fn open_books(&self) -> Result<(), AgentError> {
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
        spending.set_quarantined(quarantined);
        spending.ledger.seed(spent);
        spending.ledger.seed_open(open);
        for (run_id, amount) in grants {
            spending.grant(run_id, amount);
        }
        Ok(())
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
