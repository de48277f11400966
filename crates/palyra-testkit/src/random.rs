//! Random numbers from a seed, so that a failing trial can be had again.

/// SplitMix64: small, and good enough to choose where to break things.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Numbers that follow from this seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; zero when the bound is zero.
    pub const fn below(&mut self, bound: u64) -> u64 {
        match bound {
            0 => 0,
            bound => self.next_u64() % bound,
        }
    }

    /// One of these, if there are any.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(from.len() as u64)).unwrap_or_default();
        from.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let draw = |seed| {
            let mut random = Random::seeded(seed);
            [random.next_u64(), random.below(10), random.below(0)]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7)[0], draw(8)[0]);
        assert!(draw(7)[1] < 10 && draw(7)[2] == 0);
        assert_eq!(Random::seeded(1).pick::<u8>(&[]), None);
    }
}
