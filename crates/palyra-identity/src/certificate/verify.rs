//! Whether a certificate is good: signed by this authority, in time, for its purpose, and not taken back.

use std::sync::Arc;

use palyra_common::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage};

use super::identity::DeviceIdentity;
use super::revocations::Revocations;
use super::tls::{ClientAuth, provider, unix_time};
use crate::{IdentityError, Refusal};

/// What a certificate is shown for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Server,
    Client,
}

/// The authority as the one thing that is trusted.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    roots: Arc<RootCertStore>,
}

impl Trust {
    pub(crate) fn in_authority(certificate: &CertificateDer<'_>) -> Result<Self, IdentityError> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).map_err(IdentityError::tls)?;
        Ok(Self { roots: Arc::new(roots) })
    }

    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.roots)
    }

    pub(crate) fn anchors(&self) -> &[TrustAnchor<'static>] {
        &self.roots.roots
    }

    /// Whether a certificate holds at an instant.
    pub(crate) fn check(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        purpose: Purpose,
        at: Timestamp,
    ) -> Result<(), Refusal> {
        let refused = |error: webpki::Error| match error {
            webpki::Error::CertExpired { .. } => Refusal::Expired,
            error => Refusal::Certificate { reason: error.to_string() },
        };
        let usage = match purpose {
            Purpose::Server => KeyUsage::server_auth(),
            Purpose::Client => KeyUsage::client_auth(),
        };
        let algorithms = provider().signature_verification_algorithms;
        let parsed = EndEntityCert::try_from(certificate).map_err(refused)?;
        parsed
            .verify_for_usage(algorithms.all, self.anchors(), intermediates, unix_time(at), usage, None, None)
            .map_err(refused)?;
        Ok(())
    }
}

/// Whom the certificates of a peer stand for, now: also for connections that outlive a revocation.
pub(crate) fn identify(
    trust: &Trust,
    revocations: &Revocations,
    peer: &[CertificateDer<'_>],
    now: Timestamp,
) -> Result<DeviceIdentity, Refusal> {
    let Some((certificate, intermediates)) = peer.split_first() else { return Err(Refusal::Unknown) };
    trust.check(certificate, intermediates, Purpose::Client, now)?;
    let identity = DeviceIdentity::read(certificate)?;
    if revocations.contains(&identity.serial) { Err(Refusal::Revoked) } else { Ok(identity) }
}

/// Asks the list of revocations at every handshake, after everything that rustls checks.
#[derive(Debug)]
pub(crate) struct DeviceVerifier {
    inner: Arc<dyn ClientCertVerifier>,
    revocations: Arc<Revocations>,
}

impl DeviceVerifier {
    pub(crate) fn new(
        trust: &Trust,
        revocations: Arc<Revocations>,
        client_auth: ClientAuth,
    ) -> Result<Self, IdentityError> {
        let mut builder = WebPkiClientVerifier::builder_with_provider(trust.roots(), provider());
        if client_auth != ClientAuth::Required {
            builder = builder.allow_unauthenticated();
        }
        Ok(Self { inner: builder.build().map_err(IdentityError::tls)?, revocations })
    }
}

impl ClientCertVerifier for DeviceVerifier {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        // One that names nobody would be let in as nobody, which the caller could mistake for somebody.
        let identity = DeviceIdentity::read(end_entity)
            .map_err(|_| rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))?;
        if self.revocations.contains(&identity.serial) {
            return Err(rustls::Error::InvalidCertificate(CertificateError::Revoked));
        }
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
