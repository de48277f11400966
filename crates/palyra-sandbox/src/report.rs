//! How a process ended, as callers see it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a process tree ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The first process ended by itself; what it left behind was killed.
    Finished,
    /// The time was over.
    WallClock,
    /// The processor time was used up.
    Cpu,
    /// More memory was needed than granted.
    Memory,
    /// More processes or threads ran than granted, where the kernel could not refuse them one by one.
    Processes,
    /// More was written to disk than granted, in one file or in all.
    Disk,
    /// It was killed on request.
    Killed,
    /// The launcher or the daemon went away.
    Abandoned,
}

impl fmt::Display for EndCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finished => "finished",
            Self::WallClock => "wall_clock",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Disk => "disk",
            Self::Killed => "killed",
            Self::Abandoned => "abandoned",
        })
    }
}

/// How the first process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
}

impl Exit {
    /// Reads the raw status of a wait.
    #[must_use]
    pub fn from_raw(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Code((status >> 8) & 0xff),
            signal => Self::Signal(signal),
        }
    }

    /// Whether it ended with code 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

/// What a tree used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// From start to end.
    pub wall: Duration,
    /// Processor time of the tree.
    pub cpu: Duration,
    /// Largest memory use: of the tree where there is a control group, else of its largest process or sampled.
    pub memory_bytes: u64,
    /// Most processes and threads seen at one time; sampled.
    pub processes: u32,
    /// Bytes written to disk; sampled.
    pub written_bytes: u64,
}

/// How a process tree ended and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// How the first process ended.
    pub exit: Exit,
    /// Why the tree ended.
    pub cause: EndCause,
    /// What it used.
    pub usage: Usage,
}

/// Sockets of the host that lay in shared directories and are out of the guest's reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenSockets {
    /// The first of them.
    pub paths: Vec<PathBuf>,
    /// How many there are besides.
    pub more: usize,
    /// Whether there was too much to search, so that the guest can make no Unix sockets but pairs.
    pub unix_sockets_refused: bool,
}
