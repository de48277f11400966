//! Reading the PEM of this crate's own files.

use std::path::Path;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::IdentityError;

/// The one certificate of a text.
pub(crate) fn certificate(path: &Path, text: &str) -> Result<CertificateDer<'static>, IdentityError> {
    let unusable = |reason: &str| IdentityError::Unusable { path: path.to_owned(), reason: reason.to_owned() };
    let mut found = CertificateDer::pem_slice_iter(text.as_bytes());
    match (found.next(), found.next()) {
        (Some(Ok(certificate)), None) => Ok(certificate),
        (None, _) => Err(unusable("it contains no certificate")),
        _ => Err(unusable("it must contain exactly one certificate in PEM")),
    }
}

/// The private key of a text.
pub(crate) fn private_key(path: &Path, text: &str) -> Result<PrivateKeyDer<'static>, IdentityError> {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| IdentityError::Unusable {
        path: path.to_owned(),
        reason: "it contains no private key in PEM".to_owned(),
    })
}
