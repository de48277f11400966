//! Secret detection in figures: recall, false alarms, throughput.
//!
//! Recall is over generated tokens in many surroundings and encodings; held-out recall is over a second corpus that shares nothing with the
//! detectors, overall and for its worst kind; an alarm is any finding in the sources of the dependencies.
//! Throughput is one core over prose, with an empty vault and with thirty-two values. Left out: the time to build a scanner.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measuring program stops at the first surprise"
)]

use std::hint::black_box;
use std::sync::Arc;

use palyra_common::SecretString;
use palyra_figures::{Aim, Report, measure};
use palyra_safety::{Scanner, StreamScanner, VaultEntry, assess};

#[path = "../tests/it/corpus.rs"]
mod corpus;
#[path = "../tests/it/held_out.rs"]
mod held_out;

const PROSE_BYTES: usize = 16 << 20;
const SOURCE_BYTES: usize = 64 << 20;
const ROUNDS: u64 = 40;
const HELD_OUT_ROUNDS: u64 = 12;
const STREAM_CHUNK: usize = 4096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut report = Report::new("safety");
    let scanner = Arc::new(Scanner::new(&[])?);

    let (found, tried, misses) = corpus::recall(&scanner, ROUNDS);
    for miss in misses.iter().take(10) {
        eprintln!("missed: {miss}");
    }
    report.figure("safety.recall", found as f64 / tried as f64, "ratio", None, Aim::AtLeast(0.98), tried as u64, None);

    let scores = held_out::scores(&scanner, HELD_OUT_ROUNDS);
    let (found, tried) =
        scores.values().fold((0, 0), |(found, tried), score| (found + score.found, tried + score.tried));
    let mut worst: Option<(&str, f64, usize)> = None;
    for (kind, score) in &scores {
        if let Some(miss) = score.misses.first() {
            eprintln!("held out: {kind} {:.4} of {}, such as {miss}", score.recall(), score.tried);
        }
        if worst.is_none_or(|(_, recall, _)| score.recall() < recall) {
            worst = Some((kind, score.recall(), score.tried));
        }
    }
    let overall = found as f64 / tried as f64;
    report.figure("safety.recall_held_out", overall, "ratio", None, Aim::AtLeast(0.98), tried as u64, None);
    let (kind, recall, tried) = worst.unwrap();
    eprintln!("held out: {} kinds, the worst is {kind}", scores.len());
    report.figure("safety.recall_worst_kind", recall, "ratio", None, Aim::AtLeast(0.98), tried as u64, None);

    let sources = corpus::negatives(SOURCE_BYTES);
    let bytes: usize = sources.iter().map(|(_, text)| text.len()).sum();
    let mut alarms = 0_u64;
    for (path, text) in &sources {
        for finding in scanner.scan(text).findings {
            eprintln!("alarm: {} {} {finding}", path.display(), finding.detector);
            alarms += 1;
        }
    }
    let megabytes = bytes as f64 / 1e6;
    report.figure(
        "safety.false_alarms",
        alarms as f64 / megabytes,
        "per MB",
        None,
        Aim::AtMost(1.0),
        bytes as u64,
        None,
    );

    let prose = prose(PROSE_BYTES);
    let prose_megabytes = prose.len() as f64 / 1e6;
    let mut rate = |id: &str, aim: Aim, megabytes: f64, work: &mut dyn FnMut()| {
        let samples = measure(1, 7, work);
        report.figure(id, megabytes / samples.median(), "MB/s", None, aim, 7, Some(samples.spread()));
    };
    rate("safety.throughput", Aim::AtLeast(200.0), prose_megabytes, &mut || {
        assert!(black_box(scanner.scan(&prose)).findings.is_empty());
    });
    let vault: Vec<VaultEntry> = (0..32)
        .map(|n| {
            let value = corpus::Dice(n).text(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 32);
            VaultEntry { name: format!("entry-{n}"), value: SecretString::from(value) }
        })
        .collect();
    let guarded = Scanner::new(&vault)?;
    rate("safety.throughput_vault32", Aim::None, prose_megabytes, &mut || {
        assert!(black_box(guarded.scan(&prose)).findings.is_empty());
    });
    rate("safety.throughput_stream", Aim::None, prose_megabytes, &mut || {
        let mut stream = StreamScanner::new(Arc::clone(&scanner));
        let mut released = 0;
        for chunk in prose.chunks(STREAM_CHUNK) {
            released += stream.push(chunk).bytes.len();
        }
        released += stream.finish().0.bytes.len();
        assert_eq!(released, prose.len());
    });
    rate("safety.throughput_sources", Aim::None, megabytes, &mut || {
        for (_, text) in &sources {
            black_box(scanner.scan(text));
        }
    });
    rate("safety.throughput_injection", Aim::None, prose_megabytes, &mut || {
        assert_eq!(black_box(assess(&prose)).score, 0);
    });
    report.note("recall: what is secret can no longer be read in any view of the redacted text");
    report.note("false alarms: every finding in the dependencies' sources counts, also test keys that are real keys");
    report.note("throughput: generated English prose, one core");
    report.finish()?;
    Ok(())
}

/// Sentences of ordinary words, with punctuation, numbers, links and line breaks.
fn prose(len: usize) -> Vec<u8> {
    const WORDS: &[&str] = &[
        "the",
        "of",
        "and",
        "a",
        "to",
        "in",
        "is",
        "you",
        "that",
        "it",
        "he",
        "was",
        "for",
        "on",
        "are",
        "with",
        "as",
        "his",
        "they",
        "be",
        "at",
        "one",
        "have",
        "this",
        "from",
        "or",
        "had",
        "by",
        "word",
        "but",
        "what",
        "some",
        "we",
        "can",
        "out",
        "other",
        "were",
        "all",
        "there",
        "when",
        "up",
        "use",
        "your",
        "how",
        "said",
        "an",
        "each",
        "she",
        "which",
        "their",
        "time",
        "if",
        "will",
        "way",
        "about",
        "many",
        "then",
        "them",
        "write",
        "would",
        "like",
        "so",
        "these",
        "her",
        "long",
        "make",
        "thing",
        "see",
        "him",
        "two",
        "has",
        "look",
        "more",
        "day",
        "could",
        "go",
        "come",
        "did",
        "number",
        "sound",
        "no",
        "most",
        "people",
        "my",
        "over",
        "know",
        "water",
        "than",
        "call",
        "first",
        "government",
        "information",
        "development",
        "understanding",
        "https://example.org/page",
        "2026",
        "43.5%",
        "password",
        "token",
        "key",
    ];
    let mut dice = corpus::Dice(42);
    let mut text = String::with_capacity(len + 64);
    while text.len() < len {
        for _ in 0..8 + dice.roll(12) {
            text.push_str(WORDS[dice.roll(WORDS.len())]);
            text.push(' ');
        }
        text.pop();
        text.push_str(if dice.roll(5) == 0 { ".\n\n" } else { ". " });
    }
    text.into_bytes()
}
