//! `palyrad`, the daemon as it is shipped: built-in tools, the workspace decider, the configured provider.

use std::process::ExitCode;

use palyra_daemon::Composition;

fn main() -> ExitCode {
    // First of all: the daemon executes itself to become the launcher of its sandboxes, which needs nothing of what follows.
    palyra_daemon::become_launcher_if_asked();
    // Before any thread exists: a provider that needs TLS finds its cryptography in place.
    palyra_models::install_crypto_provider();
    Composition::default().main()
}
