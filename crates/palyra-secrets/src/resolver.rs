//! One resolver for all that the daemon may read.

use palyra_common::{Environment, SecretError, SecretRef, SecretResolver, SecretString};

use crate::command::{CommandLimits, secret_of_command};

/// Secrets in an environment, in files, and in what commands print.
#[derive(Debug, Clone)]
pub struct DaemonSecrets {
    environment: Environment,
    limits: CommandLimits,
}

impl DaemonSecrets {
    /// Reads from this environment; commands see it and run in its directory.
    #[must_use]
    pub fn new(environment: Environment) -> Self {
        Self { environment, limits: CommandLimits::default() }
    }

    /// The same with other limits for commands.
    #[must_use]
    pub fn with_limits(mut self, limits: CommandLimits) -> Self {
        self.limits = limits;
        self
    }
}

impl SecretResolver for DaemonSecrets {
    fn resolve(&self, reference: &SecretRef) -> Result<SecretString, SecretError> {
        match reference {
            SecretRef::Exec(line) => secret_of_command(line, &self.environment, self.limits),
            SecretRef::Env(_) | SecretRef::File(_) | SecretRef::Vault { .. } => reference.resolve(&self.environment),
        }
    }
}
