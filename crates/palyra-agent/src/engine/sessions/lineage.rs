//! The line of runs that a session goes back on: its own, and those before the point where it was forked, however often.
//!
//! Pure reading of one state of the journal. A session's own runs come first; then those of the session that holds the run it was forked at, up to
//! that run; and so on. A fork points at a run and not at a position, so it stays what it was while its source goes on.

use palyra_common::{RunId, SessionId};
use palyra_journal::rusqlite;
use rusqlite::Connection;

use crate::projections::{self, Past, SessionState};
use crate::session::Fork;
use crate::spec::Exchange;

/// One exchange of the line.
#[derive(Debug, Clone)]
pub(super) enum Link {
    /// A run as it is.
    Run(Past),
    /// What was said in a run up to a fork within it.
    Cut(RunId, Exchange),
}

impl Link {
    /// The run.
    pub(super) fn run_id(&self) -> RunId {
        match self {
            Self::Run(past) => past.run_id,
            Self::Cut(run_id, _) => *run_id,
        }
    }
}

/// One session of the line, and up to where its runs belong to it.
struct Stretch {
    session_id: SessionId,
    /// Place in the log of the last run that belongs.
    through: i64,
    /// The fork that ends this stretch.
    ended_by: Option<Fork>,
}

/// Where a run stands in a line.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// If the run is only there up to an event: which one, and what was said until then.
    pub(super) cut: Option<(u64, Exchange)>,
}

/// Exchanges of a session, newest first, at most `limit`.
pub(super) fn links(connection: &Connection, state: &SessionState, limit: usize) -> rusqlite::Result<Vec<Link>> {
    let mut found = Vec::new();
    each_stretch(connection, state, |stretch| {
        let left = limit.saturating_sub(found.len());
        for past in projections::past_runs(connection, stretch.session_id, stretch.through, left)? {
            let cut = stretch.ended_by.as_ref().filter(|fork| fork.from.run_id == Some(past.run_id));
            found.push(match cut.and_then(|fork| fork.cut.clone()) {
                Some(exchange) => Link::Cut(past.run_id, exchange),
                None => Link::Run(past),
            });
        }
        Ok(found.len() < limit)
    })?;
    Ok(found)
}

/// Where a run stands in the line of a session, if it does.
pub(super) fn place_of(
    connection: &Connection,
    state: &SessionState,
    run_id: RunId,
) -> rusqlite::Result<Option<Place>> {
    let Some((home, accepted)) = projections::run_place(connection, run_id)? else { return Ok(None) };
    let mut place = None;
    each_stretch(connection, state, |stretch| {
        if stretch.session_id != home || accepted > stretch.through {
            return Ok(true);
        }
        let fork = stretch.ended_by.as_ref().filter(|fork| fork.from.run_id == Some(run_id));
        let cut = fork.and_then(|fork| fork.from.seq.zip(fork.cut.clone()));
        place = Some(Place { cut });
        Ok(false)
    })?;
    Ok(place)
}

/// How many exchanges of the line there are up to and including a run of it.
pub(super) fn count_through(connection: &Connection, state: &SessionState, run_id: RunId) -> rusqlite::Result<u64> {
    let Some((home, accepted)) = projections::run_place(connection, run_id)? else { return Ok(0) };
    let mut count = 0;
    let mut reached = false;
    each_stretch(connection, state, |stretch| {
        let here = stretch.session_id == home;
        if reached || here {
            let through = if here && !reached { accepted.min(stretch.through) } else { stretch.through };
            count += projections::count_runs_through(connection, stretch.session_id, through)?;
        }
        reached |= here;
        Ok(true)
    })?;
    Ok(count)
}

/// Calls `each` for every stretch, newest first, until it returns false.
fn each_stretch(
    connection: &Connection,
    state: &SessionState,
    mut each: impl FnMut(&Stretch) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let mut stretch = Stretch { session_id: state.row.session_id, through: i64::MAX, ended_by: None };
    let mut fork = state.fork.clone();
    while each(&stretch)? {
        let Some(next) = fork.take() else { break };
        let Some(run_id) = next.from.run_id else { break };
        let Some((session_id, through)) = projections::run_place(connection, run_id)? else { break };
        fork = projections::session(connection, session_id)?.and_then(|state| state.fork);
        stretch = Stretch { session_id, through, ended_by: Some(next) };
    }
    Ok(())
}
