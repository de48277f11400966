//! The program on a terminal of its own, with a person who reads the screen before they type.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::Place;

/// Longer than anything takes; only so that a failing test ends and shows its screen.
const PATIENCE: Duration = Duration::from_secs(60);

type Screen = Arc<(Mutex<String>, Condvar)>;

/// A terminal in which a command runs.
pub(crate) struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: Screen,
    reader: JoinHandle<()>,
    /// How much of the screen has been read.
    seen: usize,
}

impl Terminal {
    /// Runs `palyra` with these words.
    pub(crate) fn open(place: &Place, words: &str) -> Self {
        Self::shell(place, &format!("exec {} {words}", place.path("bin/palyra").display()))
    }

    /// Runs a line of shell.
    pub(crate) fn shell(place: &Place, line: &str) -> Self {
        let described = place.command(&[]);
        let environment: Vec<_> = described.get_envs().map(|(k, v)| (k.to_owned(), v.unwrap().to_owned())).collect();
        let mut child = Command::new("script")
            .args(["-qec", line, "/dev/null"])
            .current_dir(place.path("workspace"))
            .env_clear()
            .envs(environment)
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keyboard, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Screen::default();
        let shared = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut chunk = [0; 4096];
            while let Some(n) = output.read(&mut chunk).ok().filter(|n| *n > 0) {
                bytes.extend_from_slice(&chunk[..n]);
                // A character may be split between two reads; it is whole after the next.
                *shared.0.lock().unwrap() = String::from_utf8_lossy(&bytes).into_owned();
                shared.1.notify_all();
            }
        });
        Self { child, keyboard, screen, reader, seen: 0 }
    }

    /// Waits until this is on the screen, after what was waited for before.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let (lock, changed) = &*self.screen;
        let absent = |screen: &mut String| !screen.get(self.seen..).unwrap_or_default().contains(text);
        let (screen, _) = changed.wait_timeout_while(lock.lock().unwrap(), PATIENCE, absent).unwrap();
        let Some(at) = screen.get(self.seen..).and_then(|new| new.find(text)) else {
            panic!("`{text}` did not appear on the screen:\n{screen}");
        };
        self.seen += at + text.len();
    }

    /// Types.
    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Waits for the end of the command, which must be a good one, and gives all that was on the screen.
    pub(crate) fn end(self) -> String {
        self.end_with(0)
    }

    /// The same for a command that ends with this exit code.
    pub(crate) fn end_with(mut self, code: i32) -> String {
        let status = self.child.wait().unwrap();
        self.reader.join().unwrap();
        drop(self.keyboard);
        let screen = self.screen.0.lock().unwrap().clone();
        assert_eq!(status.code(), Some(code), "{screen}");
        screen
    }
}
