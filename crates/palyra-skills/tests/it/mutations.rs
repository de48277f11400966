//! Random and randomly damaged bytes: never a panic, never a signature that still holds over something else.

use std::sync::LazyLock;

use palyra_common::Digest;
use palyra_skills::{AuditPolicy, Envelope, SkillArchive, SkillManifest, inspect, verify};
use proptest::prelude::*;

use crate::skill::Skill;

static GOOD: LazyLock<(Vec<u8>, Digest)> = LazyLock::new(|| {
    let bytes = Skill::default().signed();
    let content = SkillArchive::read(&bytes).unwrap().content();
    (bytes, content)
});

/// Every bit of every header: nothing about an archive can be changed unnoticed, not even what nobody reads.
#[test]
fn every_bit_of_every_header_counts() {
    let (good, _) = GOOD.clone();
    let number = |at: usize, length: usize| {
        good[at..at + length].iter().rev().fold(0_usize, |value, byte| value << 8 | usize::from(*byte))
    };
    let directory = number(good.len() - 6, 4);
    let mut headers: Vec<usize> = (directory..good.len()).collect();
    let mut at = 0;
    while at < directory {
        let body = at + 30 + number(at + 26, 2);
        headers.extend(at..body);
        at = body + number(at + 18, 4);
    }
    assert_eq!(at, directory);
    for at in headers {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let accepted = SkillArchive::read(&bytes).is_ok_and(|archive| verify(&archive).is_ok());
            assert!(!accepted, "bit {bit} of byte {at} was changed unnoticed");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(inspect(&bytes, &AuditPolicy::default()).is_err());
        prop_assert!(Envelope::parse(&bytes).is_err());
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,400}") {
        prop_assert!(SkillManifest::parse(&text).is_err());
    }

    /// One changed byte is noticed: the archive is not read, the signature does not hold, or the contents are the same (as in the padding of compressed data).
    #[test]
    fn one_changed_byte_is_noticed(at in any::<prop::sample::Index>(), flip in 1_u8..=255) {
        let (good, content) = GOOD.clone();
        let mut bytes = good;
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(archive) = SkillArchive::read(&bytes)
            && verify(&archive).is_ok()
        {
            prop_assert_eq!(archive.content(), content);
        }
    }

    /// Cut, doubled and shifted pieces.
    #[test]
    fn spliced_archives_are_answered(from in any::<prop::sample::Index>(), length in 0_usize..400, to in any::<prop::sample::Index>()) {
        let (good, content) = GOOD.clone();
        let from = from.index(good.len());
        let piece = good[from..(from + length).min(good.len())].to_vec();
        let mut bytes = good.clone();
        let to = to.index(bytes.len());
        bytes.splice(to..to, piece);
        if let Ok(archive) = SkillArchive::read(&bytes)
            && verify(&archive).is_ok()
        {
            prop_assert_eq!(archive.content(), content);
        }
    }
}
