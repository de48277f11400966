//! Secrets for the daemon.
//!
//! [`DaemonSecrets`] reads every reference that can be read today: `env:`, `file:` and `exec:`. It is a crate of its own because
//! commands may be run by the daemon and by nothing else: whoever does not depend on it cannot run one. `vault:` is refused until
//! there is a vault.

mod command;
mod resolver;

pub use command::{CommandLimits, secret_of_command};
pub use resolver::DaemonSecrets;
