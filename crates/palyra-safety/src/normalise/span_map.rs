//! From a place in a view back to the place in the text it was made from.
//!
//! INVARIANT: mapping covers. The range returned holds every original byte that took part in the view's range, and may hold
//! a few more (the rest of a base64 group, invisible characters in between), so cutting it out removes all of it.

use crate::findings::Span;

/// A run of the view and the run of the original it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// First byte in the view.
    pub(crate) view: usize,
    /// First byte in the original.
    pub(crate) origin: usize,
    /// Bytes in the original.
    pub(crate) origin_len: usize,
    /// Whether byte `n` of the one is byte `n` of the other.
    pub(crate) linear: Linear,
}

/// How the bytes of a piece correspond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linear {
    /// One to one.
    Yes,
    /// Only as a whole.
    No,
}

/// Maps ranges of a view to ranges of the text it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanMap {
    /// Encoded characters per group of decoded bytes, for group codes; 1 to 1 otherwise.
    characters: usize,
    bytes: usize,
    /// Encoded characters skipped before the first group.
    skipped: usize,
    pieces: Vec<Piece>,
}

impl SpanMap {
    /// A map made of pieces in ascending order of view and origin.
    pub(crate) const fn from_pieces(pieces: Vec<Piece>) -> Self {
        Self { characters: 1, bytes: 1, skipped: 0, pieces }
    }

    /// A map for a code that turns `characters` into `bytes`, where the pieces place the characters.
    pub(crate) const fn grouped(characters: usize, bytes: usize, skipped: usize, pieces: Vec<Piece>) -> Self {
        Self { characters, bytes, skipped, pieces }
    }

    /// A view that is the original from `origin` on.
    pub(crate) fn identity(origin: usize, len: usize) -> Self {
        Self::from_pieces(vec![Piece { view: 0, origin, origin_len: len, linear: Linear::Yes }])
    }

    /// The original range that the view's range came from.
    #[must_use]
    pub fn to_original(&self, span: Span) -> Span {
        let group = self.bytes.max(1);
        let start = self.skipped + span.start / group * self.characters;
        let end = self.skipped + span.end.div_ceil(group) * self.characters;
        let first = self.edge(start, Edge::Start);
        let last = if end > start { self.edge(end - 1, Edge::End) } else { first };
        Span::new(first, last)
    }

    /// The original byte at, or just after, one byte of the view (before group arithmetic).
    fn edge(&self, at: usize, edge: Edge) -> usize {
        let index = self.pieces.partition_point(|piece| piece.view <= at).saturating_sub(1);
        let Some(piece) = self.pieces.get(index) else { return 0 };
        let offset = at.saturating_sub(piece.view);
        match (piece.linear, edge) {
            (Linear::Yes, Edge::Start) => piece.origin + offset.min(piece.origin_len),
            (Linear::Yes, Edge::End) => piece.origin + (offset + 1).min(piece.origin_len),
            (Linear::No, Edge::Start) => piece.origin,
            (Linear::No, Edge::End) => piece.origin + piece.origin_len,
        }
    }
}

#[derive(Clone, Copy)]
enum Edge {
    Start,
    End,
}
