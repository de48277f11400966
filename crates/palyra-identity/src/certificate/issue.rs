//! Making certificates: ECDSA on P-256, for one purpose each.
//!
//! The authority's name follows from its key, so that an issuer can be put together from the key alone and no certificate has to be
//! taken apart for it.

use std::time::Duration;

use palyra_common::{DeviceId, Digest, PrincipalRole, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber, date_time_ymd,
};
use rustls_pki_types::ServerName;

use super::identity::DeviceIdentity;
use crate::{IdentityError, PrincipalId, Serial};

/// How far clocks of clients may lag: a certificate begins that long before it was made.
const CLOCK_LAG_MILLIS: i64 = 5 * 60 * 1_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Ten years: an authority is replaced with care, not by the calendar.
const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3_653);
/// The longest that a client certificate may live, and so the longest that a revocation has to be remembered.
pub const MAX_CLIENT_LIFE: Duration = DAY.saturating_mul(90);
/// The names under which a local client reaches the daemon.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Whom a client certificate is for.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    /// The device that holds it.
    pub device: DeviceId,
    /// For whom it acts.
    pub principal: PrincipalId,
    /// As what.
    pub role: PrincipalRole,
    /// How long it is good for, at most [`MAX_CLIENT_LIFE`].
    pub life: Duration,
}

/// The key of the authority, ready to sign.
pub(crate) type Signer = Issuer<'static, KeyPair>;

pub(crate) fn generate_key() -> Result<KeyPair, IdentityError> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(IdentityError::tls)
}

/// The issuer that a key makes.
pub(crate) fn signer(key: KeyPair) -> Result<Signer, IdentityError> {
    Ok(Issuer::new(authority_params(&key)?, key))
}

/// The authority's own certificate, in PEM.
pub(crate) fn authority_certificate(key: &KeyPair, now: Timestamp) -> Result<String, IdentityError> {
    let mut params = authority_params(key)?;
    lives(&mut params, now, AUTHORITY_LIFE)?;
    Ok(params.self_signed(key).map_err(IdentityError::tls)?.pem())
}

fn authority_params(key: &KeyPair) -> Result<CertificateParams, IdentityError> {
    let mut params = CertificateParams::new(Vec::new()).map_err(IdentityError::tls)?;
    let fingerprint: String = Digest::of(key.der_bytes()).to_hex().chars().take(16).collect();
    params.distinguished_name = named(&format!("Palyra authority {fingerprint}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// All names of a server certificate: the local ones and those that the operator gave.
pub(crate) fn server_names(configured: &[String]) -> Result<Vec<ServerName<'static>>, IdentityError> {
    let mut names: Vec<ServerName<'static>> = Vec::new();
    for name in LOCAL_NAMES.iter().copied().chain(configured.iter().map(String::as_str)) {
        let parsed = ServerName::try_from(name.to_owned())
            .map_err(|_| IdentityError::CertificateRequest { reason: format!("`{name}` is not a host name") })?;
        if !names.contains(&parsed) {
            names.push(parsed);
        }
    }
    Ok(names)
}

/// A server certificate in PEM.
pub(crate) fn server_certificate(
    signer: &Signer,
    key: &KeyPair,
    names: &[ServerName<'_>],
    life: Duration,
    now: Timestamp,
) -> Result<String, IdentityError> {
    let names: Vec<String> = names.iter().map(|name| name.to_str().into_owned()).collect();
    let params = CertificateParams::new(names).map_err(IdentityError::tls)?;
    let purpose = ExtendedKeyUsagePurpose::ServerAuth;
    sign(signer, key, params, "Palyra daemon", purpose, &Serial::generate()?, life, now)
}

/// A client certificate in PEM, and its serial number.
pub(crate) fn client_certificate(
    signer: &Signer,
    key: &KeyPair,
    request: &ClientRequest,
    now: Timestamp,
) -> Result<(String, Serial), IdentityError> {
    if request.life.is_zero() || request.life > MAX_CLIENT_LIFE {
        let days = MAX_CLIENT_LIFE.as_secs() / DAY.as_secs();
        return Err(IdentityError::CertificateRequest { reason: format!("it may be valid for at most {days} days") });
    }
    let mut params = CertificateParams::new(Vec::new()).map_err(IdentityError::tls)?;
    for name in DeviceIdentity::names(request.device, &request.principal, request.role) {
        params.subject_alt_names.push(SanType::URI(name.try_into().map_err(IdentityError::tls)?));
    }
    let serial = Serial::generate()?;
    let purpose = ExtendedKeyUsagePurpose::ClientAuth;
    let pem = sign(signer, key, params, "Palyra device", purpose, &serial, request.life, now)?;
    Ok((pem, serial))
}

#[expect(clippy::too_many_arguments, reason = "the parts of a certificate, named once in two callers")]
fn sign(
    signer: &Signer,
    key: &KeyPair,
    mut params: CertificateParams,
    name: &str,
    purpose: ExtendedKeyUsagePurpose,
    serial: &Serial,
    life: Duration,
    now: Timestamp,
) -> Result<String, IdentityError> {
    params.distinguished_name = named(name);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(SerialNumber::from(serial.to_bytes()));
    lives(&mut params, now, life)?;
    Ok(params.signed_by(key, signer).map_err(IdentityError::tls)?.pem())
}

fn lives(params: &mut CertificateParams, now: Timestamp, life: Duration) -> Result<(), IdentityError> {
    let since_epoch = |at: Timestamp| Duration::from_millis(u64::try_from(at.0).unwrap_or(0));
    let beyond = || IdentityError::CertificateRequest { reason: "the system clock is out of range".to_owned() };
    let epoch = date_time_ymd(1970, 1, 1);
    let start = since_epoch(Timestamp(now.0.saturating_sub(CLOCK_LAG_MILLIS)));
    let end = since_epoch(now.plus(life));
    params.not_before = epoch.checked_add(start.try_into().map_err(|_| beyond())?).ok_or_else(beyond)?;
    params.not_after = epoch.checked_add(end.try_into().map_err(|_| beyond())?).ok_or_else(beyond)?;
    Ok(())
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
