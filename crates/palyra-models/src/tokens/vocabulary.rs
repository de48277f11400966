//! A vocabulary, packed, searched where it lies.
//!
//! Layout (written by `scripts/vocabulary.py`): the greatest token length; for each length from 1 on how many tokens have it; then per
//! length the sorted tokens side by side and their ranks, three bytes each. All numbers little endian. A token is found by binary
//! search among those of its length.

/// Bytes of a stored rank.
const RANK_BYTES: usize = 3;
/// Bytes of a number in the head.
const WORD: usize = 4;

/// The tokens of one length.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    tokens: &'static [u8],
    ranks: &'static [u8],
}

/// A vocabulary.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// By length, the first one being that of length 1.
    groups: Vec<Group>,
}

impl Vocabulary {
    /// Reads the head. What is cut off counts as absent: tests hold the shipped files to be whole.
    pub(super) fn new(packed: &'static [u8]) -> Self {
        let longest = word(packed, 0);
        let mut at = WORD * (longest + 1);
        let mut groups = Vec::with_capacity(longest.min(1024));
        for length in 1..=longest {
            let count = word(packed, WORD * length);
            let ranks_at = at.saturating_add(count.saturating_mul(length));
            let end = ranks_at.saturating_add(count.saturating_mul(RANK_BYTES));
            let (Some(tokens), Some(ranks)) = (packed.get(at..ranks_at), packed.get(ranks_at..end)) else { break };
            groups.push(Group { tokens, ranks });
            at = end;
        }
        Self { groups }
    }

    /// The rank of a token: the lower, the earlier it is merged.
    pub(super) fn rank(&self, token: &[u8]) -> Option<u32> {
        let group = self.groups.get(token.len().checked_sub(1)?)?;
        let (mut low, mut high) = (0, group.tokens.len() / token.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let at = middle * token.len();
            match group.tokens.get(at..at + token.len())?.cmp(token) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let at = middle * RANK_BYTES;
                    return match group.ranks.get(at..at + RANK_BYTES)? {
                        [low, mid, high] => Some(u32::from_le_bytes([*low, *mid, *high, 0])),
                        _ => None,
                    };
                }
            }
        }
        None
    }

    /// How many tokens it has.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.groups.iter().map(|group| group.ranks.len() / RANK_BYTES).sum()
    }
}

fn word(packed: &[u8], at: usize) -> usize {
    let bytes = packed.get(at..at + WORD).and_then(|bytes| <[u8; WORD]>::try_from(bytes).ok()).unwrap_or_default();
    usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(0)
}
