//! What the next run of a session knows of the ones before.

use palyra_common::{Confidentiality, Integrity, Label};
use palyra_journal::rusqlite;
use rusqlite::Connection;

use super::lineage::{self, Link};
use crate::projections::{Past, SessionState};
use crate::session::Compaction;
use crate::spec::Exchange;

/// Share of the model's window that earlier exchanges of a session may take.
const WINDOW_SHARE: usize = 4;
/// Exchanges of a session that are looked at.
const LOOKED_AT: usize = 50;

/// What is known of a session before its next run.
#[derive(Debug, Default)]
pub(in crate::engine) struct Known {
    /// The newest exchanges that fit, oldest first; the first may be a summary.
    pub(in crate::engine) exchanges: Vec<Exchange>,
    /// How many older ones there are.
    pub(in crate::engine) omitted: u32,
}

/// What the next run of a session knows, in a window of so many tokens.
pub(in crate::engine) fn known(
    connection: &Connection,
    state: &SessionState,
    window: usize,
) -> rusqlite::Result<Known> {
    let mut budget = window * 4 / WINDOW_SHARE;
    let summary = state.compaction.as_ref().map(summary);
    if let Some(summary) = &summary {
        budget = budget.saturating_sub(summary.prompt.len() + summary.answer.len());
    }
    let mut exchanges = Vec::new();
    for link in open_links(connection, state, LOOKED_AT)? {
        let Some(exchange) = exchange(link) else { continue };
        let Some(left) = budget.checked_sub(exchange.prompt.len() + exchange.answer.len()) else { break };
        budget = left;
        exchanges.push(exchange);
    }
    let inherited = state.fork.as_ref().map_or(0, |fork| fork.inherited);
    let told = exchanges.len() as u64 + state.compaction.as_ref().map_or(0, |compaction| compaction.replaces);
    let omitted = (state.row.runs + inherited).saturating_sub(told);
    exchanges.extend(summary);
    exchanges.reverse();
    Ok(Known { exchanges, omitted: u32::try_from(omitted).unwrap_or(u32::MAX) })
}

/// The links that no summary stands for, newest first.
pub(super) fn open_links(connection: &Connection, state: &SessionState, limit: usize) -> rusqlite::Result<Vec<Link>> {
    let through = state.compaction.as_ref().map(|compaction| compaction.through);
    let links = lineage::links(connection, state, limit)?;
    Ok(links.into_iter().take_while(|link| Some(link.run_id()) != through).collect())
}

/// A link as the model is told of it; nothing if the run is still at work.
pub(super) fn exchange(link: Link) -> Option<Exchange> {
    match link {
        Link::Cut(_, exchange) => Some(exchange),
        Link::Run(Past { run_id, prompt, prompt_label, answer, label, reason, phase }) => {
            let answer = match (answer, reason) {
                (Some(answer), _) => answer,
                (None, Some(reason)) => format!("(this run ended without an answer: {reason})"),
                (None, None) if phase.is_terminal() => "(this run ended without an answer)".to_owned(),
                (None, None) => return None,
            };
            let label = label.unwrap_or_else(unknown_label);
            Some(Exchange { run_id: Some(run_id), prompt, prompt_label, answer, label })
        }
    }
}

/// An answer whose label nobody knows could have been written by anybody.
pub(in crate::engine) fn unknown_label() -> Label {
    Label::new(Integrity::Untrusted, Confidentiality::Private)
}

/// The exchange that stands for those that were summarised.
fn summary(compaction: &Compaction) -> Exchange {
    Exchange {
        run_id: Some(compaction.through),
        prompt: format!(
            "(summary of {} earlier exchange(s) of this session) Asked:\n{}",
            compaction.replaces, compaction.asked
        ),
        // What outside senders wrote was left out of it.
        prompt_label: None,
        answer: match compaction.method.as_str() {
            Compaction::BY_MODEL => format!("What came of it, summarised:\n{}", compaction.answered),
            _ => format!("Answered, each shortened to its first sentence:\n{}", compaction.answered),
        },
        label: compaction.label.clone(),
    }
}
