//! The anchor: the last signed head, kept apart from the database.
//!
//! It is written after each commit without waiting for the disk, so it is never ahead of what is durable and costs a few
//! microseconds. Two slots are written in turn, each with a generation and a digest: a torn write leaves the other one good.
//! A database that is behind its anchor was truncated or replaced by an older copy.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use palyra_common::Digest;

use crate::checkpoint::{ENCODED, SignedCheckpoint};
use crate::error::JournalError;
use crate::layout::{Layout, sync_dir};

const MAGIC: &[u8; 8] = b"PLYANCH1";
/// One slot per disk sector, so that writing one does not touch the other.
const SLOT_BYTES: u64 = 512;
const USED: usize = 8 + 8 + ENCODED + 32;

/// The anchor file of a writer.
#[derive(Debug)]
pub(crate) struct Anchor {
    file: File,
    generation: u64,
}

impl Anchor {
    /// Opens the anchor for writing; what it held before is returned too.
    pub(crate) fn open(path: &Path) -> Result<(Self, Option<SignedCheckpoint>), JournalError> {
        let failed = |e| JournalError::file("open", path, e);
        let (generation, last) = read_slots(path).map_err(failed)?.map_or((0, None), |(g, c)| (g, Some(c)));
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
        Ok((Self { file, generation }, last))
    }

    /// Notes a new head.
    pub(crate) fn write(&mut self, checkpoint: &SignedCheckpoint) -> io::Result<()> {
        self.generation += 1;
        let mut bytes = Vec::with_capacity(USED);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.generation.to_be_bytes());
        bytes.extend_from_slice(&checkpoint.encode());
        let digest = Digest::of(&bytes);
        bytes.extend_from_slice(&digest.0);
        self.file.write_all_at(&bytes, (self.generation % 2) * SLOT_BYTES)
    }

    /// Makes it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

/// Both copies of a writer's anchor: beside the database, and outside `journal/`.
#[derive(Debug)]
pub(crate) struct Anchors {
    beside: Anchor,
    outer: Anchor,
}

impl Anchors {
    pub(crate) fn open(layout: &Layout) -> Result<Self, JournalError> {
        Ok(Self { beside: Anchor::open(&layout.anchor())?.0, outer: Anchor::open(&layout.outer_anchor())?.0 })
    }

    /// Notes a new head in both.
    pub(crate) fn write(&mut self, checkpoint: &SignedCheckpoint) -> io::Result<()> {
        let outer = self.outer.write(checkpoint);
        self.beside.write(checkpoint).and(outer)
    }

    /// Makes it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.outer.sync()?;
        self.beside.sync()
    }
}

/// Writes both copies from nothing, durably.
pub(crate) fn create_both(layout: &Layout, checkpoint: &SignedCheckpoint) -> Result<(), JournalError> {
    create(&layout.outer_anchor(), checkpoint)?;
    create(&layout.anchor(), checkpoint)
}

/// Writes an anchor file from nothing, durably.
pub(crate) fn create(path: &Path, checkpoint: &SignedCheckpoint) -> Result<(), JournalError> {
    let (mut anchor, _) = Anchor::open(path)?;
    anchor.write(checkpoint).and_then(|()| anchor.sync()).map_err(|e| JournalError::file("write", path, e))?;
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    sync_dir(dir).map_err(|e| JournalError::file("sync", dir, e))
}

/// What an anchor file says; `None` if there is no file.
pub(crate) fn read(path: &Path) -> Result<AnchorState, JournalError> {
    match read_slots(path) {
        Ok(Some((_, checkpoint))) => Ok(AnchorState::Says(Box::new(checkpoint))),
        // A crash between making the file and its first write leaves it empty, which says no more than a missing one.
        Ok(None) if path.metadata().is_ok_and(|metadata| metadata.len() > 0) => Ok(AnchorState::Unreadable),
        Ok(None) => Ok(AnchorState::Missing),
        Err(error) => Err(JournalError::file("read", path, error)),
    }
}

/// What was found where the anchor should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnchorState {
    Says(Box<SignedCheckpoint>),
    Unreadable,
    Missing,
}

fn read_slots(path: &Path) -> io::Result<Option<(u64, SignedCheckpoint)>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    // A file that is not an anchor may be of any size.
    (&mut file).take(2 * SLOT_BYTES).read_to_end(&mut bytes)?;
    let slots = [0, SLOT_BYTES].into_iter().filter_map(|at| {
        let at = usize::try_from(at).ok()?;
        decode_slot(bytes.get(at..at + USED)?)
    });
    Ok(slots.max_by_key(|(generation, _)| *generation))
}

/// Whether an anchor lost one of its two copies, as a crash in the middle of a write leaves it.
pub(crate) fn lost_a_copy(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    let copies = [0, SLOT_BYTES].into_iter().filter_map(|at| {
        let at = usize::try_from(at).ok()?;
        decode_slot(bytes.get(at..at + USED)?)
    });
    let generations: Vec<u64> = copies.map(|(generation, _)| generation).collect();
    // The first write fills one of them.
    matches!(generations.as_slice(), [only] if *only > 1)
}

fn decode_slot(slot: &[u8]) -> Option<(u64, SignedCheckpoint)> {
    let (body, digest) = slot.split_last_chunk::<32>()?;
    let (magic, rest) = body.split_first_chunk::<8>()?;
    let (generation, rest) = rest.split_first_chunk::<8>()?;
    let encoded = rest.first_chunk::<ENCODED>()?;
    (magic == MAGIC && Digest::of(body).0 == *digest)
        .then(|| SignedCheckpoint::decode(encoded))
        .flatten()
        .map(|checkpoint| (u64::from_be_bytes(*generation), checkpoint))
}

#[cfg(test)]
mod tests {
    use palyra_common::Timestamp;

    use super::*;
    use crate::checkpoint::JournalId;

    fn checkpoint(count: u64) -> SignedCheckpoint {
        SignedCheckpoint {
            journal_id: JournalId([1; 16]),
            count,
            head: Digest([2; 32]),
            merkle_root: Digest([3; 32]),
            at: Timestamp(4),
            key_id: Digest([5; 32]),
            signature: [6; 64],
        }
    }

    #[test]
    fn a_torn_write_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("anchor");
        assert_eq!(read(&path).unwrap(), AnchorState::Missing);
        let (mut anchor, _) = Anchor::open(&path).unwrap();
        assert_eq!(read(&path).unwrap(), AnchorState::Missing, "made, but never written");
        for count in 1..=5 {
            anchor.write(&checkpoint(count)).unwrap();
        }
        assert_eq!(read(&path).unwrap(), AnchorState::Says(Box::new(checkpoint(5))));
        // Generation 5 lies in the second slot.
        anchor.file.write_all_at(b"torn", 512 + 40).unwrap();
        assert_eq!(read(&path).unwrap(), AnchorState::Says(Box::new(checkpoint(4))));
        anchor.file.write_all_at(b"torn", 40).unwrap();
        assert_eq!(read(&path).unwrap(), AnchorState::Unreadable);
    }
}
