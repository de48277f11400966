//! The line in which auxiliary tasks wait.
//!
//! So many work at once; the rest wait in one line per session, and the sessions take turns. A session with a hundred tasks does not keep the one task
//! of another waiting for all of them. The line is bounded: what does not fit is refused at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palyra_common::SessionId;
use tokio::sync::oneshot;

use crate::auxiliary::AuxiliaryError;

/// Most tasks that wait. Each holds its input in memory.
const MAX_WAITING: usize = 256;

/// Where tasks wait for their turn.
#[derive(Debug)]
pub(in crate::engine) struct Line {
    at_once: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    at_work: usize,
    /// Sessions in the order of their turns, none of them without a waiting task.
    sessions: VecDeque<(SessionId, VecDeque<oneshot::Sender<Turn>>)>,
}

impl State {
    fn waiting(&self) -> usize {
        self.sessions.iter().map(|(_, tasks)| tasks.len()).sum()
    }

    /// Who is next; whose session then goes to the end.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        let (session, mut tasks) = self.sessions.pop_front()?;
        let next = tasks.pop_front();
        if !tasks.is_empty() {
            self.sessions.push_back((session, tasks));
        }
        next
    }
}

/// A task's turn. Dropping it lets the next one work.
#[derive(Debug)]
pub(super) struct Turn {
    line: Option<Arc<Line>>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            line.pass_on();
        }
    }
}

/// A place in the line.
#[derive(Debug)]
pub(super) enum Place {
    First(Turn),
    Waiting(oneshot::Receiver<Turn>),
}

impl Place {
    /// Waits for the turn. Dropping this gives up the place.
    pub(super) async fn turn(self) -> Option<Turn> {
        match self {
            Self::First(turn) => Some(turn),
            Self::Waiting(turn) => turn.await.ok(),
        }
    }
}

impl Line {
    /// A line from which so many work at once.
    pub(in crate::engine) fn new(at_once: usize) -> Arc<Self> {
        Arc::new(Self { at_once: at_once.max(1), state: Mutex::default() })
    }

    /// Takes a place, unless the line is full.
    pub(super) fn join(self: &Arc<Self>, session: SessionId) -> Result<Place, AuxiliaryError> {
        let mut state = self.lock();
        // Whoever gave up waiting takes no place.
        for (_, tasks) in &mut state.sessions {
            tasks.retain(|task| !task.is_closed());
        }
        state.sessions.retain(|(_, tasks)| !tasks.is_empty());
        if state.at_work < self.at_once && state.sessions.is_empty() {
            state.at_work += 1;
            return Ok(Place::First(Turn { line: Some(Arc::clone(self)) }));
        }
        let waiting = state.waiting();
        if waiting >= MAX_WAITING {
            return Err(AuxiliaryError::QueueFull { waiting });
        }
        let (sender, receiver) = oneshot::channel();
        match state.sessions.iter_mut().find(|(id, _)| *id == session) {
            Some((_, tasks)) => tasks.push_back(sender),
            None => state.sessions.push_back((session, VecDeque::from([sender]))),
        }
        Ok(Place::Waiting(receiver))
    }

    /// Gives the turn of one that is done to the next that still waits for it.
    fn pass_on(self: &Arc<Self>) {
        let mut state = self.lock();
        while let Some(next) = state.next() {
            match next.send(Turn { line: Some(Arc::clone(self)) }) {
                Ok(()) => return,
                // Nobody waits there any more; this turn must not pass itself on while the lock is held.
                Err(mut refused) => drop(refused.line.take()),
            }
        }
        state.at_work = state.at_work.saturating_sub(1);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(n: u128) -> SessionId {
        SessionId::from_u128(n)
    }

    fn is_up(place: &mut Place) -> bool {
        match place {
            Place::First(_) => true,
            Place::Waiting(turn) => match turn.try_recv() {
                Ok(turn) => {
                    *place = Place::First(turn);
                    true
                }
                Err(_) => false,
            },
        }
    }

    #[test]
    fn sessions_take_turns() {
        let line = Line::new(1);
        let first = line.join(session(1)).unwrap();
        let mut busy: Vec<Place> = (0..3).map(|_| line.join(session(1)).unwrap()).collect();
        let mut other = line.join(session(2)).unwrap();
        assert!(busy.iter_mut().all(|place| !is_up(place)) && !is_up(&mut other));
        drop(first);
        assert!(is_up(&mut busy[0]) && !is_up(&mut other), "who came first is first");
        drop(busy.remove(0));
        assert!(is_up(&mut other) && !is_up(&mut busy[0]), "then the other session, though it came last");
        drop(other);
        assert!(is_up(&mut busy[0]) && !is_up(&mut busy[1]));
    }

    #[test]
    fn who_gives_up_loses_no_turn_for_the_others() {
        let line = Line::new(2);
        let (one, two) = (line.join(session(1)).unwrap(), line.join(session(1)).unwrap());
        let (gone, mut third) = (line.join(session(1)).unwrap(), line.join(session(2)).unwrap());
        drop(gone);
        drop(one);
        assert!(is_up(&mut third));
        drop((two, third));
        assert!(matches!(line.join(session(3)), Ok(Place::First(_))), "all turns came back");
    }

    #[test]
    fn a_turn_that_arrives_too_late_goes_on() {
        let line = Line::new(1);
        let first = line.join(session(1)).unwrap();
        let second = line.join(session(1)).unwrap();
        drop(first);
        // The turn is on its way to `second`, which goes away without taking it.
        drop(second);
        assert!(matches!(line.join(session(3)), Ok(Place::First(_))));
    }

    #[test]
    fn the_line_is_bounded() {
        let line = Line::new(1);
        let mut places = vec![line.join(session(0)).unwrap()];
        places.extend((0..MAX_WAITING).map(|n| line.join(session(n as u128)).unwrap()));
        assert_eq!(line.join(session(9)).unwrap_err(), AuxiliaryError::QueueFull { waiting: MAX_WAITING });
        places.pop();
        assert!(line.join(session(9)).is_ok(), "who gives up makes room");
    }
}
