//! The Merkle tree over record hashes, in the manner of RFC 6962.
//!
//! Owns the arithmetic alone; where hashes are kept is [`crate::chunks`]'s business. Leaf and node hashes are taken in
//! different domains (first byte 0 or 1), so that no inner node can be passed off as a record. A tree of n leaves is split at
//! the largest power of two below n.
//!
//! INVARIANT: [`Peaks`] holds one root per set bit of the number of leaves, largest subtree first; pushing a leaf costs
//! as many hashes as the count has trailing zero bits afterwards, one on average.

use palyra_common::Digest;
use sha2::{Digest as _, Sha256};

/// log2 of [`CHUNK`].
const CHUNK_LEVEL: u32 = 10;
/// Leaves of the aligned subtrees whose roots are stored: a proof then needs one chunk of leaves and n/1024 roots.
pub(crate) const CHUNK: u64 = 1 << CHUNK_LEVEL;

/// The leaf for a record.
pub(crate) fn leaf(record_hash: &Digest) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(record_hash.0);
    Digest(hasher.finalize().into())
}

/// The parent of two subtrees.
pub(crate) fn node(left: &Digest, right: &Digest) -> Digest {
    let mut hasher = Sha256::new();
    hasher.update([1]);
    hasher.update(left.0);
    hasher.update(right.0);
    Digest(hasher.finalize().into())
}

/// Everything needed to go on building a tree: the roots of its complete subtrees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Peaks {
    count: u64,
    roots: Vec<Digest>,
}

impl Peaks {
    /// The peaks of a tree of `count` leaves as they were encoded, unless their number is wrong.
    pub(crate) fn decode(count: u64, bytes: &[u8]) -> Option<Self> {
        let (roots, rest) = bytes.as_chunks::<32>();
        let fits = rest.is_empty() && roots.len() == usize::try_from(count.count_ones()).ok()?;
        fits.then(|| Self { count, roots: roots.iter().map(|r| Digest(*r)).collect() })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.roots.iter().flat_map(|r| r.0).collect()
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a leaf. When it completes an aligned chunk, returns that chunk's root.
    pub(crate) fn push(&mut self, leaf: Digest) -> Option<Digest> {
        self.count += 1;
        let mut merged = leaf;
        let mut chunk = None;
        for level in 0..self.count.trailing_zeros() {
            if let Some(left) = self.roots.pop() {
                merged = node(&left, &merged);
            }
            if level + 1 == CHUNK_LEVEL {
                chunk = Some(merged);
            }
        }
        self.roots.push(merged);
        chunk
    }

    /// The root of the whole tree; the hash of nothing for an empty one.
    pub(crate) fn root(&self) -> Digest {
        let mut from_right = self.roots.iter().rev();
        match from_right.next() {
            None => Digest::of(&[]),
            Some(last) => from_right.fold(*last, |right, left| node(left, &right)),
        }
    }
}

/// Where leaves and chunk roots come from when a path is computed.
pub(crate) trait Hashes {
    /// What reading can fail with.
    type Error;
    /// The leaves `from..to`, counted from 0.
    fn leaves(&self, from: u64, to: u64) -> Result<Vec<Digest>, Self::Error>;
    /// The root of the chunk with this number; asked only for complete chunks.
    fn chunk(&self, chunk: u64) -> Result<Digest, Self::Error>;
}

/// The largest power of two below `n`, for `n` of 2 or more.
fn split(n: u64) -> u64 {
    1 << (63 - (n - 1).leading_zeros())
}

/// The root of the subtree over `from..to`.
fn subtree<H: Hashes>(hashes: &H, from: u64, to: u64) -> Result<Digest, H::Error> {
    let size = to - from;
    if size == CHUNK && from.is_multiple_of(CHUNK) {
        return hashes.chunk(from / CHUNK);
    }
    if size < CHUNK {
        let mut peaks = Peaks::default();
        for leaf in hashes.leaves(from, to)? {
            peaks.push(leaf);
        }
        return Ok(peaks.root());
    }
    let middle = from + split(size);
    Ok(node(&subtree(hashes, from, middle)?, &subtree(hashes, middle, to)?))
}

/// The audit path of leaf `index` in the tree of the first `size` leaves, from the leaf upwards.
pub(crate) fn path<H: Hashes>(hashes: &H, index: u64, size: u64) -> Result<Vec<Digest>, H::Error> {
    let mut path = Vec::new();
    let (mut from, mut to) = (0, size);
    while to - from > 1 {
        let middle = from + split(to - from);
        if to - from <= CHUNK {
            // Below a chunk one read of its leaves serves all remaining levels.
            let leaves = hashes.leaves(from, to)?;
            path_in(&leaves, usize::try_from(index - from).unwrap_or(usize::MAX), &mut path);
            break;
        }
        if index < middle {
            path.push(subtree(hashes, middle, to)?);
            to = middle;
        } else {
            path.push(subtree(hashes, from, middle)?);
            from = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// Appends the path of a leaf in a small tree, from the root downwards.
fn path_in(leaves: &[Digest], index: usize, path: &mut Vec<Digest>) {
    if leaves.len() < 2 {
        return;
    }
    let at = usize::try_from(split(leaves.len() as u64)).unwrap_or(usize::MAX);
    let Some((left, right)) = leaves.split_at_checked(at) else { return };
    let root = |part: &[Digest]| {
        let mut peaks = Peaks::default();
        for leaf in part {
            peaks.push(*leaf);
        }
        peaks.root()
    };
    if index < at {
        path.push(root(right));
        path_in(left, index, path);
    } else {
        path.push(root(left));
        path_in(right, index - at, path);
    }
}

/// The root that follows from a leaf and its path; `None` if the path has the wrong length for that place.
pub(crate) fn root_from_path(leaf: Digest, index: u64, size: u64, path: &[Digest]) -> Option<Digest> {
    if index >= size {
        return None;
    }
    // Going down from the root tells at each level on which side the sibling lies.
    let mut sides = Vec::new();
    let (mut from, mut to) = (0, size);
    while to - from > 1 {
        let middle = from + split(to - from);
        if index < middle {
            sides.push(Side::Right);
            to = middle;
        } else {
            sides.push(Side::Left);
            from = middle;
        }
    }
    if sides.len() != path.len() {
        return None;
    }
    let root = path.iter().zip(sides.iter().rev()).fold(leaf, |below, (sibling, side)| match side {
        Side::Left => node(sibling, &below),
        Side::Right => node(&below, sibling),
    });
    Some(root)
}

/// On which side of a path the sibling lies.
#[derive(Debug, Clone, Copy)]
enum Side {
    Left,
    Right,
}

#[cfg(test)]
#[path = "merkle_tests.rs"]
mod tests;
