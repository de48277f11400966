//! What Palyra's own tests are built from. Product code never depends on this crate.
//!
//! - [`TestDaemon`]: a real daemon process on a state of its own, to be killed, stopped and started again;
//! - [`TestContext`]: runs the real `palyra` command and keeps what it printed;
//! - [`Person`]: follows a run and answers its questions, as somebody at the console would;
//! - [`probe`]: tools whose effects are counted by a [`Receiver`] in the test, and the daemon that has them;
//! - [`FailingStore`]: a journal that fails when told to;
//! - [`IoFaults`]: system calls of a daemon that fail when told to;
//! - [`oracles`]: what must hold whatever bytes a decoder is given, and [`generators`] of bytes worth trying; the fuzz targets are made of both;
//! - [`model_server`]: an OpenAI-compatible server that follows a script;
//! - [`Filters`]: what makes output comparable between runs.
//!
//! Functions here return `anyhow` errors: a test wants the story, not a type to match on.

pub mod generators;
pub mod oracles;
pub mod probe;

mod binaries;
mod cli;
mod daemon;
mod faults;
mod filters;
mod io_faults;
mod person;
mod random;
mod receiver;
mod replay;
mod strace;
mod tree;

pub use palyra_common::FixedClock;
pub use palyra_models::testing as model_server;

pub use binaries::Binary;
pub use cli::{Run, TestContext};
pub use daemon::{DaemonOptions, Exit, Model, TestDaemon};
pub use faults::FailingStore;
pub use filters::Filters;
pub use io_faults::{Calls, IoFaults};
pub use person::{Answers, Followed, Person};
pub use random::Random;
pub use receiver::{Delivery, Receiver};
pub use replay::assert_all_runs_replay;
pub use strace::{FaultDuration, Kill, SyscallFault, Traced, strace_is_usable};
pub use tree::{Entry, Tree, copy_tree};
