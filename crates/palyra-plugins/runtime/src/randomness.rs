//! Where a call's random bytes come from: the operating system, or a seed when the call is replayed.
//!
//! The seeded stream is SHA-256 over the seed, the purpose and a counter: the same everywhere and for ever, whatever happens to random number crates.

use palyra_common::Digest;

/// A source of bytes for one call.
#[derive(Debug)]
pub(crate) enum Randomness {
    /// The operating system.
    System,
    /// A seed, and how many blocks were taken.
    Seeded { seed: u64, purpose: &'static str, blocks: u64 },
}

impl Randomness {
    /// Overwrites the buffer.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<(), getrandom::Error> {
        match self {
            Self::System => getrandom::fill(buffer),
            Self::Seeded { seed, purpose, blocks } => {
                for chunk in buffer.chunks_mut(32) {
                    let block = Digest::of_parts(&[purpose.as_bytes(), &seed.to_le_bytes(), &blocks.to_le_bytes()]);
                    *blocks = blocks.wrapping_add(1);
                    for (byte, source) in chunk.iter_mut().zip(block.0) {
                        *byte = source;
                    }
                }
                Ok(())
            }
        }
    }

    /// A number nobody can guess, never zero.
    pub(crate) fn number(&mut self) -> Result<u64, getrandom::Error> {
        loop {
            let mut bytes = [0; 8];
            self.fill(&mut bytes)?;
            match u64::from_le_bytes(bytes) {
                0 => {}
                number => return Ok(number),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(seed: u64, purpose: &'static str, length: usize) -> Vec<u8> {
        let mut buffer = vec![0; length];
        Randomness::Seeded { seed, purpose, blocks: 0 }.fill(&mut buffer).unwrap();
        buffer
    }

    #[test]
    fn a_seed_gives_the_same_bytes_and_another_seed_others() {
        assert_eq!(bytes(7, "a", 100), bytes(7, "a", 100));
        assert_ne!(bytes(7, "a", 100), bytes(8, "a", 100));
        assert_ne!(bytes(7, "a", 100), bytes(7, "b", 100));
        assert_eq!(bytes(7, "a", 100)[..32], bytes(7, "a", 32));
        assert_ne!(bytes(7, "a", 64)[..32], bytes(7, "a", 64)[32..]);
    }

    #[test]
    fn the_system_gives_different_numbers() {
        let mut source = Randomness::System;
        assert_ne!(source.number().unwrap(), source.number().unwrap());
    }
}
