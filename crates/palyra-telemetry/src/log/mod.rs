//! The log: which lines there are, how they look and where they go.
//!
//! A line is formatted once and goes to standard error and, where asked for, to a file that rotates. A line that cannot be written is dropped and counted: a
//! daemon does not stop working because its log cannot be kept.

mod file;
mod filter;
mod lines;
mod rotate;

use std::path::PathBuf;

use palyra_common::config::{LogFormat, LogLevel};

pub(crate) use filter::{LevelHandle, level_filter};
pub(crate) use lines::Lines;

/// How the daemon logs.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// How much is logged.
    pub level: LogLevel,
    /// How lines look.
    pub format: LogFormat,
    /// A file that gets every line besides standard error.
    pub file: Option<LogFile>,
}

/// A log file that rotates: `palyrad.log`, then `palyrad.log.1` and so on, the highest number being the oldest.
#[derive(Debug, Clone)]
pub struct LogFile {
    /// The file that is written to. It and its directory are made if they are missing, for their owner alone.
    pub path: PathBuf,
    /// Bytes after which the file is set aside; a single longer line still stays whole.
    pub max_bytes: u64,
    /// How many files that were set aside are kept; at least one is.
    pub keep: u32,
}
