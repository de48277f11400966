//! Who gets through a handshake, with rustls on both sides.

use std::sync::Arc;

use palyra_common::ToStableError as _;
use palyra_identity::{
    AuthorityOptions, ClientAuth, ClientCredentials, Refusal, TlsVersions, server_only_client_config,
};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair, SanType};
use rustls::{CertificateError, ClientConfig, Error, ProtocolVersion};

use crate::support::{DAY, Place, client, owner, request, shake};

const ALPN: &[&[u8]] = &[b"palyra-quic-v1"];

fn config(credentials: &ClientCredentials) -> Arc<ClientConfig> {
    credentials.client_config(ALPN, TlsVersions::Tls13Only).unwrap()
}

fn refused_with(result: Result<crate::support::Shaken, Error>, expected: &CertificateError) {
    match result {
        Err(Error::InvalidCertificate(found)) => assert_eq!(&found, expected),
        other => panic!("expected {expected:?}, got {other:?}"),
    }
}

#[test]
fn a_good_certificate_gets_through_and_names_its_device() {
    let place = Place::new();
    let authority = place.open();
    let credentials = client(&authority);
    for name in ["localhost", "127.0.0.1", "::1"] {
        let server = authority.server_config(ALPN, ClientAuth::Required, TlsVersions::Tls13Only).unwrap();
        let shaken = shake(&server, &config(&credentials), name).unwrap();
        assert_eq!(shaken.alpn.as_deref(), Some(ALPN[0]));
        assert_eq!(shaken.version, ProtocolVersion::TLSv1_3);
        let identity = authority.identify(&shaken.peer).unwrap();
        assert_eq!(identity, credentials.identity);
        assert_eq!(identity.to_principal().id, owner());
        assert_eq!(identity.to_principal().device(), Some(identity.device));
    }
}

#[test]
fn without_a_certificate_only_where_none_is_required() {
    let place = Place::new();
    let authority = place.open();
    let bare = server_only_client_config(authority.pem(), &[], TlsVersions::Tls12AndLater).unwrap();
    for (client_auth, gets_in) in
        [(ClientAuth::None, true), (ClientAuth::Optional, true), (ClientAuth::Required, false)]
    {
        let server = authority.server_config(&[], client_auth, TlsVersions::Tls12AndLater).unwrap();
        let result = shake(&server, &bare, "localhost");
        assert_eq!(result.is_ok(), gets_in, "{client_auth:?}: {result:?}");
        if let Ok(shaken) = result {
            assert_eq!(authority.identify(&shaken.peer), Err(Refusal::Unknown));
        }
    }
}

#[test]
fn a_revoked_certificate_is_refused_at_once_also_by_who_holds_a_session() {
    let place = Place::new();
    let authority = place.open();
    let credentials = client(&authority);
    let config = config(&credentials);
    for client_auth in [ClientAuth::Optional, ClientAuth::Required] {
        let server = authority.server_config(ALPN, client_auth, TlsVersions::Tls13Only).unwrap();
        // The same client configuration remembers sessions; a second handshake must be a full one.
        for _ in 0..2 {
            let shaken = shake(&server, &config, "localhost").unwrap();
            assert_eq!(shaken.kind, rustls::HandshakeKind::Full);
        }
    }
    let server = authority.server_config(ALPN, ClientAuth::Optional, TlsVersions::Tls13Only).unwrap();
    let before = shake(&server, &config, "localhost").unwrap();
    authority.revoke(&credentials.identity.serial, &owner()).unwrap();
    refused_with(shake(&server, &config, "localhost"), &CertificateError::Revoked);
    assert_eq!(authority.identify(&before.peer), Err(Refusal::Revoked), "a connection that was open is noticed too");
    assert!(shake(&server, &self::config(&client(&authority)), "localhost").is_ok(), "others go on");
}

