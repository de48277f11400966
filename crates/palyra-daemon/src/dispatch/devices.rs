//! Commands about devices: what has a certificate of this installation, and taking those certificates back.
//!
//! Certificates and what became of them are files of the authority, because a handshake asks them before there is anything else. That one was taken back is on the
//! journal too, for whoever looks there.

use std::collections::BTreeMap;

use palyra_client::api::{CertificateView, DeviceView, ListDevicesResponse};
use palyra_common::{Clock as _, DeviceId, SystemClock};
use palyra_identity::{Authority, IdentityError};
use serde::Serialize;

use super::caller::Caller;
use super::records;
use super::refusal::{Refusal, Result};
use crate::app::App;

/// A device's certificates were taken back.
const REVOKED: &str = "device.revoked";

#[derive(Debug, Serialize)]
struct DeviceRevoked {
    device_id: DeviceId,
    serials: Vec<String>,
    by: String,
}

pub(super) async fn list(app: &App) -> Result<ListDevicesResponse> {
    let authority = app.gate.identity().authority().await?;
    let mut devices: Vec<_> = views(&authority)?.into_values().collect();
    devices
        .sort_by_key(|device| std::cmp::Reverse(device.certificates.first().map(|certificate| certificate.issued_at)));
    Ok(ListDevicesResponse { devices })
}

/// Takes everything back that a device has. Its open connections end at once.
pub(super) async fn revoke(app: &App, caller: &Caller, device: DeviceId) -> Result<DeviceView> {
    let authority = app.gate.identity().authority().await?;
    let find = |authority: &Authority| {
        let missing = || Refusal::from(IdentityError::DeviceNotFound { id: device.to_string() });
        views(authority)?.remove(&device).ok_or_else(missing)
    };
    let found = find(&authority)?;
    let serials = found.certificates.into_iter().map(|certificate| certificate.serial).collect();
    let revoked = DeviceRevoked { device_id: device, serials, by: caller.id().to_owned() };
    app.journal.append(vec![records::record(REVOKED, SystemClock.now(), &revoked)?]).await?;
    let by = caller.principal.id.clone();
    let (changing, authority) = (std::sync::Arc::clone(&authority), authority);
    let changed = tokio::task::spawn_blocking(move || changing.revoke_device(device, &by)).await;
    changed.map_err(|error| Refusal::internal(format!("the device was not revoked: {error}")))??;
    app.gate.look_again();
    // A daemon whose local owner has no certificate would be out of reach over QUIC until it is started again.
    app.gate.identity().replace_revoked_owner().await;
    find(&authority)
}

fn views(authority: &Authority) -> Result<BTreeMap<DeviceId, DeviceView>> {
    let revocations: BTreeMap<_, _> =
        authority.revocations().into_iter().map(|entry| (entry.serial.clone(), entry)).collect();
    let mut devices = BTreeMap::new();
    for issued in authority.issued()?.into_iter().rev() {
        let revoked = revocations.get(&issued.serial);
        let device = devices.entry(issued.device).or_insert_with(|| DeviceView {
            device_id: issued.device,
            principal: issued.principal.to_string(),
            role: issued.role,
            certificates: Vec::new(),
        });
        device.certificates.push(CertificateView {
            serial: issued.serial.as_str().to_owned(),
            issued_at: issued.issued_at,
            expires_at: issued.expires_at,
            revoked_at: revoked.map(|entry| entry.at),
            revoked_by: revoked.map(|entry| entry.by.to_string()),
        });
    }
    Ok(devices)
}
