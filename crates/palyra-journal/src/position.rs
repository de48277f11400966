//! Where in the state something is wrong.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A place that a finding points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Position {
    /// One record.
    Record {
        /// Its number in the log.
        seq: u64,
    },
    /// A run of consecutive records.
    Records {
        /// Number of the first one.
        first: u64,
        /// Number of the last one.
        last: u64,
    },
    /// The checkpoint that covers this many records.
    Checkpoint {
        /// How many records it covers.
        count: u64,
    },
    /// A row of a table that is derived from the log.
    Table {
        /// Name of the table.
        table: String,
        /// Which row, counted from 1 in the order of its columns; zero for the table as a whole.
        row: u64,
    },
    /// A file as a whole.
    File {
        /// Its path, relative to the state root where possible.
        file: PathBuf,
    },
    /// A place in a file.
    Offset {
        /// Its path, relative to the state root where possible.
        file: PathBuf,
        /// Bytes from its beginning.
        offset: u64,
    },
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record { seq } => write!(f, "record {seq}"),
            Self::Records { first, last } => write!(f, "records {first} to {last}"),
            Self::Checkpoint { count } => write!(f, "checkpoint {count}"),
            Self::Table { table, row: 0 } => write!(f, "table `{table}`"),
            Self::Table { table, row } => write!(f, "row {row} of table `{table}`"),
            Self::File { file } => write!(f, "file `{}`", file.display()),
            Self::Offset { file, offset } => write!(f, "byte {offset} of file `{}`", file.display()),
        }
    }
}
