//! TLS on both sides: trusted connections to hosts, and the certificate authority that exists for one sandbox only.
//!
//! Towards hosts every certificate is verified, against the system's store or against what the operator names; there is no way to
//! switch that off. Towards a sandbox whose grant asks for it, the proxy ends TLS with certificates of an authority whose key is made when the
//! proxy starts, lives in memory alone and dies with the proxy. Only the certificate leaves this file, for the sandbox to trust.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use palyra_common::{Clock, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::EgressError;
use crate::host::Host;

/// Most hosts whose certificates are kept; a guest that asks for more has them made again.
const CERTIFICATE_LIMIT: usize = 256;

/// Whom to trust.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// The system's certificate store.
    #[default]
    System,
    /// The system's store and the certificates of this PEM file.
    SystemAnd(PathBuf),
    /// Only the certificates of this PEM file.
    File(PathBuf),
    /// Only the certificates in this PEM text.
    Pem(String),
}

/// The configuration of connections to hosts, made when it is first needed where only the system's store is asked for.
pub(crate) struct Trusted {
    trust: Trust,
    config: OnceLock<Arc<ClientConfig>>,
}

impl Trusted {
    /// Reads the operator's certificates at once, so that a wrong file is reported at the start.
    pub(crate) fn new(trust: Trust) -> Result<Self, EgressError> {
        let trusted = Self { trust, config: OnceLock::new() };
        if !matches!(trusted.trust, Trust::System) {
            trusted.config()?;
        }
        Ok(trusted)
    }

    fn config(&self) -> Result<Arc<ClientConfig>, EgressError> {
        if let Some(config) = self.config.get() {
            return Ok(Arc::clone(config));
        }
        let mut roots = RootCertStore::empty();
        match &self.trust {
            Trust::System => add_system(&mut roots)?,
            Trust::SystemAnd(path) => {
                add_system(&mut roots)?;
                add_file(&mut roots, path)?;
            }
            Trust::File(path) => add_file(&mut roots, path)?,
            Trust::Pem(text) => add_pem(&mut roots, "the given text", text.as_bytes())?,
        }
        let unusable = |error: rustls::Error| EgressError::TrustUnusable {
            place: "the TLS library".into(),
            reason: error.to_string(),
        };
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // Only what this crate can read: a host that answers in HTTP/2 could not be inspected.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::clone(self.config.get_or_init(|| Arc::new(config))))
    }

    /// Opens a verified connection over a socket that is already pinned to a checked address.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        host: &Host,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, EgressError> {
        let failed = |reason: String| EgressError::TlsFailed { host: host.to_string(), reason };
        let name = match host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(|error| failed(error.to_string()))?,
            Host::Address(address) => ServerName::from(*address),
        };
        let connector = TlsConnector::from(self.config()?);
        tokio::time::timeout(limit, connector.connect(name, stream))
            .await
            .map_err(|_| EgressError::TimedOut { what: "the TLS handshake", limit })?
            .map_err(|error| failed(error.to_string()))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn add_system(roots: &mut RootCertStore) -> Result<(), EgressError> {
    let found = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let reason = found.errors.first().map_or("it contains no certificate".to_owned(), ToString::to_string);
        return Err(EgressError::TrustUnusable { place: "the system's certificate store".into(), reason });
    }
    Ok(())
}

fn add_file(roots: &mut RootCertStore, path: &std::path::Path) -> Result<(), EgressError> {
    let place = path.display().to_string();
    let pem = std::fs::read(path)
        .map_err(|error| EgressError::TrustUnusable { place: place.clone(), reason: error.to_string() })?;
    add_pem(roots, &place, &pem)
}

/// Every certificate must be readable: one that is skipped in silence is one the operator believes to be trusted.
fn add_pem(roots: &mut RootCertStore, place: &str, pem: &[u8]) -> Result<(), EgressError> {
    let unusable = |reason: String| EgressError::TrustUnusable { place: place.to_owned(), reason };
    let mut added = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        added += 1;
    }
    if added == 0 { Err(unusable("it contains no certificate".to_owned())) } else { Ok(()) }
}

/// The certificate authority of one sandbox. Its keys exist in this process alone and go with it.
pub struct SandboxAuthority {
    pem: String,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    /// One key for all hosts of the sandbox: it never leaves this process either.
    key: KeyPair,
    years: (i32, i32),
    made: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

impl SandboxAuthority {
    pub(crate) fn new(grant: &str, clock: &dyn Clock) -> Result<Self, EgressError> {
        let years = years_around(clock.now());
        Self::make(grant, years).map_err(|error| failed_to_make(&error))
    }

    fn make(grant: &str, years: (i32, i32)) -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params.distinguished_name = named(&format!("Palyra sandbox {}", grant.chars().take(32).collect::<String>()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let authority_key = KeyPair::generate()?;
        let certificate = params.self_signed(&authority_key)?;
        Ok(Self {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            issuer: Issuer::new(params, authority_key),
            key: KeyPair::generate()?,
            years,
            made: Mutex::default(),
        })
    }

    /// The certificate that the sandbox has to trust, in PEM.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The server side of TLS for one host.
    pub(crate) fn server_config(&self, host: &Host) -> Result<Arc<ServerConfig>, EgressError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made.get(host) {
            return Ok(Arc::clone(config));
        }
        let certificate = self.certificate_for(host).map_err(|error| failed_to_make(&error))?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let unusable =
            |error: rustls::Error| EgressError::TlsFailed { host: host.to_string(), reason: error.to_string() };
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate, self.certificate.clone()], key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if made.len() >= CERTIFICATE_LIMIT {
            made.clear();
        }
        let config = Arc::new(config);
        made.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn certificate_for(&self, host: &Host) -> Result<CertificateDer<'static>, rcgen::Error> {
        let name = match host {
            Host::Name(name) => name.clone(),
            Host::Address(IpAddr::V4(address)) => address.to_string(),
            Host::Address(IpAddr::V6(address)) => address.to_string(),
        };
        let mut params = CertificateParams::new(vec![name])?;
        params.distinguished_name = named("Palyra egress proxy");
        params.not_before = date_time_ymd(self.years.0, 1, 1);
        params.not_after = date_time_ymd(self.years.1, 1, 1);
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok(params.signed_by(&self.key, &self.issuer)?.der().clone())
    }
}

fn failed_to_make(error: &rcgen::Error) -> EgressError {
    EgressError::TrustUnusable { place: "the sandbox's certificate authority".into(), reason: error.to_string() }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// The year before and the year after next: valid now even on a clock that is a little off, and not much longer than any run.
fn years_around(now: Timestamp) -> (i32, i32) {
    let year: i32 = now.to_rfc3339().split('-').next().and_then(|year| year.parse().ok()).unwrap_or(2026);
    (year - 1, year + 2)
}
