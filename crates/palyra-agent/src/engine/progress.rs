//! How the calls under way get on, for those who follow a run.
//!
//! One slot per call holds its latest step and the end of what it prints. A tool writes into its slot and goes on; a follower looks at the slots
//! at its own pace, at most once in [`PACE`] and [`MOST_PER_CALL`] times per call. So a tool never waits for a reader, a reader that stops
//! reading costs nothing, and what nobody looked at in time is gone. Nothing of this is journaled or reaches the machine: a replay knows
//! nothing of it and need not.
//!
//! INVARIANT: text leaves through [`Seen::news`] alone, which scans it: a tool's words may hold a secret, also one split over two pieces.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use palyra_common::{CallProgress, MODEL_CALL};
use palyra_safety::StreamScanner;
use palyra_tools::{ToolProgress, ToolReport};
use tokio::sync::watch;

use super::safety::Safety;

/// Shortest time between two looks of a follower.
pub(super) const PACE: Duration = Duration::from_secs(1);
/// Most news a follower gets of one call: a call that takes ten minutes at that pace. Stops a tool that outlives its time limit.
const MOST_PER_CALL: u32 = 600;
/// Failed tries of a model call that are kept for followers: each is an event of its own, and the first may be followed at once by the next.
const KEPT_FAILURES: usize = 16;
/// How much of the end of a call's output is kept.
const TAIL_BYTES: usize = 16 << 10;

/// The slots of one run.
#[derive(Debug, Default)]
pub(crate) struct ProgressBoard {
    slots: Mutex<BTreeMap<String, Slot>>,
    /// Counts changes; followers wait for it.
    changes: watch::Sender<u64>,
}

/// What a call told last.
#[derive(Debug, Default)]
struct Slot {
    /// The count of changes when it changed last.
    changed: u64,
    percent: Option<u8>,
    /// The newest step, and of the model's calls those before it that a follower may not have seen, each with the count of changes it made.
    steps: VecDeque<(u64, String)>,
    tail: VecDeque<u8>,
    /// How many bytes were printed in all.
    printed: u64,
}

impl ProgressBoard {
    /// Opens the slot of a call and gives what the call tells it with.
    pub(super) fn open(self: &Arc<Self>, call_id: &str) -> ToolProgress {
        self.lock().insert(call_id.to_owned(), Slot::default());
        let (board, call_id) = (Arc::downgrade(self), call_id.to_owned());
        ToolProgress::to(Arc::new(move |report| {
            if let Some(board) = board.upgrade() {
                board.take(&call_id, report);
            }
        }))
    }

    /// Closes the slot of a call that is over. Whatever it still tells reaches nobody.
    pub(super) fn close(&self, call_id: &str) {
        self.lock().remove(call_id);
    }

