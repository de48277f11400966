//! What every command needs: the environment, the state root, the console and a client.

use std::path::{Path, PathBuf};

use palyra_client::{Client, Endpoint, Trust};
use palyra_common::config::ConfigError;
use palyra_common::{Environment, SecretRef, env_vars, paths};

use crate::arguments::EndpointArguments;
use crate::console::Console;
use crate::error::CliError;

/// The surroundings of a command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) console: Console,
    state_root: Result<PathBuf, ConfigError>,
    endpoint: EndpointArguments,
}

impl Context {
    pub(crate) fn of_process(console: Console, endpoint: EndpointArguments) -> Self {
        let environment = Environment::of_process();
        let state_root = paths::state_root(&environment);
        Self { environment, console, state_root, endpoint }
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

    /// A client of the daemon of this state root, or of the one that was named, whether or not it runs.
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        let Some(url) = self.address() else { return Ok(Client::new(Endpoint::unix(self.state_root()?))) };
        let variable = || SecretRef::Env(env_vars::PALYRA_TOKEN.to_owned());
        let given = self.environment.text(env_vars::PALYRA_TOKEN).is_some_and(|token| !token.is_empty());
        let named = self.endpoint.token.clone().or_else(|| given.then(variable));
        if !url.starts_with("https://") {
            // The owner's own token only where no other was given: whoever gives a lesser one means to be no more than that.
            let endpoint = match named {
                Some(reference) => Endpoint::loopback_with(url, reference.resolve(&self.environment)?)?,
                None => Endpoint::loopback(url, self.state_root()?)?,
            };
            return Ok(Client::new(endpoint));
        }
        let token = named.unwrap_or_else(variable).resolve(&self.environment)?;
        let from_environment = || self.environment.text(env_vars::PALYRA_CA_FILE).map(PathBuf::from);
        let trust = self.endpoint.ca_file.clone().or_else(from_environment).map_or(Trust::System, Trust::Authority);
        Ok(Client::new(Endpoint::remote(url, token, &trust)?))
    }

    /// The address that was named, if one was. Then no daemon is ever started for a command.
    pub(crate) fn address(&self) -> Option<&str> {
        let from_environment = || self.environment.text(env_vars::PALYRA_ENDPOINT);
        self.endpoint.endpoint.as_deref().or_else(from_environment).filter(|url| !url.is_empty())
    }
}
