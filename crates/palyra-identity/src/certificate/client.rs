//! What a client holds: its certificate, its key and the authority it trusts, as three files that any TLS library can read.

use std::path::Path;
use std::sync::Arc;

use palyra_common::SecretString;
use rustls::ClientConfig;
use rustls::client::WantsClientCert;

use super::identity::DeviceIdentity;
use super::pem;
use super::tls::{TlsVersions, protocols, provider};
use super::verify::Trust;
use crate::{IdentityError, private_files};

const CERTIFICATE_FILE: &str = "client.pem";
const KEY_FILE: &str = "client.key";
const AUTHORITY_FILE: &str = "ca.pem";

/// A client certificate with its key, and the certificate of the authority.
#[derive(Debug, Clone)]
pub struct ClientCredentials {
    /// Whom it stands for.
    pub identity: DeviceIdentity,
    /// The certificate, in PEM.
    pub certificate_pem: String,
    /// Its key, in PEM.
    pub key_pem: SecretString,
    /// The authority that the server's certificate comes from, in PEM.
    pub authority_pem: String,
}

impl ClientCredentials {
    /// Reads the files of a directory, or nothing where there are none.
    ///
    /// # Errors
    /// When they cannot be read, are not private, or do not belong together.
    pub fn read(directory: &Path) -> Result<Option<Self>, IdentityError> {
        let place = |name: &str| directory.join(name);
        let (Some(certificate_pem), Some(key_pem), Some(authority_pem)) = (
            private_files::read(&place(CERTIFICATE_FILE))?,
            private_files::read(&place(KEY_FILE))?.map(SecretString::new),
            private_files::read(&place(AUTHORITY_FILE))?,
        ) else {
            return Ok(None);
        };
        let path = place(CERTIFICATE_FILE);
        let certificate = pem::certificate(&path, &certificate_pem)?;
        let identity = DeviceIdentity::read(&certificate)
            .map_err(|refusal| IdentityError::Unusable { path, reason: refusal.to_string() })?;
        let credentials = Self { identity, certificate_pem, key_pem, authority_pem };
        // Also checks that the key is the certificate's.
        credentials.client_config(&[], TlsVersions::Tls13Only)?;
        Ok(Some(credentials))
    }

    /// Writes the files. The certificate comes last: a reader that finds it finds the key that belongs to it.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), IdentityError> {
        private_files::ensure_directory(directory)?;
        private_files::replace(&directory.join(AUTHORITY_FILE), &self.authority_pem)?;
        private_files::replace(&directory.join(KEY_FILE), self.key_pem.expose())?;
        private_files::replace(&directory.join(CERTIFICATE_FILE), &self.certificate_pem)
    }

    /// TLS for a client that shows this certificate and trusts this installation's authority alone.
    ///
    /// # Errors
    /// When certificate and key do not belong together.
    pub fn client_config(&self, alpn: &[&[u8]], versions: TlsVersions) -> Result<Arc<ClientConfig>, IdentityError> {
        let certificate = pem::certificate(Path::new(CERTIFICATE_FILE), &self.certificate_pem)?;
        let key = pem::private_key(Path::new(KEY_FILE), self.key_pem.expose())?;
        let builder = trusting(&self.authority_pem, versions)?;
        let mut config = builder.with_client_auth_cert(vec![certificate], key).map_err(IdentityError::tls)?;
        config.alpn_protocols = protocols(alpn);
        Ok(Arc::new(config))
    }
}

/// TLS for a client that has no certificate and trusts one authority alone.
///
/// # Errors
/// When the authority's certificate cannot be read.
pub fn server_only_client_config(
    authority_pem: &str,
    alpn: &[&[u8]],
    versions: TlsVersions,
) -> Result<Arc<ClientConfig>, IdentityError> {
    let mut config = trusting(authority_pem, versions)?.with_no_client_auth();
    config.alpn_protocols = protocols(alpn);
    Ok(Arc::new(config))
}

fn trusting(
    authority_pem: &str,
    versions: TlsVersions,
) -> Result<rustls::ConfigBuilder<ClientConfig, WantsClientCert>, IdentityError> {
    let authority = pem::certificate(Path::new(AUTHORITY_FILE), authority_pem)?;
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(versions.list());
    Ok(builder.map_err(IdentityError::tls)?.with_root_certificates(Trust::in_authority(&authority)?.roots()))
}