/// TLS 1.2 resumes in another way, which must not get around the list either.
#[test]
fn a_revoked_certificate_is_refused_over_older_tls_too() {
    let place = Place::new();
    let authority = place.open();
    let credentials = client(&authority);
    let older = older_client(authority.pem(), Some(&credentials));
    let server = authority.server_config(&[], ClientAuth::Required, TlsVersions::Tls12AndLater).unwrap();
    for _ in 0..2 {
        let shaken = shake(&server, &older, "localhost").unwrap();
        assert_eq!((shaken.version, shaken.kind), (ProtocolVersion::TLSv1_2, rustls::HandshakeKind::Full));
    }
    authority.revoke(&credentials.identity.serial, &owner()).unwrap();
    refused_with(shake(&server, &older, "localhost"), &CertificateError::Revoked);
}

#[test]
fn a_certificate_ends_by_the_authoritys_clock() {
    let place = Place::new();
    let authority =
        place.open_with(AuthorityOptions { server_life: DAY * 400, ..AuthorityOptions::default() }).unwrap();
    let credentials = client(&authority);
    let server = authority.server_config(ALPN, ClientAuth::Required, TlsVersions::Tls13Only).unwrap();
    let peer = shake(&server, &config(&credentials), "localhost").unwrap().peer;
    place.clock.advance(DAY * 2);
    match shake(&server, &config(&credentials), "localhost") {
        Err(Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(authority.identify(&peer), Err(Refusal::Expired));
}

#[test]
fn another_authority_counts_for_nothing() {
    let (one, two) = (Place::new(), Place::new());
    let (here, elsewhere) = (one.open(), two.open());
    let mut stranger = client(&elsewhere);
    let server = here.server_config(ALPN, ClientAuth::Required, TlsVersions::Tls13Only).unwrap();
    refused_with(shake(&server, &config(&stranger), "localhost"), &CertificateError::UnknownIssuer);
    // The stranger trusts this server, and still is not let in.
    stranger.authority_pem = here.pem().to_owned();
    let refused = shake(&server, &config(&stranger), "localhost");
    assert!(matches!(refused, Err(Error::InvalidCertificate(_) | Error::NoCertificatesPresented)), "{refused:?}");
    let der = pem_der(&stranger.certificate_pem);
    assert_eq!(here.identify(&[der]).unwrap_err().to_stable().code, "certificate_refused");
}

/// A client that speaks nothing newer than TLS 1.2.
fn older_client(authority_pem: &str, credentials: Option<&ClientCredentials>) -> Arc<ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(pem_der(authority_pem)).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS12]).unwrap().with_root_certificates(roots);
    Arc::new(match credentials {
        None => builder.with_no_client_auth(),
        Some(credentials) => {
            builder.with_client_auth_cert(vec![pem_der(&credentials.certificate_pem)], key_der(credentials)).unwrap()
        }
    })
}

fn key_der(credentials: &ClientCredentials) -> rustls_pki_types::PrivateKeyDer<'static> {
    use rustls_pki_types::pem::PemObject as _;
    rustls_pki_types::PrivateKeyDer::from_pem_slice(credentials.key_pem.expose().as_bytes()).unwrap()
}

fn pem_der(pem: &str) -> rustls_pki_types::CertificateDer<'static> {
    use rustls_pki_types::pem::PemObject as _;
    rustls_pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// The key of the authority, as a thief would have it: what it signs for another purpose, or without naming a device, is refused.
fn forged(place: &Place, authority_pem: &str, purpose: ExtendedKeyUsagePurpose, names: &[&str]) -> ClientCredentials {
    let authority_key = KeyPair::from_pem(&std::fs::read_to_string(place.path().join("ca.key")).unwrap()).unwrap();
    // The issuer's name has to be that of the certificate.
    let mut issuer = CertificateParams::new(Vec::new()).unwrap();
    let fingerprint: String =
        palyra_common::Digest::of(rcgen::PublicKeyData::der_bytes(&authority_key)).to_hex().chars().take(16).collect();
    issuer.distinguished_name = rcgen::DistinguishedName::new();
    issuer.distinguished_name.push(rcgen::DnType::CommonName, format!("Palyra authority {fingerprint}"));
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.extended_key_usages = vec![purpose];
    for name in names {
        params.subject_alt_names.push(SanType::URI((*name).try_into().unwrap()));
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &Issuer::new(issuer, authority_key)).unwrap();
    let mut credentials = client(&place.open());
    credentials.certificate_pem = certificate.pem();
    credentials.key_pem = palyra_common::SecretString::new(key.serialize_pem());
    credentials.authority_pem = authority_pem.to_owned();
    credentials
}

