//! Records: what is appended, what is stored, and the bytes a record's hash is taken over.
//!
//! # The hash of a record
//!
//! SHA-256 over these fields, one after the other, integers big-endian:
//!
//! | field | bytes |
//! |---|---|
//! | `palyra.record.v1\n` | 17 |
//! | hash of the record before (for record 1: the genesis hash) | 32 |
//! | `seq` | 8 |
//! | `at`, milliseconds since 1970 | 8 |
//! | length of `kind`, then `kind` in UTF-8 | 4 + n |
//! | `session_id`: `0`, or `1` and the id | 1 or 17 |
//! | `run_id`: `0`, or `1` and the id | 1 or 17 |
//! | `run_seq`: `0`, or `1` and the number | 1 or 9 |
//! | SHA-256 of the payload | 32 |
//!
//! The payload enters by its digest, so the hash does not depend on whether the payload is stored in the row or as an
//! artifact, and a proof can be checked by someone who may not see the payload.

use std::borrow::Cow;

use palyra_common::{Digest, RunId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::JournalError;

/// A kind longer than this is a mistake of the caller.
const MAX_KIND_BYTES: usize = 128;
/// A payload above this cannot be held in memory by every reader; larger things are artifacts that a record names.
const MAX_PAYLOAD_BYTES: usize = 64 * 1024 * 1024;
const DOMAIN: &[u8] = b"palyra.record.v1\n";

/// A record before it has a place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// What happened, such as `run_created`.
    pub kind: Cow<'static, str>,
    /// When, by the clock of whoever appends.
    pub at: Timestamp,
    /// The session it belongs to.
    pub session_id: Option<SessionId>,
    /// The run it belongs to.
    pub run_id: Option<RunId>,
    /// Its number on the run's tape: given by the run's one driver, without gaps from 1.
    pub run_seq: Option<u64>,
    /// JSON.
    pub payload: Vec<u8>,
}

impl NewRecord {
    /// A record that belongs to no session and no run.
    #[must_use]
    pub fn new(kind: impl Into<Cow<'static, str>>, at: Timestamp, payload: Vec<u8>) -> Self {
        Self { kind: kind.into(), at, session_id: None, run_id: None, run_seq: None, payload }
    }

    /// Says to which session the record belongs.
    #[must_use]
    pub fn in_session(mut self, session: SessionId) -> Self {
        self.session_id = Some(session);
        self
    }

    /// Puts the record on a run's tape.
    #[must_use]
    pub fn on_tape(mut self, run: RunId, run_seq: u64) -> Self {
        self.run_id = Some(run);
        self.run_seq = Some(run_seq);
        self
    }
}

/// A record as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its number in the log, without gaps from 1.
    pub seq: u64,
    /// What happened.
    pub kind: Cow<'static, str>,
    /// When.
    pub at: Timestamp,
    /// The session it belongs to.
    pub session_id: Option<SessionId>,
    /// The run it belongs to.
    pub run_id: Option<RunId>,
    /// Its number on the run's tape.
    pub run_seq: Option<u64>,
    /// JSON.
    pub payload: Vec<u8>,
    /// Hash of this record.
    pub hash: Digest,
    /// Hash of the record before.
    pub prev_hash: Digest,
}

impl StoredRecord {
    /// The hash that follows from the other fields; it differs from `hash` if anything was changed.
    #[must_use]
    pub fn computed_hash(&self) -> Digest {
        hash_of(self, &Digest::of(&self.payload))
    }

    /// The payload as a value of some type.
    ///
    /// # Errors
    /// If the payload does not have that shape.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.payload)
    }
}

/// The end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// How many records there are.
    pub count: u64,
    /// Hash of the last one; the genesis hash if there is none.
    pub hash: Digest,
}

/// The hash of a record whose payload has this digest.
pub(crate) fn hash_of(record: &StoredRecord, payload: &Digest) -> Digest {
    let mut bytes = Vec::with_capacity(192 + record.kind.len());
    bytes.extend_from_slice(DOMAIN);
    bytes.extend_from_slice(&record.prev_hash.0);
    bytes.extend_from_slice(&record.seq.to_be_bytes());
    bytes.extend_from_slice(&record.at.0.to_be_bytes());
    bytes.extend_from_slice(&u32::try_from(record.kind.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend_from_slice(record.kind.as_bytes());
    optional(&mut bytes, record.session_id.map(|id| id.to_u128().to_be_bytes()));
    optional(&mut bytes, record.run_id.map(|id| id.to_u128().to_be_bytes()));
    optional(&mut bytes, record.run_seq.map(u64::to_be_bytes));
    bytes.extend_from_slice(&payload.0);
    Digest::of(&bytes)
}

fn optional<const N: usize>(bytes: &mut Vec<u8>, value: Option<[u8; N]>) {
    match value {
        None => bytes.push(0),
        Some(value) => {
            bytes.push(1);
            bytes.extend_from_slice(&value);
        }
    }
}

/// A record on its way to the writer: checked, its payload digested, its place not yet known.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) record: StoredRecord,
    pub(crate) payload_digest: Digest,
}

impl Entry {
    /// Checks everything that can be checked without the log; runs on the caller's thread.
    pub(crate) fn prepare(new: NewRecord) -> Result<Self, JournalError> {
        if new.kind.is_empty() || new.kind.len() > MAX_KIND_BYTES {
            return Err(JournalError::invalid(format!("its kind must have 1 to {MAX_KIND_BYTES} bytes")));
        }
        if new.run_seq.is_some() && new.run_id.is_none() {
            return Err(JournalError::invalid("it has a sequence number in a run but names no run"));
        }
        if new.payload.len() > MAX_PAYLOAD_BYTES {
            return Err(JournalError::invalid(format!("its payload has more than {MAX_PAYLOAD_BYTES} bytes")));
        }
        if let Err(error) = serde_json::from_slice::<&serde_json::value::RawValue>(&new.payload) {
            return Err(JournalError::invalid(format!("its payload is not valid JSON: {error}")));
        }
        let payload_digest = Digest::of(&new.payload);
        let zero = Digest([0; 32]);
        let record = StoredRecord {
            seq: 0,
            kind: new.kind,
            at: new.at,
            session_id: new.session_id,
            run_id: new.run_id,
            run_seq: new.run_seq,
            payload: new.payload,
            hash: zero,
            prev_hash: zero,
        };
        Ok(Self { record, payload_digest })
    }
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
