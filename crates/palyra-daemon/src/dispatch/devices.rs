//! Commands about devices: what has a certificate of this installation, and taking those certificates back.
//!
//! Certificates and what became of them are files of the authority, because a handshake asks them before there is anything else. That one was taken back is on the
//! journal first: a daemon that dies before the authority has it too brings the authority up to date when it opens it again.

use std::collections::BTreeMap;

use palyra_client::api::{CertificateView, DeviceView, ListDevicesResponse};
use palyra_common::{Clock as _, DeviceId, SystemClock};
use palyra_identity::{Authority, IdentityError, PrincipalId, Serial};
use palyra_journal::rusqlite::{Connection, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};

use super::caller::Caller;
use super::records;
use super::refusal::{Refusal, Result};
use crate::app::App;

/// A device's certificates were taken back.
const REVOKED: &str = "device.revoked";

#[derive(Debug, Serialize, Deserialize)]
struct DeviceRevoked {
    device_id: DeviceId,
    serials: Vec<Serial>,
    by: PrincipalId,
}

/// A certificate that the journal says was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevokedCertificate {
    pub(crate) serial: Serial,
    pub(crate) by: PrincipalId,
}

/// The table of certificates that were taken back.
pub(super) struct RevokedCertificates;

impl Projection for RevokedCertificates {
    fn name(&self) -> &'static str {
        "revoked_certificates"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["revoked_certificates"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE revoked_certificates (serial TEXT PRIMARY KEY NOT NULL, revoked_by TEXT NOT NULL)
             STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> std::result::Result<(), ProjectionError> {
        if record.kind.as_ref() != REVOKED {
            return Ok(());
        }
        let revoked: DeviceRevoked = records::read(record)?;
        let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO revoked_certificates VALUES (?1, ?2)")?;
        for serial in revoked.serials {
            insert.execute(params![serial.as_str(), revoked.by.as_str()])?;
        }
        Ok(())
    }
}

/// The certificates that were taken back.
pub(crate) fn revoked_certificates(connection: &Connection) -> rusqlite::Result<Vec<RevokedCertificate>> {
    let wrong = |column, error: IdentityError| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
    };
    connection
        .prepare_cached("SELECT serial, revoked_by FROM revoked_certificates")?
        .query_map([], |row| {
            let (serial, by): (String, String) = (row.get(0)?, row.get(1)?);
            Ok(RevokedCertificate {
                serial: serial.parse().map_err(|error| wrong(0, error))?,
                by: by.parse().map_err(|error| wrong(1, error))?,
            })
        })?
        .collect()
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
    let serials = found.certificates.into_iter().map(|certificate| certificate.serial.parse());
    let serials = serials.collect::<std::result::Result<Vec<Serial>, IdentityError>>()?;
    let revoked = DeviceRevoked { device_id: device, serials: serials.clone(), by: caller.principal.id.clone() };
    app.journal.append(vec![records::record(REVOKED, SystemClock.now(), &revoked)?]).await?;
    let by = caller.principal.id.clone();
    let (changing, authority) = (std::sync::Arc::clone(&authority), authority);
    let changed = tokio::task::spawn_blocking(move || changing.revoke_device(device, &by)).await;
    changed.map_err(|error| Refusal::internal(format!("the device was not revoked: {error}")))??;
    app.gate.tokens().certificates_revoked(serials);
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