const GOOD_NAMES: [&str; 3] =
    ["palyra://device/01JC0Q6F7Z8G9H0J1K2M3N4P5Q", "palyra://principal/uid:1000", "palyra://role/owner"];

#[test]
fn the_purpose_must_be_that_of_a_client() {
    let place = Place::new();
    let authority = place.open();
    let server = authority.server_config(ALPN, ClientAuth::Required, TlsVersions::Tls13Only).unwrap();
    let good = forged(&place, authority.pem(), ExtendedKeyUsagePurpose::ClientAuth, &GOOD_NAMES);
    shake(&server, &config(&good), "localhost").expect("what differs below is the purpose alone");
    let wrong = forged(&place, authority.pem(), ExtendedKeyUsagePurpose::ServerAuth, &GOOD_NAMES);
    match shake(&server, &config(&wrong), "localhost") {
        Err(Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        )) => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(authority.identify(&[pem_der(&wrong.certificate_pem)]), Err(Refusal::Certificate { .. })));
}

#[test]
fn a_certificate_that_names_nobody_is_refused() {
    let place = Place::new();
    let authority = place.open();
    let server = authority.server_config(ALPN, ClientAuth::Optional, TlsVersions::Tls13Only).unwrap();
    let [device, principal, role] = GOOD_NAMES;
    for names in [
        vec![],
        vec![device, principal],
        vec![device, role],
        vec![principal, role],
        vec![device, principal, role, "palyra://role/viewer"],
        vec![device, principal, "palyra://role/root"],
        vec![device, "palyra://principal/root", role],
        vec!["palyra://device/x", principal, role],
    ] {
        let nobody = forged(&place, authority.pem(), ExtendedKeyUsagePurpose::ClientAuth, &names);
        refused_with(shake(&server, &config(&nobody), "localhost"), &CertificateError::ApplicationVerificationFailure);
    }
}

#[test]
fn a_client_certificate_is_no_server_and_names_are_checked() {
    let place = Place::new();
    let authority = place.open();
    let credentials = client(&authority);
    let server = authority.server_config(&[], ClientAuth::None, TlsVersions::Tls13Only).unwrap();
    let bare = server_only_client_config(authority.pem(), &[], TlsVersions::Tls13Only).unwrap();
    assert!(shake(&server, &bare, "localhost").is_ok());
    assert!(matches!(shake(&server, &bare, "palyra.example"), Err(Error::InvalidCertificate(_))));

    let impostor = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![pem_der(&credentials.certificate_pem)], key_der(&credentials))
        .unwrap();
    assert!(matches!(shake(&Arc::new(impostor), &bare, "localhost"), Err(Error::InvalidCertificate(_))));
}

#[test]
fn tls_1_2_is_spoken_only_where_asked_for() {
    let place = Place::new();
    let authority = place.open();
    let older_client = older_client(authority.pem(), None);
    let both = authority.server_config(&[], ClientAuth::None, TlsVersions::Tls12AndLater).unwrap();
    assert_eq!(shake(&both, &older_client, "localhost").unwrap().version, ProtocolVersion::TLSv1_2);
    let newest = authority.server_config(&[], ClientAuth::None, TlsVersions::Tls13Only).unwrap();
    assert!(shake(&newest, &older_client, "localhost").is_err());
    let other_protocol = server_only_client_config(authority.pem(), &[b"h3"], TlsVersions::Tls13Only).unwrap();
    let quic = authority.server_config(ALPN, ClientAuth::None, TlsVersions::Tls13Only).unwrap();
    assert!(shake(&quic, &other_protocol, "localhost").is_err(), "a protocol that nobody speaks");
}

