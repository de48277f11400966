//! Byte-pair merging, as far as it is needed to count: the pair of neighbours with the lowest rank becomes one token, the leftmost of
//! equals first, until no neighbours form a token.
//!
//! A heap finds the next pair, so that a long piece (a line of a hundred thousand equal signs) costs n·log n and not its square.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::Vocabulary;

/// Pieces longer than this are counted in parts, which bounds memory. A cut can only add a token or so.
const LONGEST: usize = 1 << 16;

/// Pieces up to this long are remembered.
const REMEMBERED: usize = 15;
/// How many pieces are remembered, at one place each. Text repeats itself: with these, two in three need no search.
const PLACES: usize = 1 << 12;

/// Room to work in, kept from piece to piece.
#[derive(Debug)]
pub(super) struct Merger {
    /// Pieces seen lately with their counts, each at the place that its bytes give: the bytes, the length in the last of them.
    seen: Vec<([u8; REMEMBERED + 1], u32)>,
    /// For the token that begins at a byte: where it ends. Zero where no token begins any more.
    ends: Vec<u32>,
    /// For the token that begins at a byte: where the one before it begins.
    before: Vec<u32>,
    /// Pairs by rank: rank, where the pair begins, where it ends.
    pairs: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

impl Merger {
    pub(super) fn new() -> Self {
        Self {
            seen: vec![([0; REMEMBERED + 1], 0); PLACES],
            ends: Vec::new(),
            before: Vec::new(),
            pairs: BinaryHeap::new(),
        }
    }

    /// How many tokens a piece is.
    pub(super) fn count(&mut self, vocabulary: &Vocabulary, piece: &str) -> u64 {
        let Some(key) = key(piece.as_bytes()) else {
            return piece.as_bytes().chunks(LONGEST).map(|part| self.searched(vocabulary, part)).sum();
        };
        let place = place(key);
        match self.seen.get(place) {
            Some((seen, count)) if *seen == key => u64::from(*count),
            _ => {
                let count = self.searched(vocabulary, piece.as_bytes());
                if let (Some(seen), Ok(count)) = (self.seen.get_mut(place), u32::try_from(count)) {
                    *seen = (key, count);
                }
                count
            }
        }
    }

    fn searched(&mut self, vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
        if vocabulary.rank(piece).is_some() { 1 } else { self.merged(vocabulary, piece) }
    }

    fn merged(&mut self, vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
        let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        self.ends.clear();
        self.ends.extend(1..=length);
        self.before.clear();
        self.before.extend((0..length).map(|at| at.saturating_sub(1)));
        self.pairs.clear();
        for start in 0..length.saturating_sub(1) {
            self.offer(vocabulary, piece, start);
        }
        let mut tokens = u64::from(length);
        while let Some(Reverse((_, start, end))) = self.pairs.pop() {
            let middle = self.end_of(start);
            // Either half may have been merged with something else since this pair was offered.
            if middle == 0 || middle >= length || self.end_of(middle) != end {
                continue;
            }
            tokens -= 1;
            set(&mut self.ends, start, end);
            set(&mut self.ends, middle, 0);
            if end < length {
                set(&mut self.before, end, start);
                self.offer(vocabulary, piece, start);
            }
            if start > 0 {
                let previous = get(&self.before, start);
                self.offer(vocabulary, piece, previous);
            }
        }
        tokens
    }

    /// Puts the pair that begins here on the heap, if it is a token.
    fn offer(&mut self, vocabulary: &Vocabulary, piece: &[u8], start: u32) {
        let middle = self.end_of(start);
        let end = self.end_of(middle);
        if middle == 0 || end == 0 {
            return;
        }
        if let Some(rank) = piece.get(start as usize..end as usize).and_then(|pair| vocabulary.rank(pair)) {
            self.pairs.push(Reverse((rank, start, end)));
        }
    }

    fn end_of(&self, start: u32) -> u32 {
        get(&self.ends, start)
    }
}

/// A short piece as something of fixed size. No piece is empty, so no key is the zeros of an empty place.
fn key(piece: &[u8]) -> Option<[u8; REMEMBERED + 1]> {
    let mut key = [0; REMEMBERED + 1];
    key.get_mut(..piece.len()).filter(|_| piece.len() <= REMEMBERED)?.copy_from_slice(piece);
    if let Some(last) = key.last_mut() {
        *last = u8::try_from(piece.len()).ok()?;
    }
    Some(key)
}

/// Where a key is remembered. A bad spread costs time alone, so a multiplication is good enough.
fn place(key: [u8; REMEMBERED + 1]) -> usize {
    let folded = u128::from_le_bytes(key);
    let mixed = ((folded as u64) ^ ((folded >> 64) as u64).rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 48) as usize % PLACES
}

fn get(places: &[u32], at: u32) -> u32 {
    places.get(at as usize).copied().unwrap_or(0)
}

fn set(places: &mut [u32], at: u32, value: u32) {
    if let Some(place) = places.get_mut(at as usize) {
        *place = value;
    }
}
