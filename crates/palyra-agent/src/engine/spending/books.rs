//! The books of an engine: opened from the journal, read by reports, widened by a person.

use palyra_budget::{MicroUsd, UsageGrouping, UsageReport};
use palyra_common::{RunId, Timestamp};

use super::{GRANTED, Granted, Spending};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections;

impl Engine {
    /// Enters into the books what was spent before this process began.
    pub(in crate::engine) async fn open_books(&self) -> Result<(), AgentError> {
        let (spent, open, grants) = self
            .query(|reader| {
                let db = reader.connection();
                Ok((projections::spent(db)?, projections::open_reservations(db)?, projections::grants(db)?))
            })
            .await?;
        let spending = &self.shared.options.spending;
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

    /// Lets a run spend so much more than its budgets allow. Who may say so is decided before.
    ///
    /// # Errors
    /// When there is no such run or the journal cannot take the record.
    pub async fn grant_budget(&self, run_id: RunId, amount: MicroUsd, by: &str) -> Result<(), AgentError> {
        let session_id = self.run(run_id).await?.session_id;
        let granted = Granted { run_id, micro_usd: amount, by: by.to_owned() };
        let record = self.session_record(GRANTED, session_id, &granted)?;
        self.shared.options.journal.append(vec![record]).await?;
        self.shared.options.spending.grant(run_id, amount);
        Ok(())
    }
}
