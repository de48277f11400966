//! A caller who showed a certificate of ours.
//!
//! A connection may outlive its certificate: it runs out, or somebody takes it back. So a device is not let in once and for all, but asked who it is for every
//! request and every command, which costs one check of a signature.

use std::fmt;
use std::sync::Arc;

use palyra_identity::{Authority, Principal, Refusal};
use rustls_pki_types::CertificateDer;

/// The other end of a connection, by its certificate.
pub(crate) struct Device {
    authority: Arc<Authority>,
    chain: Vec<CertificateDer<'static>>,
}

impl Device {
    /// Whoever shows these certificates, if they are good now.
    pub(crate) fn new(authority: Arc<Authority>, chain: Vec<CertificateDer<'static>>) -> Result<Self, Refusal> {
        authority.identify(&chain)?;
        Ok(Self { authority, chain })
    }

    /// Whom the certificate stands for, if it still does.
    pub(crate) fn principal(&self) -> Result<Principal, Refusal> {
        self.authority.identify(&self.chain).map(|identity| identity.to_principal())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.authority.identify(&self.chain) {
            Ok(identity) => f.debug_tuple("Device").field(&identity.device).finish(),
            Err(refusal) => f.debug_tuple("Device").field(&refusal).finish(),
        }
    }
}
