//! Who a client certificate names: three addresses among its alternative names.
//!
//! `palyra://device/<id>` is the device, `palyra://principal/<id>` for whom it acts, `palyra://role/<role>` as what. All three must be
//! there exactly once; a certificate that says less or more names nobody.

use palyra_common::{DeviceId, PrincipalRole};
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::{Principal, PrincipalId, Refusal, Serial, Via};

const DEVICE: &str = "palyra://device/";
const PRINCIPAL: &str = "palyra://principal/";
const ROLE: &str = "palyra://role/";

/// Whom a certificate stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// The device.
    pub device: DeviceId,
    /// For whom it acts.
    pub principal: PrincipalId,
    /// As what.
    pub role: PrincipalRole,
    /// The certificate that said so.
    pub serial: Serial,
}

impl DeviceIdentity {
    /// The principal that acts through the device.
    #[must_use]
    pub fn to_principal(&self) -> Principal {
        let via = Via::Device { id: self.device, serial: self.serial.clone() };
        Principal::new(self.principal.clone(), self.role, via)
            .called(format!("{} (device {})", self.principal, self.device))
    }

    pub(crate) fn names(device: DeviceId, principal: &PrincipalId, role: PrincipalRole) -> [String; 3] {
        [format!("{DEVICE}{device}"), format!("{PRINCIPAL}{principal}"), format!("{ROLE}{role}")]
    }

    /// Reads the names of a certificate. It is the caller who has verified it.
    pub(crate) fn read(certificate: &CertificateDer<'_>) -> Result<Self, Refusal> {
        let refused = |reason: &str| Refusal::Certificate { reason: reason.to_owned() };
        let parsed = EndEntityCert::try_from(certificate).map_err(|_| refused("it cannot be read"))?;
        let names: Vec<&str> = parsed.valid_uri_names().collect();
        let device =
            only(&names, DEVICE).and_then(|id| id.parse().ok()).ok_or_else(|| refused("it names no device"))?;
        let principal =
            only(&names, PRINCIPAL).and_then(|id| id.parse().ok()).ok_or_else(|| refused("it names no principal"))?;
        let role = only(&names, ROLE)
            .and_then(|name| PrincipalRole::ALL.iter().copied().find(|role| role.as_str() == name))
            .ok_or_else(|| refused("it names no role"))?;
        Ok(Self { device, principal, role, serial: Serial::from_certificate(parsed.serial()) })
    }
}

/// What follows a prefix, if exactly one name has it.
fn only<'a>(names: &[&'a str], prefix: &str) -> Option<&'a str> {
    let mut found = names.iter().filter_map(|name| name.strip_prefix(prefix));
    match (found.next(), found.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}