    /// Tells when anything changes.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn take(&self, call_id: &str, report: ToolReport) {
        let mut slots = self.lock();
        let Some(slot) = slots.get_mut(call_id) else { return };
        match report {
            ToolReport::Step { percent, message } => {
                slot.percent = percent;
                let kept = if call_id == MODEL_CALL { KEPT_FAILURES } else { 1 };
                slot.steps.push_back((*self.changes.borrow() + 1, message));
                let excess = slot.steps.len().saturating_sub(kept);
                slot.steps.drain(..excess);
            }
            ToolReport::Output(bytes) => {
                slot.printed += bytes.len() as u64;
                slot.tail.extend(bytes.iter().skip(bytes.len().saturating_sub(TAIL_BYTES)));
                let excess = slot.tail.len().saturating_sub(TAIL_BYTES);
                slot.tail.drain(..excess);
            }
        }
        self.changes.send_modify(|changes| {
            *changes += 1;
            slot.changed = *changes;
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Slot>> {
        // A slot is whole between any two statements, so a panic elsewhere does not spoil it.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one follower has seen of the slots.
#[derive(Default)]
pub(super) struct Seen {
    /// The count of changes at the last look.
    pub(super) changes: u64,
    calls: BTreeMap<String, SeenCall>,
}

struct SeenCall {
    told: u32,
    printed: u64,
    scanner: StreamScanner,
}

impl Seen {
    /// What changed since the last look, call by call.
    pub(super) fn news(&mut self, board: &ProgressBoard, safety: &Safety) -> Vec<CallProgress> {
        let slots = board.lock();
        self.calls.retain(|call_id, _| slots.contains_key(call_id));
        let before = std::mem::replace(&mut self.changes, *board.changes.borrow());
        let mut news = Vec::new();
        for (call_id, slot) in slots.iter().filter(|(_, slot)| slot.changed > before) {
            let seen = self.calls.entry(call_id.clone()).or_insert_with(|| SeenCall {
                told: 0,
                printed: 0,
                scanner: safety.stream(),
            });
            if seen.told >= MOST_PER_CALL {
                continue;
            }
            seen.told += 1;
            let output = seen.output(slot, safety);
            let told = |message: &str, output| CallProgress {
                call_id: call_id.clone(),
                percent: slot.percent,
                message: safety.before_export(message.to_owned()),
                output,
            };
            let fresh: Vec<&str> =
                slot.steps.iter().filter(|(at, _)| *at > before).map(|(_, message)| message.as_str()).collect();
            let newest = slot.steps.back().map_or("", |(_, message)| message.as_str());
            let earlier = fresh.split_last().map_or(&[][..], |(_, earlier)| earlier);
            news.extend(earlier.iter().map(|message| told(message, String::new())));
            news.push(told(newest, output));
        }
        news
    }
}

impl SeenCall {
    /// What was printed since the last look and is certain to hold no secret.
    fn output(&mut self, slot: &Slot, safety: &Safety) -> String {
        let fresh = usize::try_from(slot.printed - self.printed).unwrap_or(usize::MAX);
        self.printed = slot.printed;
        if fresh > slot.tail.len() {
            // Something in between is gone; what was held back from before does not belong to what follows.
            self.scanner = safety.stream();
        }
        let from = slot.tail.len().saturating_sub(fresh);
        let bytes: Vec<u8> = slot.tail.iter().skip(from).copied().collect();
        if bytes.is_empty() {
            String::new()
        } else {
            String::from_utf8_lossy(&self.scanner.push(&bytes).bytes).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use palyra_safety::{Scanner, VaultEntry};

    use super::*;

    const SECRET: &str = "correct-horse-battery-staple";

    fn setting() -> (Arc<ProgressBoard>, Safety, Seen) {
        let vault = [VaultEntry { name: "token".to_owned(), value: SECRET.to_owned().into() }];
        (Arc::default(), Safety::new(Scanner::new(&vault).unwrap()), Seen::default())
    }

    #[test]
    fn the_latest_step_is_told_and_what_came_before_it_is_dropped() {
        let (board, safety, mut seen) = setting();
        let progress = board.open("c1");
        assert!(seen.news(&board, &safety).is_empty());
        for step in 0..10_000_u32 {
            progress.step(Some((step / 100) as u8), &format!("step {step}"));
        }
        let news = seen.news(&board, &safety);
        assert_eq!((news.len(), news[0].percent, news[0].message.as_str()), (1, Some(99), "step 9999"));
        assert!(seen.news(&board, &safety).is_empty(), "nothing is told twice");
        board.close("c1");
        progress.step(Some(100), "too late");
        assert!(seen.news(&board, &safety).is_empty());
    }

    #[test]
    fn a_follower_is_not_told_more_than_so_often_of_one_call() {
        let (board, safety, mut seen) = setting();
        let (loud, quiet) = (board.open("loud"), board.open("quiet"));
        let mut told = 0;
        for step in 0..MOST_PER_CALL * 2 {
            loud.step(None, &step.to_string());
            told += seen.news(&board, &safety).len();
        }
        assert_eq!(told, MOST_PER_CALL as usize);
        quiet.step(None, "still here");
        assert_eq!(seen.news(&board, &safety)[0].call_id, "quiet");
    }

    #[test]
    fn output_is_bounded_and_a_secret_in_two_pieces_is_cut_out() {
        let (board, safety, mut seen) = setting();
        let progress = board.open("c1");
        progress.output(&vec![b'x'; 10 * TAIL_BYTES]);
        assert_eq!(board.lock()["c1"].tail.len(), TAIL_BYTES);
        let first: usize = seen.news(&board, &safety).iter().map(|news| news.output.len()).sum();
        assert!(first <= TAIL_BYTES);

        let progress = board.open("c2");
        let (one, two) = SECRET.split_at(17);
        let mut shown = String::new();
        for piece in ["begin\n", one, two, "\nend of it\n"] {
            progress.output(piece.as_bytes());
            shown.extend(seen.news(&board, &safety).into_iter().map(|news| news.output));
        }
        assert!(shown.contains("begin") && !shown.contains(one) && !shown.contains(two), "{shown}");
        progress.step(None, &format!("using {SECRET}"));
        assert!(!seen.news(&board, &safety)[0].message.contains(one));
    }
}
