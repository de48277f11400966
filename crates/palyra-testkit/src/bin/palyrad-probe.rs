//! The daemon with probe tools: the composition of `palyrad` itself, plus tools whose effects a test counts. For tests only.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use palyra_daemon::Composition;
use palyra_testkit::probe::{self, ProbeDecider};

fn main() -> ExitCode {
    // First of all: the daemon executes itself to become the launcher of its sandboxes, which needs nothing of what follows.
    palyra_daemon::become_launcher_if_asked();
    palyra_models::install_crypto_provider();
    let Some(socket) = std::env::var_os(probe::SOCKET_VARIABLE) else {
        eprintln!("error: {} is not set", probe::SOCKET_VARIABLE);
        return ExitCode::from(2);
    };
    let tools = match probe::tools(PathBuf::from(socket)) {
        Ok(tools) => tools,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let decider = match ProbeDecider::new() {
        Ok(decider) => Arc::new(decider),
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let composition = Composition::default().with_decider(decider);
    tools.into_iter().fold(composition, Composition::with_tool).main()
}
