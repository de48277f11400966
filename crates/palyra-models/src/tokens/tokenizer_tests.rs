//! Counts against published examples, a plain implementation of the same rule, and inputs made to be slow.

use proptest::prelude::*;

use super::*;

/// Merging as it is defined, without any of the short cuts: look at all neighbours, merge the best, begin again.
fn plainly(vocabulary: &Vocabulary, pattern: Pattern, text: &str) -> u64 {
    let mut tokens = 0;
    for piece in Pieces::new(text, pattern) {
        let mut parts: Vec<Vec<u8>> = piece.bytes().map(|byte| vec![byte]).collect();
        loop {
            let ranked =
                parts.windows(2).enumerate().filter_map(|(at, pair)| Some((vocabulary.rank(&pair.concat())?, at)));
            let Some((_, at)) = ranked.min() else { break };
            let right = parts.remove(at + 1);
            parts[at].extend(right);
        }
        tokens += parts.len() as u64;
    }
    tokens
}

#[test]
fn the_vocabularies_are_whole() {
    assert_eq!((O200K.len(), CL100K.len()), (199_998, 100_256));
    for vocabulary in [&*O200K, &*CL100K] {
        for byte in 0..=u8::MAX {
            assert!(vocabulary.rank(&[byte]).is_some(), "without byte {byte} a text could not be counted");
        }
        assert_eq!(vocabulary.rank(b""), None);
        assert_eq!(vocabulary.rank(&[b'x'; 4096]), None);
    }
    // Ranks as they stand in the published files.
    assert_eq!((O200K.rank(b"!"), CL100K.rank(b"!")), (Some(0), Some(0)));
    assert_eq!((O200K.rank(b" great"), CL100K.rank(b" great")), (Some(2212), Some(2294)));
    assert_eq!((O200K.rank(b"t"), CL100K.rank(b"token")), (Some(83), Some(5963)));
}

/// The examples of the vendor's own guide to counting tokens.
#[test]
fn published_examples_come_out_as_published() {
    for (text, o200k, cl100k) in [
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
    ] {
        assert_eq!(Encoding::O200kBase.count(text), o200k, "{text}");
        assert_eq!(Encoding::Cl100kBase.count(text), cl100k, "{text}");
    }
}

#[test]
fn marks_in_a_message_are_text() {
    assert!(Encoding::O200kBase.count("<|endoftext|>") > 1);
    assert_eq!(Encoding::O200kBase.count(""), 0);
}

#[test]
fn long_pieces_are_counted_in_reasonable_time() {
    // Pieces without end: with steps by the square of their length this test would not be over today.
    assert_eq!(Encoding::O200kBase.count(&"a".repeat(40_000)), 5_000);
    assert!(Encoding::Cl100kBase.count(&"=".repeat(80_000)) < 80_000);
    assert!(Encoding::O200kBase.count(&"\u{301}".repeat(10_000)) <= 20_000);
}

proptest! {
    #[test]
    fn counting_is_merging_as_it_is_defined(text in "\\PC{0,40}|[a-zA-Z0-9 '\\n.é漢]{0,120}") {
        prop_assert_eq!(Encoding::O200kBase.count(&text), plainly(&O200K, Pattern::O200k, &text));
        prop_assert_eq!(Encoding::Cl100kBase.count(&text), plainly(&CL100K, Pattern::Cl100k, &text));
    }

    #[test]
    fn what_is_remembered_changes_nothing(texts in prop::collection::vec("[a-c ]{0,12}", 0..40)) {
        let mut tokenizer = Encoding::O200kBase.tokenizer();
        for text in &texts {
            prop_assert_eq!(tokenizer.count(text), Encoding::O200kBase.count(text));
        }
    }
}
