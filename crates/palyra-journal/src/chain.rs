//! The end of the log in memory: last hash and Merkle peaks, and how they are found again when a journal is opened.
//!
//! Opening never walks the log. It reads the last record, what was signed last, the last stored chunk and at most a chunk of hashes after it, and
//! checks that they agree with each other; the whole log is [`crate::verify`]'s business.

use std::path::{Path, PathBuf};

use palyra_common::{Clock, Digest};
use rusqlite::{Connection, params};

use crate::anchor::AnchorState;
use crate::checkpoint::{JournalId, SignedCheckpoint};
use crate::convert::to_sql;
use crate::error::JournalError;
use crate::keys::{JournalKey, PublicKey};
use crate::merkle::{self, CHUNK, Peaks};
use crate::position::Position;
use crate::reader::Reader;
use crate::record::{Head, hash_of};
use crate::row::RawRecord;
use crate::seal::SealKey;

/// Records at the end whose hashes are recomputed at every start.
const CHECKED_AT_OPEN: u64 = 64;

/// The end of the log.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub(crate) id: JournalId,
    pub(crate) head: Head,
    peaks: Peaks,
}

impl Chain {
    /// A log without records.
    pub(crate) fn empty(id: JournalId) -> Self {
        Self { id, head: Head { count: 0, hash: id.genesis() }, peaks: Peaks::default() }
    }

    /// Goes on by one record; a chunk that it completes is stored.
    pub(crate) fn push(&mut self, connection: &Connection, hash: Digest) -> rusqlite::Result<()> {
        self.head = Head { count: self.head.count + 1, hash };
        if let Some(root) = self.peaks.push(merkle::leaf(&hash)) {
            connection
                .prepare_cached("INSERT INTO merkle_chunks (chunk, root, peaks) VALUES (?1, ?2, ?3)")?
                .execute(params![to_sql(self.head.count / CHUNK - 1), root.0, self.peaks.encode()])?;
        }
        Ok(())
    }

    pub(crate) fn root(&self) -> Digest {
        self.peaks.root()
    }

    /// A signed statement about this end.
    pub(crate) fn sign(&self, key: &JournalKey, clock: &dyn Clock) -> SignedCheckpoint {
        SignedCheckpoint::sign(key, self.id, self.head, self.root(), clock.now())
    }

    /// Finds the end of an existing log and checks everything that can be checked without walking it.
    pub(crate) fn load(
        reader: &Reader,
        keys: &[PublicKey],
        seals: Option<&SealKey>,
        anchors: &[(PathBuf, AnchorState)],
    ) -> Result<Self, JournalError> {
        let (id, head) = (reader.id()?, reader.head()?);
        let signed = reader.signed_head()?;
        if !signed.signed_by(keys) {
            let position = Position::Record { seq: signed.count };
            return Err(JournalError::damaged(position, "the signed head was not signed with this journal's key"));
        }
        let mut statements = vec![signed];
        for (file, anchor) in anchors {
            statements.extend(check_anchor(keys, (file, anchor), id, head)?);
        }
        let signed_through = statements.iter().map(|said| said.count).max().unwrap_or(0);
        check_seal(reader, seals, id, head, signed_through)?;
        check_end(reader, head, id, signed_through)?;
        let chunks = head.count / CHUNK;
        let mut peaks = if chunks == 0 { Peaks::default() } else { stored_peaks(reader, chunks - 1)? };
        let mut hashes = reader.hashes(chunks * CHUNK + 1, head.count + 1)?.into_iter();
        loop {
            for said in statements.iter().filter(|said| said.count == peaks.count()) {
                check_root(said, &peaks)?;
            }
            let Some(hash) = hashes.next() else { break };
            peaks.push(merkle::leaf(&hash));
        }
        for said in &statements {
            check_hash(reader, said)?;
        }
        Ok(Self { id, head, peaks })
    }
}

fn check_root(said: &SignedCheckpoint, peaks: &Peaks) -> Result<(), JournalError> {
    if peaks.root() == said.merkle_root {
        return Ok(());
    }
    let position = Position::Record { seq: said.count };
    Err(JournalError::damaged(position, "the hash tree does not lead to the signed root"))
}

