//! The thread that owns the log file, and the bounded queue to it.
//!
//! Policy of the queue: whoever logs never waits. A line that finds the queue full is dropped and counted, and so is a line that the disk does not take; once
//! lines can be written again, one of them says how many are missing. Lines still in the queue when the process is killed are lost.

use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use super::LogFile;
use super::rotate::RotatingFile;
use crate::error::TelemetryError;
use crate::metrics::Metrics;

/// Lines that may wait for the disk: a burst of a second at ten thousand a second.
const QUEUE: usize = 8_192;
/// Bytes that are written at once.
const BATCH_BYTES: usize = 256 * 1024;
/// How long a flush may take.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

enum Message {
    Line(Box<[u8]>),
    Flush(SyncSender<()>),
}

/// The way to the thread that writes; clones lead to the same one, which ends after the last of them.
#[derive(Debug, Clone)]
pub(crate) struct FileSink {
    sender: SyncSender<Message>,
    identity: (u64, u64),
    metrics: Metrics,
}

impl FileSink {
    pub(crate) fn open(options: &LogFile, metrics: Metrics) -> Result<Self, TelemetryError> {
        let unusable = |source| TelemetryError::LogFileUnusable { path: options.path.clone(), source };
        let file = RotatingFile::open(options).map_err(unusable)?;
        let identity = file.identity().map_err(unusable)?;
        let (sender, receiver) = mpsc::sync_channel(QUEUE);
        let writer = Writer { file, metrics: metrics.clone(), missing: 0 };
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&receiver)).map_err(unusable)?;
        Ok(Self { sender, identity, metrics })
    }

    /// Whether something open is the file that this sink began with.
    pub(crate) fn is_same_as(&self, open: &impl AsFd) -> bool {
        rustix::fs::fstat(open).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    pub(crate) fn send(&self, line: Box<[u8]>) {
        if self.sender.try_send(Message::Line(line)).is_err() {
            self.metrics.log_lines_dropped(1);
        }
    }

    pub(crate) fn flush(&self) {
        let (done, answer) = mpsc::sync_channel(1);
        // The queue may be full of lines for a disk that hangs; then there is nothing to wait for.
        if self.sender.try_send(Message::Flush(done)).is_ok() {
            let _ = answer.recv_timeout(FLUSH_PATIENCE);
        }
    }
}

struct Writer {
    file: RotatingFile,
    metrics: Metrics,
    /// Lines that the disk did not take since it last took one.
    missing: u64,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>) {
        let mut lines = Vec::new();
        loop {
            let Ok(first) = receiver.recv() else { return };
            let mut flushed = None;
            let mut bytes = 0;
            let mut next = Some(first);
            while let Some(message) = next.take() {
                match message {
                    Message::Line(line) => {
                        bytes += line.len();
                        lines.push(line);
                    }
                    Message::Flush(done) => flushed = Some(done),
                }
                if bytes < BATCH_BYTES && flushed.is_none() {
                    next = receiver.try_recv().ok();
                }
            }
            self.write(&mut lines);
            if let Some(done) = flushed {
                let _ = done.try_send(());
            }
        }
    }

    fn write(&mut self, lines: &mut Vec<Box<[u8]>>) {
        let offered = lines.len();
        let written = self.file.write_lines(lines);
        lines.clear();
        let lost = u64::try_from(offered - written.min(offered)).unwrap_or_default();
        self.metrics.log_lines_dropped(lost);
        if written > 0 && self.missing > 0 {
            let missing = std::mem::take(&mut self.missing);
            tracing::warn!(missing, "log lines are missing here: writing to disk failed");
        }
        self.missing += lost;
    }
}
