//! How a call tells those who watch that it gets on: how far it is, and what it prints.
//!
//! Telling is a courtesy. It never waits, never fails and changes nothing: what is told is not part of the result, does not reach the model
//! and is not journaled, and any of it may be dropped. A tool may therefore tell as often as it likes, from any thread.

use std::fmt;
use std::sync::Arc;

/// Longest message of a step, in characters: one line of a terminal.
const MAX_MESSAGE: usize = 200;

/// One thing that a call tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolReport {
    /// How far it is. A later step replaces an earlier one.
    Step {
        /// How much is done, in percent, if that can be said.
        percent: Option<u8>,
        /// What is going on, in one line. May come from outside, so it is untrusted.
        message: String,
    },
    /// More of what it prints, as it comes; pieces may end inside a character.
    Output(Vec<u8>),
}

/// Takes reports. Must not block.
pub type ReportTaker = Arc<dyn Fn(ToolReport) + Send + Sync>;

/// Where a call tells how it gets on. Cheap to clone; one without a taker tells nobody.
#[derive(Clone, Default)]
pub struct ToolProgress(Option<ReportTaker>);

impl ToolProgress {
    /// Tells this taker.
    #[must_use]
    pub fn to(taker: ReportTaker) -> Self {
        Self(Some(taker))
    }

    /// Says how far the call is. Line breaks and control characters become spaces; a long message is cut.
    pub fn step(&self, percent: Option<u8>, message: &str) {
        if let Some(taker) = &self.0 {
            let line = message.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
            let message: String = line.take(MAX_MESSAGE).collect();
            taker(ToolReport::Step {
                percent: percent.map(|percent| percent.min(100)),
                message: message.trim().to_owned(),
            });
        }
    }

    /// Passes on what the call prints.
    pub fn output(&self, bytes: &[u8]) {
        if let Some(taker) = self.0.as_ref().filter(|_| !bytes.is_empty()) {
            taker(ToolReport::Output(bytes.to_vec()));
        }
    }
}

impl fmt::Debug for ToolProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ToolProgress(told)" } else { "ToolProgress(silent)" })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_is_told_is_one_short_line() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&told);
        let progress = ToolProgress::to(Arc::new(move |report| taken.lock().unwrap().push(report)));
        progress.step(Some(250), " reading\n\u{1b}[2Jpages ");
        progress.step(None, &"ä".repeat(1_000));
        progress.output(b"");
        progress.output(&[0xC3]);
        ToolProgress::default().step(Some(1), "nobody listens");
        let told = told.lock().unwrap();
        assert_eq!(told[0], ToolReport::Step { percent: Some(100), message: "reading  [2Jpages".to_owned() });
        assert!(matches!(&told[1], ToolReport::Step { message, .. } if message.chars().count() == MAX_MESSAGE));
        assert_eq!(told[2], ToolReport::Output(vec![0xC3]));
        assert_eq!(told.len(), 3);
    }
}
