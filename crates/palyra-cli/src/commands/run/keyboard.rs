//! Lines typed by a person, as they come.
//!
//! Reading a terminal cannot be cancelled, so it has a thread of its own, which ends with the process.

use std::io::BufRead as _;

use tokio::sync::mpsc;

/// A person who may type.
pub(super) struct Keyboard {
    lines: Option<mpsc::Receiver<String>>,
}

impl Keyboard {
    /// Nobody is listened to before the first question.
    pub(super) fn new() -> Self {
        Self { lines: None }
    }

    /// The next line; `None` once there will be no more. Cancel-safe.
    pub(super) async fn line(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(listen).recv().await
    }
}

fn listen() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    let listening = std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    // Without the thread the sender is gone, and the keyboard reads as ended.
    drop(listening);
    receiver
}
