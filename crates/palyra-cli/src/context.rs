//! What every command needs: the environment, the state root, the console and a client.

use std::path::{Path, PathBuf};

use palyra_client::{Client, Endpoint};
use palyra_common::config::ConfigError;
use palyra_common::{Environment, paths};

use crate::console::Console;
use crate::error::CliError;

/// The surroundings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) console: Console,
    state_root: Result<PathBuf, ConfigError>,
}

impl Context {
    pub(crate) fn of_process(console: Console) -> Self {
        let environment = Environment::of_process();
        let state_root = paths::state_root(&environment);
        Self { environment, console, state_root }
    }

    /// Where all state lives. Commands that need none work even where no such place can be found.
    pub(crate) fn state_root(&self) -> Result<&Path, CliError> {
        match &self.state_root {
            Ok(path) => Ok(path),
            Err(error) => Err(error.clone().into()),
        }
    }

    /// The daemon's log.
    pub(crate) fn log_file(&self) -> Result<PathBuf, CliError> {
        Ok(self.state_root()?.join("logs").join("palyrad.log"))
    }

    /// A client of the daemon of this state root, whether or not it runs.
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        Ok(Client::new(Endpoint::unix(self.state_root()?)))
    }
}
