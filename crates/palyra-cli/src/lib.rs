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

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process;

use palyra_common::ExitCode;

use crate::arguments::Arguments;
use crate::console::Console;
use crate::context::Context;
use crate::error::CliError;

/// Runs the command that the process was started with and gives its exit code.
#[must_use]
pub fn main() -> process::ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let arguments = match Arguments::read(&words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error, &words),
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

fn refuse(error: &clap::Error, words: &[OsString]) -> process::ExitCode {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let console = Console::of_process(usage::wanted_format(&words));
    let code = match usage::refusal(error, &words) {
        Some(refusal) => finish(&console, Err(refusal)),
        None => match error.print().and_then(|()| io::stdout().flush()) {
            // Help that was not asked for is a usage error.
            Ok(()) if error.use_stderr() => ExitCode::Validation,
            Ok(()) => ExitCode::Ok,
            Err(source) => finish(&console, Err(CliError::Output { source })),
        },
    };
    process::ExitCode::from(code as u8)
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
