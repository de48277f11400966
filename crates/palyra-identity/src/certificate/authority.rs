//! The authority of this installation: opened or made, renewed, and turned into TLS.
//!
//! Its key is made once and stays in its directory (`ca.key`, 0600). A key that is there without its certificate was never used, so
//! the certificate is made again; a certificate without its key is damage, and refused: clients that trust the old authority would
//! otherwise be locked out in silence.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{Clock, DeviceId, PrincipalRole, SecretString, Timestamp};
use rcgen::{KeyPair, PublicKeyData as _};
use rustls::server::NoServerSessionStorage;
use rustls::{ConfigBuilder, ServerConfig, server::WantsServerCert};
use rustls_pki_types::{CertificateDer, ServerName};

use super::identity::DeviceIdentity;
use super::issue::{
    ClientRequest, MAX_CLIENT_LIFE, Signer, authority_certificate, client_certificate, generate_key, server_names,
    signer,
};
use super::issued::{Issued, IssuedCertificate};
use super::pem;
use super::revocations::{Revocation, Revocations};
use super::server::{self, ServerCertificate};
use super::tls::{ClientAuth, ClockTime, TlsVersions, protocols, provider};
use super::verify::{DeviceVerifier, Purpose, Trust, identify};
use crate::{ClientCredentials, IdentityError, PrincipalId, Refusal, Serial, private_files};

const KEY_FILE: &str = "ca.key";
const CERTIFICATE_FILE: &str = "ca.pem";
const SERVER_FILE: &str = "server.pem";
const REVOCATIONS_FILE: &str = "revoked.json";
const ISSUED_FILE: &str = "issued.json";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A certificate is renewed when less than this part of its life is left.
const RENEWAL_PART: u32 = 3;

/// What the authority issues.
#[derive(Debug, Clone)]
pub struct AuthorityOptions {
    /// Names and addresses of the daemon besides the local ones.
    pub names: Vec<String>,
    /// How long a server certificate lives.
    pub server_life: Duration,
    /// How long the local owner's certificate lives.
    pub client_life: Duration,
}

impl Default for AuthorityOptions {
    fn default() -> Self {
        Self { names: Vec::new(), server_life: DAY * 60, client_life: DAY * 14 }
    }
}

