//! `palyra`, the command line.
//!
//! A thin surface: each command parses its arguments, calls the daemon through `palyra-client` and prints the answer. What
//! runs without a daemon is configuration, the version, completions, and checking or restoring a journal.

mod arguments;
mod commands;
mod console;
mod context;
mod error;
mod launcher;
mod reference;
mod render;
mod resolve;

pub use reference::reference;

use std::process;

use clap::Parser as _;
use palyra_common::ExitCode;

use crate::arguments::Arguments;
use crate::console::Console;
use crate::context::Context;
use crate::error::CliError;

/// Runs the command that the process was started with and gives its exit code.
#[must_use]
pub fn main() -> process::ExitCode {
    // clap prints its own errors, with suggestions, and exits with 2: the code for validation.
    let arguments = Arguments::parse();
    let console = Console::of_process(arguments.output);
    let code = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let result = runtime.block_on(commands::dispatch(arguments.command, &Context::of_process(console.clone())));
            // A thread may still be waiting for the keyboard; it must not keep the process alive.
            runtime.shutdown_background();
            result
        }
        Err(source) => Err(CliError::Runtime { source }),
    };
    process::ExitCode::from(finish(&console, code) as u8)
}

fn finish(console: &Console, result: Result<ExitCode, CliError>) -> ExitCode {
    match result {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(CliError::Output { source }) if source.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::Ok,
        Err(error) => {
            let envelope = error.into_envelope();
            console.error(&envelope);
            envelope.exit_code()
        }
    }
}
