//! Seals: what binds the newest records to this journal's key until a signature does.
//!
//! A signature per commit would be a tenth of the time a caller waits for the disk, and a signed head in the database one more page. So the last
//! record of each batch is sealed in its own row with a keyed hash, and the head is signed right after the callers were answered. Who can make a
//! seal can also sign, for both keys come from one file; but only the holder of that file can check a seal, which is why everything
//! that leaves this state (anchors, checkpoints, proofs, backups) is signed.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::checkpoint::JournalId;
use crate::record::Head;

const KEY_DOMAIN: &[u8] = b"palyra.seal.key.v1\n";
const DOMAIN: &[u8] = b"palyra.seal.v1\n";

/// The key for seals, derived from the signing key's seed.
#[derive(Clone)]
pub(crate) struct SealKey(Hmac<Sha256>);

impl SealKey {
    pub(crate) fn derive(seed: &[u8; 32]) -> Self {
        let key = Sha256::new().chain_update(KEY_DOMAIN).chain_update(seed).finalize();
        // INVARIANT: a hash is exactly as long as the longest key that is used as it is.
        Self(Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::from(widen(key.into()))))
    }

    fn over(&self, id: JournalId, head: Head) -> Hmac<Sha256> {
        self.0
            .clone()
            .chain_update(DOMAIN)
            .chain_update(id.0)
            .chain_update(head.count.to_be_bytes())
            .chain_update(head.hash.0)
    }

    /// The seal of the record at this end of the log.
    pub(crate) fn seal(&self, id: JournalId, head: Head) -> [u8; 32] {
        self.over(id, head).finalize().into_bytes().into()
    }

    /// Whether this key made the seal, compared in constant time.
    pub(crate) fn sealed(&self, id: JournalId, head: Head, seal: &[u8]) -> bool {
        self.over(id, head).verify_slice(seal).is_ok()
    }
}

/// A key of one block, as the construction wants it: shorter ones are filled with zeros.
pub(crate) fn widen(key: [u8; 32]) -> [u8; 64] {
    let mut block = [0; 64];
    for (to, from) in block.iter_mut().zip(key) {
        *to = from;
    }
    block
}

#[cfg(test)]
mod tests {
    use palyra_common::Digest;

    use super::*;

    #[test]
    fn a_seal_holds_for_one_journal_one_count_one_hash_and_one_key() {
        let key = SealKey::derive(&[1; 32]);
        let (id, head) = (JournalId([2; 16]), Head { count: 3, hash: Digest([4; 32]) });
        let seal = key.seal(id, head);
        assert!(key.sealed(id, head, &seal));
        assert!(!SealKey::derive(&[9; 32]).sealed(id, head, &seal));
        assert!(!key.sealed(JournalId([9; 16]), head, &seal));
        assert!(!key.sealed(id, Head { count: 4, ..head }, &seal));
        assert!(!key.sealed(id, Head { hash: Digest([9; 32]), ..head }, &seal));
        assert!(!key.sealed(id, head, &seal[..31]) && !key.sealed(id, head, &[]));
    }
}
