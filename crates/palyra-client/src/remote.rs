//! A daemon on another machine, over HTTPS.
//!
//! A token leaves this machine here, so nothing is sent before the other side has proven its name: by a certificate that the system trusts, or one of the authority that the
//! caller names. There is no way to leave that out, and no plain HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use palyra_common::SecretString;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::ClientError;

/// What port an address without one means.
const HTTPS: u16 = 443;

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system trusts.
    System,
    /// Those of the authority in this file (PEM), and no others; a daemon has its own in `identity/ca.pem` of its state root.
    Authority(PathBuf),
}

/// A daemon on another machine, and how to be let in.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Its name or address.
    name: ServerName<'static>,
    host: String,
    port: u16,
    token: SecretString,
    tls: Arc<ClientConfig>,
}

impl Remote {
    /// The daemon at `https://HOST[:PORT]`.
    ///
    /// # Errors
    /// When that is no such address, or the trusted certificates cannot be read.
    pub fn new(url: &str, token: SecretString, trust: &Trust) -> Result<Self, ClientError> {
        let invalid = || ClientError::InvalidAddress { value: url.to_owned() };
        let rest = url.strip_prefix("https://").ok_or_else(invalid)?.trim_end_matches('/');
        let authority: http::uri::Authority = rest.parse().map_err(|_| invalid())?;
        if rest.contains('@') {
            return Err(invalid());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|_| invalid())?;
        let mut tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("TLS", error.to_string()))?
            .with_root_certificates(roots(trust)?)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { name, host, port: authority.port_u16().unwrap_or(HTTPS), token, tls: Arc::new(tls) })
    }

    /// What goes into the `Host` header.
    pub(crate) fn host(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}", self.port)
    }

    /// The value of the `Authorization` header.
    pub(crate) fn authorization(&self) -> String {
        format!("Bearer {}", self.token.expose())
    }

    pub(crate) async fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect((self.host.as_str(), self.port)).await
    }

    /// Lets the other side prove its name.
    pub(crate) async fn shake_hands(&self, stream: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        TlsConnector::from(Arc::clone(&self.tls)).connect(self.name.clone(), stream).await
    }
}

fn roots(trust: &Trust) -> Result<RootCertStore, ClientError> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::System => {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                let reason = found.errors.first().map_or("it contains no certificate".to_owned(), ToString::to_string);
                return Err(unusable("the system's certificate store", reason));
            }
        }
        Trust::Authority(path) => {
            for certificate in read(path)? {
                // One that is skipped in silence is one that somebody believes to be trusted.
                roots.add(certificate).map_err(|error| unusable(path.display(), error.to_string()))?;
            }
        }
    }
    Ok(roots)
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let wrong = |reason: String| unusable(path.display(), reason);
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("it contains no certificate".to_owned()));
    }
    Ok(found)
}

fn unusable(place: impl std::fmt::Display, reason: String) -> ClientError {
    ClientError::TrustUnusable { place: place.to_string(), reason }
}

#[cfg(test)]
mod tests {
    use palyra_common::ToStableError as _;

    use super::*;

    fn remote(url: &str, trust: &Trust) -> Result<Remote, String> {
        Remote::new(url, SecretString::new("t".to_owned()), trust).map_err(|error| error.to_stable().code)
    }

    #[test]
    fn only_https_and_readable_authorities_are_taken() {
        let directory = tempfile::tempdir().unwrap();
        let nonsense = directory.path().join("ca.pem");
        std::fs::write(&nonsense, "nonsense").unwrap();
        let unreadable = Trust::Authority(nonsense);
        for bad in [
            "",
            "https://",
            "http://agents.example",
            "https://a@agents.example",
            "https://a b",
            "ftp://x",
            "https://x/y",
        ] {
            assert_eq!(remote(bad, &unreadable).unwrap_err(), "daemon_address_invalid", "{bad}");
        }
        assert_eq!(remote("https://agents.example", &unreadable).unwrap_err(), "trust_unusable");
        let missing = Trust::Authority(directory.path().join("none.pem"));
        assert_eq!(remote("https://agents.example:7142", &missing).unwrap_err(), "trust_unusable");
    }
}
