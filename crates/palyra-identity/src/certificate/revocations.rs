//! Certificates that were taken back: a list on disk and its copy in memory, which every handshake asks.
//!
//! A revocation counts once it is on disk. A list that cannot be read refuses to open: without it a stolen certificate would work
//! again. An entry is dropped when every certificate of its time has run out by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use palyra_common::Timestamp;
use serde::{Deserialize, Serialize};

use super::issue::MAX_CLIENT_LIFE;
use crate::{IdentityError, PrincipalId, Serial, private_files};

/// A certificate that was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// The certificate.
    pub serial: Serial,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: PrincipalId,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    revoked: Vec<Revocation>,
}

const VERSION: u32 = 1;

/// The certificates that were taken back.
#[derive(Debug)]
pub(crate) struct Revocations {
    path: PathBuf,
    known: RwLock<BTreeMap<Serial, Revocation>>,
}

impl Revocations {
    pub(crate) fn open(path: PathBuf) -> Result<Self, IdentityError> {
        let known = match private_files::read(&path)? {
            None => BTreeMap::new(),
            Some(text) => {
                let unusable = |reason: String| IdentityError::Unusable { path: path.clone(), reason };
                let stored: Stored = serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
                if stored.version != VERSION {
                    return Err(unusable(format!("its version is {}, not {VERSION}", stored.version)));
                }
                stored.revoked.into_iter().map(|entry| (entry.serial.clone(), entry)).collect()
            }
        };
        Ok(Self { path, known: RwLock::new(known) })
    }

    pub(crate) fn contains(&self, serial: &Serial) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains_key(serial)
    }

    /// Takes a certificate back; one that was taken back before stays so.
    pub(crate) fn add(&self, serial: &Serial, by: &PrincipalId, now: Timestamp) -> Result<(), IdentityError> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.contains_key(serial) {
            return Ok(());
        }
        let mut next = known.clone();
        next.retain(|_, entry| now.since(entry.at) <= MAX_CLIENT_LIFE);
        next.insert(serial.clone(), Revocation { serial: serial.clone(), at: now, by: by.clone() });
        let stored = Stored { version: VERSION, revoked: next.values().cloned().collect() };
        let text = serde_json::to_string_pretty(&stored)
            .map_err(|error| IdentityError::Unusable { path: self.path.clone(), reason: error.to_string() })?;
        private_files::replace(&self.path, &format!("{text}\n"))?;
        *known = next;
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<Revocation> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use palyra_common::ToStableError as _;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    #[test]
    fn a_revocation_survives_and_is_dropped_when_nothing_of_its_time_lives() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("revoked.json");
        let by = PrincipalId::uid(1);
        let (old, new): (Serial, Serial) = ("0a".parse().unwrap(), "0b".parse().unwrap());
        let list = Revocations::open(path.clone()).unwrap();
        assert!(!list.contains(&old));
        list.add(&old, &by, NOW).unwrap();
        list.add(&old, &by, NOW.plus(Duration::from_secs(9))).unwrap();
        assert!(list.contains(&old));
        let read = Revocations::open(path.clone()).unwrap();
        assert_eq!(read.list(), [Revocation { serial: old.clone(), at: NOW, by: by.clone() }]);
        read.add(&new, &by, NOW.plus(MAX_CLIENT_LIFE + Duration::from_secs(1))).unwrap();
        assert!(!read.contains(&old) && read.contains(&new));
    }

    #[test]
    fn a_list_that_cannot_be_read_refuses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("revoked.json");
        for text in ["", "{}", "[]", "{\"version\":2,\"revoked\":[]}", "{\"version\":1,\"revoked\":[{}]}"] {
            private_files::replace(&path, text).unwrap();
            let error = Revocations::open(path.clone()).unwrap_err();
            assert_eq!(error.to_stable().code, "identity_file_unusable", "{text}");
        }
    }

    #[test]
    fn a_revocation_that_cannot_be_stored_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let list = Revocations::open(directory.path().join("missing/revoked.json")).unwrap();
        let serial: Serial = "0a".parse().unwrap();
        assert!(list.add(&serial, &PrincipalId::uid(1), NOW).is_err());
        assert!(!list.contains(&serial));
    }
}
