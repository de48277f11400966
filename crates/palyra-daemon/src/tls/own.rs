//! A certificate that the operator brought, for callers who do not know this installation's authority.
//!
//! It is only shown: callers' certificates are still this installation's. The files are read again every hour, because others renew them; what cannot be read
//! then changes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use palyra_common::{ErrorCategory, SecretString, StableErrorEnvelope};
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::DaemonError;

const CERTIFICATE: &str = "http.tls_certificate";
const KEY: &str = "http.tls_key";

/// The certificate in use, and where it comes from.
#[derive(Debug)]
pub(super) struct OwnCertificate {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
}

impl OwnCertificate {
    /// Reads the files; they must hold a certificate and the key that belongs to it.
    pub(super) fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, DaemonError> {
        let current = RwLock::new(Arc::new(certified(&certificate, &key)?));
        Ok(Self { certificate, key, current })
    }

    /// Reads the files again; handshakes from now on show what is in them.
    pub(super) fn reload(&self) -> Result<(), DaemonError> {
        let read = Arc::new(certified(&self.certificate, &self.key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// What handshakes show now.
    pub(super) fn shown(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for OwnCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}

fn certified(certificate: &Path, key: &Path) -> Result<CertifiedKey, DaemonError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text(CERTIFICATE, certificate)?.as_bytes()).collect();
    let chain = match chain {
        Ok(chain) if !chain.is_empty() => chain,
        _ => return Err(wrong(CERTIFICATE, certificate, "it contains no PEM certificates")),
    };
    let mode = fs::metadata(key).map_err(|error| wrong(KEY, key, error))?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(wrong(KEY, key, format!("other users can read it (mode {:o})", mode & 0o7777)));
    }
    let text = SecretString::new(text(KEY, key)?);
    let private = PrivateKeyDer::from_pem_slice(text.expose().as_bytes())
        .map_err(|_| wrong(KEY, key, "it contains no PEM private key"))?;
    CertifiedKey::from_der(chain, private, &ring::default_provider()).map_err(|error| wrong(KEY, key, error))
}

fn text(setting: &str, path: &Path) -> Result<String, DaemonError> {
    fs::read_to_string(path).map_err(|error| wrong(setting, path, error))
}

fn wrong(setting: &str, path: &Path, reason: impl std::fmt::Display) -> DaemonError {
    let message = format!("`{}`: {reason}", path.display());
    let reason = StableErrorEnvelope::new("config_invalid_value", ErrorCategory::Validation, message)
        .hint("use a PEM certificate with its chain, and its private key in PEM");
    DaemonError::config(setting, &reason)
}
