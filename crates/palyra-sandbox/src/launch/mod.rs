//! How a plan is carried out.
//!
//! The daemon's side is [`Sandbox`] and [`Child`]. Behind them three kinds of processes, each forked from the one before: the launcher (one
//! per daemon), a supervisor (one per sandbox, outside it) and, in tier C, the first process (inside, process 1 of its namespace). Messages
//! between them are in `wire`; what each asks of the kernel while setting up goes through the `Syscall` trait.

mod bpf;
mod child;
mod disk;
mod first;
pub(crate) mod group;
mod holdings;
mod kernel;
mod launcher;
mod memory;
mod memory_files;
mod mode;
mod namespace;
mod restrict;
mod sandbox;
mod scratch;
mod setup;
mod sockets;
mod streams;
mod supervised;
mod supervisor;
mod sweep;
mod syscall;
mod tree;
mod watch;
mod wire;

#[cfg(test)]
mod double;

pub use child::Child;
pub use launcher::main_if_asked;
pub use sandbox::{LauncherOptions, Sandbox, host_facts};
pub use streams::{Stdio, Stream};

pub(crate) use bpf::compile;
pub(crate) use kernel::Kernel;
pub(crate) use namespace::{linux_flag, user_namespace};

pub(crate) use setup::{Context, Failure, carry_out};
pub(crate) use syscall::Syscall;
