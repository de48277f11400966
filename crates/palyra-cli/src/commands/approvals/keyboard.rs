//! Lines typed by a person, as they come.
//!
//! Reading a terminal cannot be cancelled, so it has a thread of its own, which ends with the process.
//!
//! INVARIANT: every line knows when it was read, so that what was typed before a question was on the screen is never taken
//! for its answer.

use std::io::{BufRead, BufReader};
use std::time::Instant;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

use crate::console::TerminalInput;

/// More lines than a person types ahead; the thread has to read them at once to know when they came.
const AHEAD: usize = 64;

/// A typed line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) read_at: Instant,
}

/// A person who may type.
pub(crate) struct Keyboard {
    terminal: TerminalInput,
    lines: Option<mpsc::Receiver<Line>>,
}

impl Keyboard {
    /// Nobody is listened to before the first question.
    pub(crate) fn new(terminal: TerminalInput) -> Self {
        Self { terminal, lines: None }
    }

    /// The next line; `None` once there will be no more. Cancel-safe.
    pub(crate) async fn line(&mut self) -> Option<Line> {
        self.lines.get_or_insert_with(|| listen(&self.terminal)).recv().await
    }

    /// Throws away what was typed and not read yet.
    pub(crate) fn forget(&self) {
        // Where there is no terminal nothing was typed ahead.
        let _ = match &self.terminal {
            TerminalInput::StandardInput => tcflush(std::io::stdin(), QueueSelector::IFlush),
            TerminalInput::Device(device) => tcflush(device, QueueSelector::IFlush),
            TerminalInput::Absent => Ok(()),
        };
    }
}

fn listen(terminal: &TerminalInput) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let source: Option<Box<dyn BufRead + Send>> = match terminal {
        TerminalInput::StandardInput => Some(Box::new(BufReader::new(std::io::stdin()))),
        TerminalInput::Device(device) => device.try_clone().ok().map(|device| Box::new(BufReader::new(device)) as _),
        TerminalInput::Absent => None,
    };
    if let Some(source) = source {
        let listening = std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            for text in source.lines().map_while(Result::ok) {
                if sender.blocking_send(Line { text, read_at: Instant::now() }).is_err() {
                    break;
                }
            }
        });
        // Without the thread the sender is gone, and the keyboard reads as ended.
        drop(listening);
    }
    receiver
}
