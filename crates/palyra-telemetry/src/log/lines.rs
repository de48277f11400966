//! Where a finished line goes. Standard error is written at once; the file has a thread of its own, so that a slow disk holds up nobody.

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::fmt::MakeWriter;

use super::LogFile;
use super::file::FileSink;
use crate::error::TelemetryError;
use crate::metrics::Metrics;

/// Every place that gets lines.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    stderr: Stderr,
    file: Option<FileSink>,
    metrics: Metrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stderr {
    Written,
    /// Standard error is the log file itself, as when the command line started the daemon: a line there is a line twice.
    SameFile,
}

impl Lines {
    pub(crate) fn open(file: Option<&LogFile>, metrics: &Metrics) -> Result<Self, TelemetryError> {
        let file = file.map(|options| FileSink::open(options, metrics.clone())).transpose()?;
        let same = file.as_ref().is_some_and(|file| file.is_same_as(&io::stderr()));
        let stderr = if same { Stderr::SameFile } else { Stderr::Written };
        Ok(Self { stderr, file, metrics: metrics.clone() })
    }

    /// Whether lines may be coloured: only if a person is the one reader.
    pub(crate) fn coloured(&self) -> bool {
        self.file.is_none() && io::stderr().is_terminal()
    }

    /// Waits until every line so far is where it belongs, or for a second.
    pub(crate) fn flush(&self) {
        if let Some(file) = &self.file {
            file.flush();
        }
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = LineWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(self)
    }
}

/// Takes one whole line per call of `write`.
pub(crate) struct LineWriter<'a>(&'a Lines);

impl Write for LineWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.stderr == Stderr::Written && io::stderr().lock().write_all(line).is_err() {
            self.0.metrics.log_lines_dropped(1);
        }
        if let Some(file) = &self.0.file {
            file.send(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
