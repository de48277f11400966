//! The thread that does the slow work beside the writer: building segments.
//!
//! It never writes a table. What it finds or builds it reports to the writer as a command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use palyra_common::Clock;

use crate::db;
use crate::error::JournalError;
use crate::layout::Layout;
use crate::options::JournalOptions;
use crate::segments;
use crate::writer::Command;

/// What can be asked.
#[derive(Debug)]
pub(crate) enum Task {
    Seal { first: u64, last: u64 },
}

/// The handle that the writer holds.
#[derive(Debug)]
pub(crate) struct Maintenance {
    tasks: Option<Sender<Task>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Maintenance {
    pub(crate) fn ask(&self, task: Task) {
        if let Some(tasks) = &self.tasks {
            let _ = tasks.send(task);
        }
    }

    /// Ends the thread; a segment that is being built is abandoned.
    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the thread.
pub(crate) fn start(options: &JournalOptions, writer: Sender<Command>) -> Result<Maintenance, JournalError> {
    let (tasks, asked) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let layout = Layout::new(options.root.clone());
    let (clock, stopped) = (Arc::clone(&options.clock), Arc::clone(&stop));
    let thread = std::thread::Builder::new()
        .name("journal-upkeep".to_owned())
        .spawn(move || serve(&layout, clock.as_ref(), &asked, &writer, &stopped))
        .map_err(|e| JournalError::file("start a thread for", &options.root, e))?;
    Ok(Maintenance { tasks: Some(tasks), stop, thread: Some(thread) })
}

fn serve(layout: &Layout, clock: &dyn Clock, asked: &Receiver<Task>, writer: &Sender<Command>, stop: &AtomicBool) {
    while let Ok(task) = asked.recv() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        match task {
            Task::Seal { first, last } => {
                let sealed = db::open_reader(&layout.database())
                    .and_then(|live| segments::build(layout, &live, (first, last), clock.now(), stop));
                let _ = writer.send(Command::Sealed(sealed));
            }
        }
    }
}