#[test]
fn a_renewed_server_certificate_is_served_by_listeners_that_run() {
    let place = Place::new();
    let authority = place.open();
    let server = authority.server_config(&[], ClientAuth::None, TlsVersions::Tls13Only).unwrap();
    let first = authority.server_certificate().unwrap();
    assert!(!authority.renew_server().unwrap(), "not due yet");
    place.clock.advance(DAY * 41);
    assert!(authority.renew_server().unwrap());
    let second = authority.server_certificate().unwrap();
    assert_ne!(first, second);
    place.clock.advance(DAY);
    assert!(!authority.renew_server().unwrap());
    let served = server.cert_resolver_certificate();
    assert_eq!(served, second);
}

trait Served {
    fn cert_resolver_certificate(&self) -> rustls_pki_types::CertificateDer<'static>;
}

impl Served for Arc<rustls::ServerConfig> {
    /// What a client is shown, by a client that notes it and then refuses.
    fn cert_resolver_certificate(&self) -> rustls_pki_types::CertificateDer<'static> {
        use std::sync::Mutex;

        use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
        use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

        #[derive(Debug, Default)]
        struct Noting(Mutex<Option<CertificateDer<'static>>>);
        impl ServerCertVerifier for Noting {
            fn verify_server_cert(
                &self,
                end_entity: &CertificateDer<'_>,
                _: &[CertificateDer<'_>],
                _: &ServerName<'_>,
                _: &[u8],
                _: UnixTime,
            ) -> Result<ServerCertVerified, Error> {
                *self.0.lock().unwrap() = Some(end_entity.clone().into_owned());
                Err(Error::General("noted".into()))
            }
            fn verify_tls12_signature(
                &self,
                _: &[u8],
                _: &CertificateDer<'_>,
                _: &rustls::DigitallySignedStruct,
            ) -> Result<HandshakeSignatureValid, Error> {
                Err(Error::General("noted".into()))
            }
            fn verify_tls13_signature(
                &self,
                _: &[u8],
                _: &CertificateDer<'_>,
                _: &rustls::DigitallySignedStruct,
            ) -> Result<HandshakeSignatureValid, Error> {
                Err(Error::General("noted".into()))
            }
            fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
                vec![rustls::SignatureScheme::ECDSA_NISTP256_SHA256]
            }
        }

        let noting = Arc::new(Noting::default());
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let verifier = Arc::<Noting>::clone(&noting);
        let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        assert!(shake(self, &Arc::new(config), "localhost").is_err());
        noting.0.lock().unwrap().take().unwrap()
    }
}

#[test]
fn lives_are_bounded() {
    let place = Place::new();
    let authority = place.open();
    for life in [std::time::Duration::ZERO, DAY * 91] {
        assert_eq!(authority.issue_client(&request(life)).unwrap_err().to_stable().code, "certificate_request_invalid");
    }
}

/// Whatever is changed in a certificate, and whatever is shown instead of one, names nobody.
#[test]
fn changed_certificates_name_nobody() {
    use proptest::prelude::*;

    let place = Place::new();
    let authority = place.open();
    let credentials = client(&authority);
    let good = pem_der(&credentials.certificate_pem).to_vec();
    let noise = proptest::collection::vec(any::<u8>(), 0..600);
    let strategy = (any::<proptest::sample::Index>(), 1..=255_u8, noise);
    proptest::test_runner::TestRunner::default()
        .run(&strategy, |(at, flip, noise)| {
            let mut changed = good.clone();
            changed[at.index(good.len())] ^= flip;
            prop_assert!(authority.identify(&[changed.into()]).is_err());
            prop_assert!(authority.identify(&[noise.clone().into()]).is_err());
            let beside = authority.identify(&[good.clone().into(), noise.into()]);
            prop_assert!(beside.is_err() || beside.unwrap() == credentials.identity);
            Ok(())
        })
        .unwrap();
}
