//! Signed checkpoints: what the key holder says the log was at some count.
//!
//! A checkpoint is signed over `palyra.checkpoint.v1\n`, the journal's id, count, head hash, Merkle root, time and key id,
//! each of fixed length. The same type is the head in the database, the kept checkpoints, and the anchor kept apart.

use std::fmt;

use palyra_common::{Digest, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::convert::{to_sql, to_u64};
use crate::error::JournalError;
use crate::keys::{JournalKey, PublicKey};
use crate::record::Head;

const DOMAIN: &[u8] = b"palyra.checkpoint.v1\n";
/// Bytes of an encoded checkpoint.
pub(crate) const ENCODED: usize = 192;

/// The random name of one journal; its first hash is derived from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JournalId(pub(crate) [u8; 16]);

impl JournalId {
    /// The hash that stands before record 1.
    #[must_use]
    pub fn genesis(&self) -> Digest {
        let mut bytes = b"palyra.genesis.v1\n".to_vec();
        bytes.extend_from_slice(&self.0);
        Digest::of(&bytes)
    }
}

impl fmt::Display for JournalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for JournalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for JournalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JournalId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 16];
        hex::decode_to_slice(&text, &mut bytes).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes))
    }
}

/// A statement about the log, signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedCheckpoint {
    /// Which journal.
    pub journal_id: JournalId,
    /// How many records it covers.
    pub count: u64,
    /// Hash of the last of them.
    pub head: Digest,
    /// Root of the Merkle tree over their hashes.
    pub merkle_root: Digest,
    /// When it was signed.
    pub at: Timestamp,
    /// Digest of the public key.
    pub key_id: Digest,
    /// Ed25519 signature.
    #[serde(with = "signature_hex")]
    pub signature: [u8; 64],
}

impl SignedCheckpoint {
    /// Signs a statement.
    pub(crate) fn sign(
        key: &JournalKey,
        journal_id: JournalId,
        head: Head,
        merkle_root: Digest,
        at: Timestamp,
    ) -> Self {
        let mut unsigned = Self {
            journal_id,
            count: head.count,
            head: head.hash,
            merkle_root,
            at,
            key_id: key.public().id(),
            signature: [0; 64],
        };
        unsigned.signature = key.sign(&unsigned.message());
        unsigned
    }

    fn message(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(DOMAIN.len() + ENCODED);
        bytes.extend_from_slice(DOMAIN);
        self.put_fields(&mut bytes);
        bytes
    }

    fn put_fields(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.journal_id.0);
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes.extend_from_slice(&self.head.0);
        bytes.extend_from_slice(&self.merkle_root.0);
        bytes.extend_from_slice(&self.at.0.to_be_bytes());
        bytes.extend_from_slice(&self.key_id.0);
    }

    /// Whether one of these keys signed it.
    #[must_use]
    pub fn signed_by(&self, keys: &[PublicKey]) -> bool {
        keys.iter().any(|key| key.id() == self.key_id && key.signed(&self.message(), &self.signature))
    }

    /// Its fixed binary form, used by the anchor.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ENCODED);
        self.put_fields(&mut bytes);
        bytes.extend_from_slice(&self.signature);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; ENCODED]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<16>()?;
        let (count, rest) = rest.split_first_chunk::<8>()?;
        let (head, rest) = rest.split_first_chunk::<32>()?;
        let (merkle_root, rest) = rest.split_first_chunk::<32>()?;
        let (at, rest) = rest.split_first_chunk::<8>()?;
        let (key_id, rest) = rest.split_first_chunk::<32>()?;
        let (signature, _) = rest.split_first_chunk::<64>()?;
        Some(Self {
            journal_id: JournalId(*id),
            count: u64::from_be_bytes(*count),
            head: Digest(*head),
            merkle_root: Digest(*merkle_root),
            at: Timestamp(i64::from_be_bytes(*at)),
            key_id: Digest(*key_id),
            signature: *signature,
        })
    }

    /// Reads `count, head, merkle_root, at, key_id, signature`.
    pub(crate) fn from_row(journal_id: JournalId, row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            journal_id,
            count: to_u64(row.get(0)?),
            head: Digest(row.get(1)?),
            merkle_root: Digest(row.get(2)?),
            at: Timestamp(row.get(3)?),
            key_id: Digest(row.get(4)?),
            signature: row.get(5)?,
        })
    }
}

/// Replaces the signed head.
pub(crate) fn write_head(connection: &Connection, checkpoint: &SignedCheckpoint) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO head (slot, count, head, merkle_root, at, key_id, signature)
             VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            to_sql(checkpoint.count),
            checkpoint.head.0,
            checkpoint.merkle_root.0,
            checkpoint.at.0,
            checkpoint.key_id.0,
            checkpoint.signature
        ])?;
    Ok(())
}

/// Keeps a checkpoint; one that is already there stays as it is.
pub(crate) fn keep(connection: &Connection, checkpoint: &SignedCheckpoint) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO checkpoints (count, head, merkle_root, at, key_id, signature)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            to_sql(checkpoint.count),
            checkpoint.head.0,
            checkpoint.merkle_root.0,
            checkpoint.at.0,
            checkpoint.key_id.0,
            checkpoint.signature
        ])?;
    Ok(())
}

/// The signed head.
pub(crate) fn read_head(connection: &Connection, id: JournalId) -> Result<Option<SignedCheckpoint>, JournalError> {
    Ok(connection
        .query_row("SELECT count, head, merkle_root, at, key_id, signature FROM head WHERE slot = 1", [], |row| {
            SignedCheckpoint::from_row(id, row)
        })
        .optional()?)
}

/// The journal's id.
pub(crate) fn read_id(connection: &Connection) -> Result<Option<JournalId>, JournalError> {
    Ok(connection
        .query_row("SELECT value FROM meta WHERE name = 'journal_id'", [], |row| row.get::<_, [u8; 16]>(0))
        .optional()?
        .map(JournalId))
}

mod signature_hex {
    //! Signatures as hex digits.
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 64], D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut bytes = [0; 64];
        hex::decode_to_slice(&text, &mut bytes).map_err(serde::de::Error::custom)?;
        Ok(bytes)
    }
}
