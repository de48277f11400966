//! Certificates that were issued to devices: a list on disk, so that a lost device can be found and its certificates taken back.
//!
//! A certificate is on the list before anybody gets it. A list that cannot be read refuses to open: a device that nobody can find is one that nobody can
//! shut out. An entry is dropped when its certificate has run out.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use palyra_common::{DeviceId, PrincipalRole, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{IdentityError, PrincipalId, Serial, private_files};

/// A certificate that was issued and has not run out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuedCertificate {
    /// The certificate.
    pub serial: Serial,
    /// The device that holds it.
    pub device: DeviceId,
    /// For whom it acts.
    pub principal: PrincipalId,
    /// As what.
    pub role: PrincipalRole,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// When it runs out.
    pub expires_at: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    issued: Vec<IssuedCertificate>,
}

const VERSION: u32 = 1;

/// The certificates that are out there.
#[derive(Debug)]
pub(crate) struct Issued {
    path: PathBuf,
    known: RwLock<Vec<IssuedCertificate>>,
}

impl Issued {
    pub(crate) fn open(path: PathBuf) -> Result<Self, IdentityError> {
        let issued = Self { path, known: RwLock::default() };
        issued.read()?;
        Ok(issued)
    }

    /// Notes a certificate that is about to be handed out.
    pub(crate) fn add(&self, certificate: IssuedCertificate) -> Result<(), IdentityError> {
        let now = certificate.issued_at;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // From the file: a tool of the same owner may have issued one meanwhile.
        let mut issued = read(&self.path)?;
        issued.retain(|entry| entry.expires_at > now);
        issued.push(certificate);
        let stored = Stored { version: VERSION, issued };
        let text = serde_json::to_string_pretty(&stored)
            .map_err(|error| IdentityError::Unusable { path: self.path.clone(), reason: error.to_string() })?;
        private_files::replace(&self.path, &format!("{text}\n"))?;
        *known = stored.issued;
        Ok(())
    }

    /// What has not run out, oldest first, as the file has it now.
    pub(crate) fn list(&self, now: Timestamp) -> Result<Vec<IssuedCertificate>, IdentityError> {
        let mut issued = self.read()?;
        issued.retain(|entry| entry.expires_at > now);
        Ok(issued)
    }

    /// When a certificate runs out, if it is known.
    pub(crate) fn expiry(&self, serial: &Serial) -> Option<Timestamp> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|entry| entry.serial == *serial).map(|entry| entry.expires_at)
    }

    fn read(&self) -> Result<Vec<IssuedCertificate>, IdentityError> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        *known = read(&self.path)?;
        Ok(known.clone())
    }
}

fn read(path: &Path) -> Result<Vec<IssuedCertificate>, IdentityError> {
    let Some(text) = private_files::read(path)? else { return Ok(Vec::new()) };
    let unusable = |reason: String| IdentityError::Unusable { path: path.to_owned(), reason };
    let stored: Stored = serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
    if stored.version != VERSION {
        return Err(unusable(format!("its version is {}, not {VERSION}", stored.version)));
    }
    Ok(stored.issued)
}

#[cfg(test)]
mod tests {
    use palyra_common::ToStableError as _;

    use super::*;

    fn certificate(device: u128, issued_at: i64, expires_at: i64) -> IssuedCertificate {
        IssuedCertificate {
            serial: Serial::generate().unwrap(),
            device: DeviceId::from_u128(device),
            principal: PrincipalId::uid(7),
            role: PrincipalRole::Owner,
            issued_at: Timestamp(issued_at),
            expires_at: Timestamp(expires_at),
        }
    }

    #[test]
    fn what_is_out_there_is_kept_until_it_has_run_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("issued.json");
        let issued = Issued::open(path.clone()).unwrap();
        let (one, two) = (certificate(1, 0, 100), certificate(2, 150, 300));
        issued.add(one.clone()).unwrap();
        assert_eq!(issued.expiry(&one.serial), Some(Timestamp(100)));
        issued.add(two.clone()).unwrap();
        let again = Issued::open(path.clone()).unwrap();
        assert_eq!(again.list(Timestamp(200)).unwrap(), [two]);
        assert_eq!(again.expiry(&one.serial), None, "it ran out before the second was issued");
        assert!(again.list(Timestamp(300)).unwrap().is_empty());
        std::fs::write(&path, "{}").unwrap();
        assert_eq!(Issued::open(path).unwrap_err().to_stable().code, "identity_file_unusable");
    }
}
