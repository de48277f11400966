//! Streams: the same result as scanning the whole text, however it is cut.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_common::SecretString;
use palyra_safety::{Finding, Scanner, StreamScanner, VaultEntry, redact};
use proptest::prelude::*;

use crate::corpus::{self, Dice, ENCODINGS, SURROUNDINGS};

const VAULT: &str = "correct horse battery staple";

fn scanner() -> Arc<Scanner> {
    let entry = VaultEntry { name: "phrase".into(), value: SecretString::from(VAULT.to_owned()) };
    Arc::new(Scanner::new(&[entry]).unwrap())
}

fn streamed(
    scanner: &Arc<Scanner>,
    text: &[u8],
    mut next_len: impl FnMut() -> usize,
) -> (Vec<u8>, Vec<Finding>, usize) {
    let mut stream = StreamScanner::new(Arc::clone(scanner));
    let (mut bytes, mut findings, mut held) = (Vec::new(), Vec::new(), 0);
    let mut rest = text;
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(next_len().clamp(1, rest.len()));
        rest = tail;
        let released = stream.push(chunk);
        bytes.extend(released.bytes);
        findings.extend(released.findings);
        held = held.max(stream.held());
    }
    let (released, _) = stream.finish();
    bytes.extend(released.bytes);
    findings.extend(released.findings);
    (bytes, findings, held)
}

/// A text with prose and secrets in it.
fn text(seed: u64) -> String {
    let mut dice = Dice(seed);
    let tokens = corpus::tokens(&mut dice);
    let mut text = String::new();
    for _ in 0..4 {
        text.push_str("Some ordinary words, a path/to/a_file-name.rs and a number 12345.\nThe token: see below. Grüße aus Köln – 日本語の文。 ");
        let (_, token) = &tokens[dice.roll(tokens.len())];
        let secret = corpus::encode(token, ENCODINGS[dice.roll(ENCODINGS.len())]);
        text.push_str(&SURROUNDINGS[dice.roll(SURROUNDINGS.len())].replace('@', &secret));
        if dice.roll(3) == 0 {
            text.push_str(&format!("pass phrase {VAULT} ends. "));
        }
    }
    text
}

/// The finding is the end of the address alone and rests on its beginning, which stands in another line of the encoded block.
#[test]
fn what_a_finding_rests_on_is_not_forgotten_before_it_is_released() {
    let scanner = scanner();
    for seed in 1..40 {
        let secret = Dice(seed).text(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 24);
        let address = format!("https://hooks.slack.com/services/T5TGGDG4AT8/BDFB57RJ1SA/{secret}");
        let block = STANDARD.encode(format!("{}{{\"value\":\"{address}\"}}", " ".repeat(seed as usize)));
        let lines: Vec<&str> = block.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        let text = lines.join("\n");
        let whole = redact(text.as_bytes(), &scanner.scan(text.as_bytes()).findings);
        assert_ne!(whole, text.as_bytes(), "it is found at all");
        for cut in 1..text.len() {
            let mut lengths = [cut, text.len()].into_iter();
            let (released, ..) = streamed(&scanner, text.as_bytes(), || lengths.next().unwrap_or(1));
            assert_eq!(released, whole, "cut at {cut}: {text}");
        }
    }
}

#[test]
fn every_single_cut_of_a_secret_is_healed() {
    let scanner = scanner();
    for seed in 0..3 {
        let mut dice = Dice(seed);
        for (name, token) in corpus::tokens(&mut dice) {
            if token.len() > 200 {
                continue;
            }
            let text = format!("word before, {token} and after it.");
            let whole = redact(text.as_bytes(), &scanner.scan(text.as_bytes()).findings);
            for cut in 1..text.len() {
                let mut lens = [cut, text.len()].into_iter();
                let (bytes, _, _) = streamed(&scanner, text.as_bytes(), || lens.next().unwrap_or(usize::MAX));
                assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&whole), "{name} cut at {cut}");
            }
        }
    }
}

#[test]
fn one_byte_at_a_time_gives_the_same_and_prose_is_hardly_held() {
    let scanner = scanner();
    for seed in 100..104 {
        let text = text(seed);
        let scan = scanner.scan(text.as_bytes());
        let (bytes, findings, _) = streamed(&scanner, text.as_bytes(), || 1);
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&redact(text.as_bytes(), &scan.findings)));
        assert_eq!(findings, scan.findings);
    }
    let prose = "The quick brown fox jumps over the lazy dog. ".repeat(200);
    let (bytes, _, held) = streamed(&scanner, prose.as_bytes(), || 3);
    assert_eq!(bytes, prose.as_bytes());
    assert!(held < 64, "{held} bytes of prose were held");
}

#[test]
fn endless_material_is_released_in_bounded_pieces_and_secrets_in_it_are_cut_out() {
    let scanner = scanner();
    let mut dice = Dice(9);
    let token = corpus::tokens(&mut dice).remove(0).1;
    let filler = |dice: &mut Dice, len| dice.text(b"abcdefghijklmnopqrstuvwxyz", len);
    let text = format!(
        "{}{token}{}{token}{}",
        filler(&mut dice, 300_000),
        filler(&mut dice, 261_000),
        filler(&mut dice, 100_000)
    );
    let (bytes, findings, held) = streamed(&scanner, text.as_bytes(), || 8192);
    assert!(held <= palyra_safety::MAX_HELD_BYTES * 3 / 2, "{held}");
    assert_eq!(findings.len(), 2);
    assert_eq!(bytes, redact(text.as_bytes(), &scanner.scan(text.as_bytes()).findings));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_chunking_equals_the_whole(seed in 0_u64..100_000, lens in prop::collection::vec(1_usize..90, 1..20)) {
        let scanner = scanner();
        let text = text(seed);
        let scan = scanner.scan(text.as_bytes());
        let mut index = 0;
        let (bytes, findings, _) = streamed(&scanner, text.as_bytes(), || { index += 1; lens[index % lens.len()] });
        let whole = redact(text.as_bytes(), &scan.findings);
        prop_assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&whole));
        prop_assert_eq!(findings, scan.findings);
    }

    #[test]
    fn any_bytes_in_any_chunking_equal_the_whole(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b" =:/@%&\\#x;\"ghp_eyJ-A0\n".to_vec())], 0..400),
        lens in prop::collection::vec(1_usize..30, 1..8),
    ) {
        let scanner = scanner();
        let mut index = 0;
        let (out, _, _) = streamed(&scanner, &bytes, || { index += 1; lens[index % lens.len()] });
        prop_assert_eq!(out, redact(&bytes, &scanner.scan(&bytes).findings));
    }
}