/// Issues, renews, takes back and checks certificates.
pub struct Authority {
    directory: PathBuf,
    options: AuthorityOptions,
    clock: Arc<dyn Clock>,
    names: Vec<ServerName<'static>>,
    pem: String,
    signer: Signer,
    trust: Trust,
    server: Arc<ServerCertificate>,
    revocations: Arc<Revocations>,
    issued: Issued,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Authority {
    /// Opens the authority of a directory, or makes one where there is none.
    ///
    /// # Errors
    /// When its files are not private, do not belong together or cannot be read; nothing is replaced then.
    pub fn open_or_create(
        directory: &Path,
        options: AuthorityOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, IdentityError> {
        if options.server_life.is_zero() || options.client_life.is_zero() || options.client_life > MAX_CLIENT_LIFE {
            let reason = "a life is longer than nothing, and for clients at most 90 days".to_owned();
            return Err(IdentityError::CertificateRequest { reason });
        }
        let names = server_names(&options.names)?;
        private_files::ensure_directory(directory)?;
        let now = clock.now();
        let (key, pem) = load_or_make(directory, now)?;
        let trust = Trust::in_authority(&pem::certificate(&directory.join(CERTIFICATE_FILE), &pem)?)?;
        let revocations = Arc::new(Revocations::open(directory.join(REVOCATIONS_FILE))?);
        let issued = Issued::open(directory.join(ISSUED_FILE))?;
        let signer = signer(key)?;
        let server_file = directory.join(SERVER_FILE);
        let until = now.plus(options.server_life / RENEWAL_PART);
        let certified = match server::kept(&server_file, &trust, &names, until)? {
            Some(kept) => kept,
            None => server::make(&server_file, &signer, &names, options.server_life, now)?,
        };
        let server = Arc::new(ServerCertificate::new(certified));
        let directory = directory.to_owned();
        Ok(Self { directory, options, clock, names, pem, signer, trust, server, revocations, issued })
    }

    /// The authority's certificate in PEM, for clients to trust.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The server's certificate that is in use.
    #[must_use]
    pub fn server_certificate(&self) -> Option<CertificateDer<'static>> {
        self.server.current().cert.first().cloned()
    }

    /// Issues a certificate with a new key.
    ///
    /// # Errors
    /// When it would live for too long.
    pub fn issue_client(&self, request: &ClientRequest) -> Result<ClientCredentials, IdentityError> {
        self.issue_with(&generate_key()?, request)
    }

    fn issue_with(&self, key: &KeyPair, request: &ClientRequest) -> Result<ClientCredentials, IdentityError> {
        let now = self.clock.now();
        let (certificate_pem, serial) = client_certificate(&self.signer, key, request, now)?;
        let ClientRequest { device, principal, role, life } = request.clone();
        self.issued.add(IssuedCertificate {
            serial: serial.clone(),
            device,
            principal: principal.clone(),
            role,
            issued_at: now,
            expires_at: now.plus(life),
        })?;
        Ok(ClientCredentials {
            identity: DeviceIdentity { device, principal, role, serial },
            certificate_pem,
            key_pem: SecretString::new(key.serialize_pem()),
            authority_pem: self.pem.clone(),
        })
    }

    /// The certificate of the local owner, in files for local clients. It is kept while it is good, renewed with the same key when it
    /// is due, and made anew for a new device when it was taken back or stands for somebody else.
    ///
    /// # Errors
    /// When the files are not private or cannot be written.
    pub fn ensure_local_owner(
        &self,
        directory: &Path,
        principal: &PrincipalId,
    ) -> Result<ClientCredentials, IdentityError> {
        private_files::ensure_directory(directory)?;
        let request = |device| ClientRequest {
            device,
            principal: principal.clone(),
            role: PrincipalRole::Owner,
            life: self.options.client_life,
        };
        let found = match ClientCredentials::read(directory) {
            // Files that others could read are refused; files that are merely broken are replaced.
            Err(error @ (IdentityError::Exposed { .. } | IdentityError::File { .. })) => return Err(error),
            Err(_) => None,
            Ok(found) => found,
        };
        let usable = found.filter(|found| {
            let DeviceIdentity { principal: whose, role, serial, .. } = &found.identity;
            let is_owner = (whose, *role) == (principal, PrincipalRole::Owner);
            is_owner && found.authority_pem == self.pem && !self.revocations.contains(serial)
        });
        let Some(found) = usable else {
            let made = self.issue_client(&request(DeviceId::generate()))?;
            made.write(directory)?;
            return Ok(made);
        };
        let certificate = pem::certificate(directory, &found.certificate_pem)?;
        let until = self.clock.now().plus(self.options.client_life / RENEWAL_PART);
        if self.trust.check(&certificate, &[], Purpose::Client, until).is_ok() {
            return Ok(found);
        }
        let key = KeyPair::from_pem(found.key_pem.expose()).map_err(IdentityError::tls)?;
        let renewed = self.issue_with(&key, &request(found.identity.device))?;
        renewed.write(directory)?;
        Ok(renewed)
    }

    /// Renews the server's certificate if it is due; says whether it was. Running listeners serve the new one from then on.
    ///
    /// # Errors
    /// When the new one cannot be kept; the old one stays in use.
    pub fn renew_server(&self) -> Result<bool, IdentityError> {
        let now = self.clock.now();
        let until = now.plus(self.options.server_life / RENEWAL_PART);
        if server::is_good(&self.server.current(), &self.trust, &self.names, until) {
            return Ok(false);
        }
        let path = self.directory.join(SERVER_FILE);
        self.server.replace(server::make(&path, &self.signer, &self.names, self.options.server_life, now)?);
        Ok(true)
    }

    /// Takes a certificate back, for good. From then on no handshake with it succeeds.
    ///
    /// # Errors
    /// When that cannot be written down; the certificate then still works.
    pub fn revoke(&self, serial: &Serial, by: &PrincipalId) -> Result<(), IdentityError> {
        self.revocations.add(serial, by, self.clock.now())
    }

    /// What was taken back and could otherwise still be in use.
    #[must_use]
    pub fn revocations(&self) -> Vec<Revocation> {
        self.revocations.list()
    }

    /// Takes all certificates of a device back that have not run out; says how many.
    ///
    /// # Errors
    /// When the device has none, or that cannot be written down.
    pub fn revoke_device(&self, device: DeviceId, by: &PrincipalId) -> Result<usize, IdentityError> {
        let mut held = self.issued()?;
        held.retain(|certificate| certificate.device == device);
        if held.is_empty() {
            return Err(IdentityError::DeviceNotFound { id: device.to_string() });
        }
        for certificate in &held {
            self.revoke(&certificate.serial, by)?;
        }
        Ok(held.len())
    }

    /// The certificates of devices that have not run out, oldest first; those that were taken back are among them.
    ///
    /// # Errors
    /// When the list of them cannot be read.
    pub fn issued(&self) -> Result<Vec<IssuedCertificate>, IdentityError> {
        self.issued.list(self.clock.now())
    }

    /// When a certificate of a device runs out, if it is known.
    #[must_use]
    pub fn expiry(&self, serial: &Serial) -> Option<Timestamp> {
        self.issued.expiry(serial)
    }

    /// Whom the certificates of a peer stand for, at this moment. Asked again on a long connection, it notices a revocation.
    ///
    /// # Errors
    /// When the peer showed none, or one that is not good any more.
    pub fn identify(&self, peer: &[CertificateDer<'_>]) -> Result<DeviceIdentity, Refusal> {
        identify(&self.trust, &self.revocations, peer, self.clock.now())
    }

    /// TLS for a listener. There is no early data, so nothing that a client sends can be replayed by somebody else.
    ///
    /// # Errors
    /// Only when TLS cannot be set up at all.
    pub fn server_config(
        &self,
        alpn: &[&[u8]],
        client_auth: ClientAuth,
        versions: TlsVersions,
    ) -> Result<Arc<ServerConfig>, IdentityError> {
        let time = Arc::new(ClockTime(Arc::clone(&self.clock)));
        let builder = ServerConfig::builder_with_details(provider(), time)
            .with_protocol_versions(versions.list())
            .map_err(IdentityError::tls)?;
        let with_clients: ConfigBuilder<ServerConfig, WantsServerCert> = match client_auth {
            ClientAuth::None => builder.with_no_client_auth(),
            ClientAuth::Optional | ClientAuth::Required => {
                let verifier = DeviceVerifier::new(&self.trust, Arc::clone(&self.revocations), client_auth)?;
                builder.with_client_cert_verifier(Arc::new(verifier))
            }
        };
        let resolver: Arc<ServerCertificate> = Arc::clone(&self.server);
        let mut config = with_clients.with_cert_resolver(resolver);
        config.alpn_protocols = protocols(alpn);
        config.max_early_data_size = 0;
        if client_auth != ClientAuth::None {
            // A resumed session does not show its certificate again, so one that was revoked meanwhile would be let in.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

/// The key and the certificate of the authority.
fn load_or_make(directory: &Path, now: palyra_common::Timestamp) -> Result<(KeyPair, String), IdentityError> {
    let (key_path, pem_path) = (directory.join(KEY_FILE), directory.join(CERTIFICATE_FILE));
    let unusable = |path: &Path, reason: &str| IdentityError::Unusable { path: path.to_owned(), reason: reason.into() };
    match (private_files::read(&key_path)?.map(SecretString::new), private_files::read(&pem_path)?) {
        (Some(key), Some(pem)) => {
            let key = KeyPair::from_pem(key.expose()).map_err(|_| unusable(&key_path, "it is not a private key"))?;
            let certificate = pem::certificate(&pem_path, &pem)?;
            let certified = webpki::EndEntityCert::try_from(&certificate)
                .map_err(|_| unusable(&pem_path, "it is not a readable certificate"))?
                .subject_public_key_info();
            if certified.as_ref() != key.subject_public_key_info() {
                return Err(unusable(&pem_path, "it does not match `ca.key`"));
            }
            Ok((key, pem))
        }
        (None, Some(_)) => Err(unusable(&pem_path, "its private key is missing")),
        (key, None) => {
            let key = match key {
                Some(key) => {
                    KeyPair::from_pem(key.expose()).map_err(|_| unusable(&key_path, "it is not a private key"))?
                }
                None => {
                    let key = generate_key()?;
                    let text = SecretString::new(key.serialize_pem());
                    private_files::replace(&key_path, text.expose())?;
                    key
                }
            };
            let pem = authority_certificate(&key, now)?;
            private_files::replace(&pem_path, &pem)?;
            Ok((key, pem))
        }
    }
}
