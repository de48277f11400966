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
mod numbers;
mod reference;
mod render;
mod resolve;
mod usage;

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
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let console = Console::of_process(arguments.output);
    let code = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let result = runtime.block_on(commands::dispatch(
                arguments.command,
                &Context::of_process(console.clone(), arguments.endpoint),
            ));
            // A thread may still be waiting for the keyboard; it must not keep the process alive.
            runtime.shutdown_background();
            result
        }
        Err(source) => Err(CliError::Runtime { source }),
    };
    process::ExitCode::from(finish(&console, code) as u8)
}

fn refuse(error: &clap::Error) -> process::ExitCode {
    let Some(refusal) = usage::refusal(error) else { error.exit() };
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let console = Console::of_process(usage::wanted_format(words));
    process::ExitCode::from(finish(&console, Err(refusal)) as u8)
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
