//! The command line of the daemon: where its state and its configuration are. Everything else is configuration.

use std::path::PathBuf;

use clap::Parser;
use clap::error::ErrorKind;
use palyra_common::{BuildInfo, Environment, env_vars};

use crate::error::DaemonError;

/// The daemon that runs agent tasks.
///
/// It serves the Unix socket `palyrad.sock` in its state root and, unless switched off, HTTP on the loopback interface.
/// `palyra run` starts it automatically; in the foreground it logs to standard error and shuts down cleanly on Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "palyrad", version = version(), after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory that holds all state; overrides PALYRA_STATE_ROOT.
    #[arg(long, value_name = "DIR")]
    state_root: Option<PathBuf>,
    /// Configuration file; overrides PALYRA_CONFIG.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  palyrad                              state in ~/.local/state/palyra
  palyrad --state-root /tmp/try        state somewhere else
  PALYRA_LOG_LEVEL=debug palyrad       every configuration key has a variable";

fn version() -> &'static str {
    static LINE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    LINE.get_or_init(|| BuildInfo::current().line())
}

impl Args {
    /// The arguments of this process. Help and version are printed here, and the process ends.
    pub(crate) fn of_process() -> Result<Self, DaemonError> {
        Self::try_parse().map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => error.exit(),
            _ => DaemonError::CommandLine { reason: first_paragraph(&error.render().to_string()) },
        })
    }

    /// The environment as these arguments change it.
    pub(crate) fn apply(self, mut environment: Environment) -> Environment {
        if let Some(root) = self.state_root {
            environment = environment.with(env_vars::PALYRA_STATE_ROOT, root);
        }
        if let Some(config) = self.config {
            environment = environment.with(env_vars::PALYRA_CONFIG, config);
        }
        environment
    }
}

/// What is wrong, without the parser's tips and usage: the command has two options, and the hint names both.
fn first_paragraph(rendered: &str) -> String {
    let first = rendered.split("\n\n").next().unwrap_or_default();
    let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
    first.strip_prefix("error: ").unwrap_or(&first).replace('\'', "`")
}
