//! What was said before, as a client tells it.
//!
//! What the client says its user wrote counts as written by the user, like the prompt beside it. What it says Palyra answered could have been written
//! by anybody, unless it is word for word what the same owner was given before: then it keeps the label it was given with.

use palyra_common::Label;
use palyra_journal::rusqlite;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::sessions::{Known, unknown_label};
use crate::projections;
use crate::spec::Exchange;

/// One earlier exchange, as the client tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenExchange {
    /// What was asked.
    pub prompt: String,
    /// What was answered.
    pub answer: String,
}

/// The newest exchanges that fit into three quarters of the window, oldest first.
pub(super) fn known(
    connection: &Connection,
    owner: &str,
    given: Vec<GivenExchange>,
    window: usize,
) -> rusqlite::Result<Known> {
    let mut budget = window * 4 * 3 / 4;
    let total = given.len();
    let mut exchanges = Vec::new();
    for GivenExchange { prompt, answer } in given.into_iter().rev() {
        let Some(left) = budget.checked_sub(prompt.len() + answer.len()) else { break };
        budget = left;
        let label = label(connection, owner, &answer)?;
        exchanges.push(Exchange { run_id: None, prompt, prompt_label: None, answer, label });
    }
    let omitted = u32::try_from(total - exchanges.len()).unwrap_or(u32::MAX);
    exchanges.reverse();
    Ok(Known { exchanges, omitted })
}

/// The worst of the labels under which this answer was given before.
fn label(connection: &Connection, owner: &str, answer: &str) -> rusqlite::Result<Label> {
    let known = projections::answer_labels(connection, owner, answer)?;
    let joined =
        known.into_iter().map(|label| label.unwrap_or_else(unknown_label)).reduce(|joined, label| joined.join(&label));
    Ok(joined.unwrap_or_else(unknown_label))
}
