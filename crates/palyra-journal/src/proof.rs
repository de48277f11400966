//! Inclusion proofs: one record, the path from it to a signed root, and everything needed to check that without the journal.

use palyra_common::{Digest, RunId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::anchor::{self, AnchorState};
use crate::checkpoint::SignedCheckpoint;
use crate::error::JournalError;
use crate::keys::{self, PublicKey};
use crate::merkle::{self, Hashes};
use crate::position::Position;
use crate::reader::Reader;
use crate::record::{StoredRecord, hash_of};

/// The record of a proof. Without its payload the proof still holds, by the payload's digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenRecord {
    /// Its number in the log.
    pub seq: u64,
    /// What happened.
    pub kind: String,
    /// When.
    pub at: Timestamp,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Its number on the run's tape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_seq: Option<u64>,
    /// The payload, byte for byte, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// Digest of the payload.
    pub payload_digest: Digest,
    /// Hash of the record before.
    pub prev_hash: Digest,
    /// Hash of this record.
    pub hash: Digest,
}

/// A proof that stands alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InclusionProof {
    /// Version of this format.
    pub version: u32,
    /// The record.
    pub record: ProvenRecord,
    /// Hashes of the sibling subtrees, from the record upwards.
    pub path: Vec<Digest>,
    /// What the path leads to.
    pub checkpoint: SignedCheckpoint,
    /// The key that signed it. Whoever checks the proof decides whether to trust that key.
    pub public_key: PublicKey,
}

impl InclusionProof {
    /// Checks every step from the payload to the signature.
    ///
    /// # Errors
    /// `proof_refuted`, naming the step that failed.
    pub fn verify(&self) -> Result<(), JournalError> {
        let refuted = |reason: &str| Err(JournalError::ProofRefuted { reason: reason.to_owned() });
        let record = &self.record;
        if self.version != 1 {
            return refuted("its format version is not supported");
        }
        if record.payload.as_ref().is_some_and(|payload| Digest::of(payload.as_bytes()) != record.payload_digest) {
            return refuted("the payload does not match the digest in the record");
        }
        let stored = StoredRecord {
            seq: record.seq,
            kind: record.kind.clone().into(),
            at: record.at,
            session_id: record.session_id,
            run_id: record.run_id,
            run_seq: record.run_seq,
            payload: Vec::new(),
            hash: record.hash,
            prev_hash: record.prev_hash,
        };
        if hash_of(&stored, &record.payload_digest) != record.hash {
            return refuted("the record does not match its own hash");
        }
        let Some(index) = record.seq.checked_sub(1) else { return refuted("records are numbered from 1") };
        let root = merkle::root_from_path(merkle::leaf(&record.hash), index, self.checkpoint.count, &self.path);
        if root != Some(self.checkpoint.merkle_root) {
            return refuted("the path does not lead to the root of the checkpoint");
        }
        if !self.checkpoint.signed_by(&[self.public_key]) {
            return refuted("the checkpoint was not signed with the key of the proof");
        }
        Ok(())
    }

    /// Checks the proof and that it was signed with a key the caller already trusts.
    ///
    /// # Errors
    /// `proof_refuted`.
    pub fn verify_with(&self, trusted: &PublicKey) -> Result<(), JournalError> {
        if self.public_key != *trusted {
            return Err(JournalError::ProofRefuted { reason: "it was signed with another key".to_owned() });
        }
        self.verify()
    }
}

impl Hashes for Reader {
    type Error = JournalError;
    fn leaves(&self, from: u64, to: u64) -> Result<Vec<Digest>, JournalError> {
        Ok(self.hashes(from + 1, to + 1)?.iter().map(merkle::leaf).collect())
    }
    fn chunk(&self, chunk: u64) -> Result<Digest, JournalError> {
        self.chunk_root(chunk)
    }
}

impl Reader {
    /// A proof that a record is in the log, under the last statement of this state that covers it.
    ///
    /// # Errors
    /// `record_not_found`; `record_unsigned` if it was committed right before a crash and nobody has signed it since;
    /// `journal_damaged` if what is stored does not lead to the signed root.
    pub fn prove(&self, seq: u64) -> Result<InclusionProof, JournalError> {
        let count = self.head()?.count;
        if seq == 0 || seq > count {
            return Err(JournalError::NoSuchRecord { seq, count });
        }
        let mut statements = vec![self.signed_head()?];
        if let AnchorState::Says(anchored) = anchor::read(&self.layout().anchor())? {
            statements.push(*anchored);
        }
        // A writer may be ahead of this view.
        let covering = statements.into_iter().filter(|said| (seq..=count).contains(&said.count));
        let checkpoint = covering.max_by_key(|said| said.count).ok_or(JournalError::Unsigned { seq })?;
        self.prove_under(seq, checkpoint)
    }

    /// A proof under a given statement about this view.
    pub(crate) fn prove_under(&self, seq: u64, checkpoint: SignedCheckpoint) -> Result<InclusionProof, JournalError> {
        if seq == 0 || seq > checkpoint.count {
            return Err(JournalError::NoSuchRecord { seq, count: checkpoint.count });
        }
        let record = self.record(seq)?;
        let path = merkle::path(self, seq.saturating_sub(1), checkpoint.count)?;
        let keys = keys::public_keys(self.layout())?;
        let public_key =
            keys.into_iter().find(|key| key.id() == checkpoint.key_id).ok_or_else(|| JournalError::Key {
                path: self.layout().public_keys(),
                reason: "it does not contain the key that signed the head".to_owned(),
            })?;
        let payload_digest = Digest::of(&record.payload);
        let proof = InclusionProof {
            version: 1,
            record: ProvenRecord {
                seq: record.seq,
                kind: record.kind.into_owned(),
                at: record.at,
                session_id: record.session_id,
                run_id: record.run_id,
                run_seq: record.run_seq,
                payload: String::from_utf8(record.payload).ok(),
                payload_digest,
                prev_hash: record.prev_hash,
                hash: record.hash,
            },
            path,
            checkpoint,
            public_key,
        };
        proof.verify().map_err(|e| JournalError::damaged(Position::Record { seq }, e.to_string()))?;
        Ok(proof)
    }
}
