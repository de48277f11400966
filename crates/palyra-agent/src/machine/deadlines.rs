//! Deadlines, clocks that are set and machines that are suspended.
//!
//! A deadline is a time on the wall clock, because that is what records and people have. What it limits is time in which somebody could have acted. Where the two differ, because
//! somebody set the clock, the machine was suspended or the daemon was not running, every deadline moves by the difference: nothing lapses without anybody having had the time.

use std::time::Duration;

use palyra_common::Timestamp;

use super::state::{CallState, Phase};
use super::{ClockGap, Machine};

/// Time that is left until any deadline after the machine woke up, however little was left before: connections have to be made anew, and whoever is asked has to get
/// to the question first.
pub const AWAKE_GRACE: Duration = Duration::from_secs(60);

impl Machine {
    pub(super) fn on_clock_adjusted(&mut self, by_ms: i64, gap: ClockGap, at: Timestamp) {
        let earliest = match gap {
            ClockGap::Suspended => Some(at.plus(AWAKE_GRACE)),
            ClockGap::ClockSet | ClockGap::DaemonDown => None,
        };
        let shift = |deadline: &mut Option<Timestamp>| *deadline = deadline.map(|end| shifted(end, by_ms, earliest));
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
        // The deadline of the phase is counted from its beginning.
        self.phase_since = self.phase_since.shifted(by_ms);
        if let (Some(earliest), Some(deadline)) = (earliest, self.work_deadline()) {
            self.phase_since = self.phase_since.plus(earliest.since(deadline));
        }
    }
}

fn shifted(deadline: Timestamp, by_ms: i64, earliest: Option<Timestamp>) -> Timestamp {
    let shifted = deadline.shifted(by_ms);
    earliest.map_or(shifted, |earliest| shifted.max(earliest))
}
