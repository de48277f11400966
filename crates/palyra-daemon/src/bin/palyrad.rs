//! `palyrad`, the daemon as it is shipped: built-in tools, the workspace decider, the configured provider.

use std::process::ExitCode;

use palyra_daemon::Composition;

fn main() -> ExitCode {
    // Before any thread exists: a provider that needs TLS finds its cryptography in place.
    palyra_models::install_crypto_provider();
    Composition::default().main()
}
