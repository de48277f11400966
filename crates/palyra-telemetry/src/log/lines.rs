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
    colours: Colours,
    file: Option<FileSink>,
    metrics: Metrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stderr {
    Written,
    /// Standard error is the log file itself, as when the command line started the daemon: a line there is a line twice.
    SameFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colours {
    OnTerminal,
    None,
}

impl Lines {
    pub(crate) fn open(file: Option<&LogFile>, metrics: &Metrics) -> Result<Self, TelemetryError> {
        let file = file.map(|options| FileSink::open(options, metrics.clone())).transpose()?;
        let same = file.as_ref().is_some_and(|file| file.is_same_as(&io::stderr()));
        let stderr = if same { Stderr::SameFile } else { Stderr::Written };
        let colours = if io::stderr().is_terminal() { Colours::OnTerminal } else { Colours::None };
        Ok(Self { stderr, colours, file, metrics: metrics.clone() })
    }

    /// Whether lines are coloured: only where a person reads them.
    pub(crate) fn coloured(&self) -> bool {
        self.colours == Colours::OnTerminal
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
            match self.0.colours {
                Colours::None => file.send(line.into()),
                Colours::OnTerminal => file.send(without_colours(line)),
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The line without the sequences that colour it. They are the only ones in it: what comes from elsewhere was escaped when the line was made.
fn without_colours(line: &[u8]) -> Box<[u8]> {
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line.iter();
    while let Some(byte) = rest.next() {
        if *byte == b'\x1b' {
            rest.find(|byte| **byte == b'm');
        } else {
            plain.push(*byte);
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_no_colours() {
        let line = b"\x1b[2m2026\x1b[0m \x1b[32m INFO\x1b[0m said \x1b[3mwho\x1b[0m\x1b[2m=\x1b[0mme\n";
        assert_eq!(&*without_colours(line), b"2026  INFO said who=me\n");
        assert_eq!(&*without_colours(b"cut \x1b[31"), b"cut ");
    }
}
