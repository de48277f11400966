//! Deadlines and clocks that are set.
//!
//! A deadline is a time on the wall clock, because that is what records and people have. What it limits is time that passed. Where the two differ, because somebody set the
//! clock or the daemon was not running, every deadline moves by the difference: nothing lapses without anybody having had the time.

use palyra_common::Timestamp;

use super::Machine;
use super::state::{CallState, Phase};

impl Machine {
    pub(super) fn on_clock_adjusted(&mut self, by_ms: i64) {
        let shift = |deadline: &mut Option<Timestamp>| *deadline = deadline.map(|at| at.shifted(by_ms));
        self.phase_since = self.phase_since.shifted(by_ms);
        match &mut self.phase {
            Phase::AskingForMoney(question) => shift(&mut question.expires_at),
            Phase::AskingForHook(question) => shift(&mut question.expires_at),
            _ => {}
        }
        for call in self.round_mut().into_iter().flat_map(|round| &mut round.calls) {
            if let CallState::AwaitingApproval { expires_at, .. } = &mut call.state {
                shift(expires_at);
            }
        }
    }
}
