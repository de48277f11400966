use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

/// The definition of RFC 6962, word for word.
fn defined_root(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => Digest::of(&[]),
        [one] => *one,
        many => {
            let mut k = 1;
            while k * 2 < many.len() {
                k *= 2;
            }
            node(&defined_root(&many[..k]), &defined_root(&many[k..]))
        }
    }
}

fn leaves(n: u64) -> Vec<Digest> {
    (0..n).map(|i| leaf(&Digest::of(&i.to_be_bytes()))).collect()
}

struct InMemory {
    leaves: Vec<Digest>,
    chunks: Vec<Digest>,
}

impl InMemory {
    fn new(n: u64) -> Self {
        let leaves = leaves(n);
        let chunks = leaves.chunks_exact(1024).map(defined_root).collect();
        Self { leaves, chunks }
    }
}

impl Hashes for InMemory {
    type Error = Infallible;
    fn leaves(&self, from: u64, to: u64) -> Result<Vec<Digest>, Infallible> {
        assert!(to - from <= CHUNK, "never more leaves than one chunk");
        Ok(self.leaves[from as usize..to as usize].to_vec())
    }
    fn chunk(&self, chunk: u64) -> Result<Digest, Infallible> {
        Ok(self.chunks[chunk as usize])
    }
}

#[test]
fn peaks_give_the_defined_root_and_the_chunk_roots() {
    let all = InMemory::new(2500);
    let mut peaks = Peaks::default();
    let mut chunks = Vec::new();
    for (i, leaf) in all.leaves.iter().enumerate() {
        if [0, 1, 2, 3, 7, 8, 1000, 1024, 1025, 2048].contains(&i) {
            assert_eq!(peaks.root(), defined_root(&all.leaves[..i]), "{i} leaves");
        }
        chunks.extend(peaks.push(*leaf));
    }
    assert_eq!(peaks.root(), defined_root(&all.leaves));
    assert_eq!(chunks, all.chunks);
    assert_eq!(Peaks::decode(2500, &peaks.encode()), Some(peaks.clone()));
    assert_eq!(Peaks::decode(2499, &peaks.encode()), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_path_leads_to_the_root(size in 1_u64..6000, place in 0.0_f64..1.0) {
        let all = InMemory::new(size);
        let index = ((size as f64 * place) as u64).min(size - 1);
        let path = path(&all, index, size).unwrap();
        let root = defined_root(&all.leaves);
        let own = all.leaves[index as usize];
        prop_assert_eq!(root_from_path(own, index, size, &path), Some(root));
        // Nothing else does: another leaf, another place, a changed or shortened path.
        prop_assert_ne!(root_from_path(Digest([7; 32]), index, size, &path), Some(root));
        if size > 1 {
            prop_assert_ne!(root_from_path(own, (index + 1) % size, size, &path), Some(root));
            let mut changed = path.clone();
            changed[0].0[0] ^= 1;
            prop_assert_ne!(root_from_path(own, index, size, &changed), Some(root));
            prop_assert_eq!(root_from_path(own, index, size, &path[1..]), None);
        }
    }
}
