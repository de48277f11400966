//! Devices: what has a certificate of this installation.

use palyra_common::{DeviceId, PrincipalRole, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All devices that a certificate was issued to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListDevicesResponse {
    /// The one with the newest certificate first.
    pub devices: Vec<DeviceView>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceView {
    /// The device.
    pub device_id: DeviceId,
    /// Whom it stands for.
    pub principal: String,
    /// The most it may do.
    pub role: PrincipalRole,
    /// Its certificates that have not run out, newest first.
    pub certificates: Vec<CertificateView>,
}

/// One certificate of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateView {
    /// Its serial number, in hexadecimal digits.
    pub serial: String,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it runs out.
    pub expires_at: Timestamp,
    /// When it was taken back, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// By whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
}
