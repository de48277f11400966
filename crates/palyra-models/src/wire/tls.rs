//! The cryptography behind TLS.

use rustls::crypto::{CryptoProvider, ring};

/// Makes *ring* the process-wide cryptography of TLS unless something has been installed already. Idempotent; every
/// client built here calls it, and a `main` may call it earlier.
pub fn install_crypto_provider() {
    if CryptoProvider::get_default().is_none() {
        // Losing a race to another thread leaves a provider installed, which is all that is wanted.
        let _ = ring::default_provider().install_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installing_twice_is_no_trouble() {
        install_crypto_provider();
        install_crypto_provider();
        assert!(CryptoProvider::get_default().is_some());
    }
}
