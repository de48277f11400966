//! The daemon's own certificate: kept in one file with its key, and exchanged under running listeners when it is renewed.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use palyra_common::Timestamp;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::ServerName;
use webpki::EndEntityCert;

use super::issue::{Signer, generate_key, server_certificate};
use super::pem;
use super::tls::provider;
use super::verify::{Purpose, Trust};
use crate::{IdentityError, private_files};

/// What listeners serve; renewing replaces it for the next handshake.
#[derive(Debug)]
pub(crate) struct ServerCertificate(RwLock<Arc<CertifiedKey>>);

impl ServerCertificate {
    pub(crate) fn new(certified: CertifiedKey) -> Self {
        Self(RwLock::new(Arc::new(certified)))
    }

    pub(crate) fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, certified: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Reads the certificate that is kept, if it can go on being used; a broken file is simply replaced, because a new one costs nothing.
pub(crate) fn kept(
    path: &Path,
    trust: &Trust,
    names: &[ServerName<'_>],
    until: Timestamp,
) -> Result<Option<CertifiedKey>, IdentityError> {
    let Some(text) = private_files::read(path)? else { return Ok(None) };
    let certified = match (pem::certificate(path, &text), pem::private_key(path, &text)) {
        (Ok(certificate), Ok(key)) => CertifiedKey::from_der(vec![certificate], key, &provider()).ok(),
        _ => None,
    };
    Ok(certified.filter(|certified| is_good(certified, trust, names, until)))
}

/// Whether a certificate still holds at an instant, for all names.
pub(crate) fn is_good(certified: &CertifiedKey, trust: &Trust, names: &[ServerName<'_>], until: Timestamp) -> bool {
    let Some(certificate) = certified.cert.first() else { return false };
    let names_all = EndEntityCert::try_from(certificate)
        .is_ok_and(|parsed| names.iter().all(|name| parsed.verify_is_valid_for_subject_name(name).is_ok()));
    names_all && trust.check(certificate, &[], Purpose::Server, until).is_ok()
}

/// Makes a certificate with a new key and keeps it.
pub(crate) fn make(
    path: &Path,
    signer: &Signer,
    names: &[ServerName<'_>],
    life: Duration,
    now: Timestamp,
) -> Result<CertifiedKey, IdentityError> {
    let key = generate_key()?;
    let certificate = server_certificate(signer, &key, names, life, now)?;
    let text = format!("{}{certificate}", key.serialize_pem());
    private_files::replace(path, &text)?;
    let parsed = (pem::certificate(path, &text)?, pem::private_key(path, &text)?);
    CertifiedKey::from_der(vec![parsed.0], parsed.1, &provider()).map_err(IdentityError::tls)
}