/// The record that a statement ends with must be the one it was signed over.
fn check_hash(reader: &Reader, said: &SignedCheckpoint) -> Result<(), JournalError> {
    let hash = match said.count {
        0 => said.journal_id.genesis(),
        count => reader.hashes(count, count + 1)?.first().copied().unwrap_or(Digest([0; 32])),
    };
    if hash == said.head {
        return Ok(());
    }
    Err(JournalError::damaged(Position::Record { seq: said.count }, "it is not the record that was signed"))
}

/// What follows the last signature must end with a seal of this journal's key.
fn check_seal(
    reader: &Reader,
    seals: Option<&SealKey>,
    id: JournalId,
    head: Head,
    signed_through: u64,
) -> Result<(), JournalError> {
    if head.count <= signed_through {
        return Ok(());
    }
    let seal = reader.seal(head.count)?.unwrap_or_default();
    if seals.is_some_and(|key| key.sealed(id, head, &seal)) {
        return Ok(());
    }
    let position = Position::Records { first: signed_through + 1, last: head.count };
    Err(JournalError::damaged(position, "they follow the signed head but are not sealed by this journal"))
}

fn stored_peaks(reader: &Reader, chunk: u64) -> Result<Peaks, JournalError> {
    let position = Position::Table { table: "merkle_chunks".to_owned(), row: chunk + 1 };
    let peaks: Vec<u8> = reader
        .connection()
        .query_row("SELECT peaks FROM merkle_chunks WHERE chunk = ?1", [to_sql(chunk)], |row| row.get(0))
        .map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => JournalError::damaged(position.clone(), "it is missing"),
            other => other.into(),
        })?;
    Peaks::decode((chunk + 1) * CHUNK, &peaks).ok_or_else(|| JournalError::damaged(position, "it cannot be read"))
}

/// The database may be ahead of its anchor (by what was committed just before a crash), never behind it.
fn check_anchor(
    keys: &[PublicKey],
    (file, anchor): (&Path, &AnchorState),
    id: JournalId,
    head: Head,
) -> Result<Option<SignedCheckpoint>, JournalError> {
    let file = || Position::File { file: file.to_owned() };
    let anchored = match anchor {
        AnchorState::Says(checkpoint) => checkpoint,
        // Nothing was ever acknowledged: the anchor is made right after the database.
        AnchorState::Missing if head.count == 0 => return Ok(None),
        AnchorState::Missing => return Err(JournalError::damaged(file(), "the anchor is missing")),
        AnchorState::Unreadable => return Err(JournalError::damaged(file(), "the anchor cannot be read")),
    };
    if anchored.journal_id != id || !anchored.signed_by(keys) {
        return Err(JournalError::damaged(file(), "the anchor belongs to another journal"));
    }
    if anchored.count > head.count {
        let position = Position::Records { first: head.count + 1, last: anchored.count };
        return Err(JournalError::damaged(
            position,
            "they were acknowledged but are missing: the journal was truncated or replaced with an older copy",
        ));
    }
    Ok(Some((**anchored).clone()))
}

/// The last records, and all that follow the last signature, must be there, unchanged and linked.
fn check_end(reader: &Reader, head: Head, id: JournalId, signed_through: u64) -> Result<(), JournalError> {
    let first = head.count.saturating_sub(CHECKED_AT_OPEN).min(signed_through) + 1;
    let mut expected = first;
    let mut before = if first == 1 { Some(id.genesis()) } else { None };
    for record in reader.range(first, usize::try_from(head.count + 1 - first).unwrap_or(usize::MAX))? {
        let broken = |reason: &str| Err(JournalError::damaged(Position::Record { seq: expected }, reason));
        if record.seq != expected {
            return broken("it is missing");
        }
        if before.is_some_and(|hash| hash != record.prev_hash) {
            return broken("it does not follow from the previous record");
        }
        let raw = RawRecord { record, artifact: None };
        if hash_of(&raw.record, &raw.payload_digest()) != raw.record.hash {
            return broken("it was modified");
        }
        before = Some(raw.record.hash);
        expected += 1;
    }
    if expected != head.count + 1 {
        return Err(JournalError::damaged(Position::Record { seq: expected }, "it is missing"));
    }
    Ok(())
}
