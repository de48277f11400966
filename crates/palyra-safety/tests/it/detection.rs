//! Recall on generated secrets, false alarms on real sources, and what findings may show.

use std::sync::Arc;

use palyra_safety::{Confidence, FindingKind, Scanner, redact, redact_str};
use proptest::prelude::*;

use crate::corpus::{self, Dice};
use crate::held_out;

#[test]
fn structured_tokens_are_found_in_every_surrounding_and_encoding() {
    let scanner = Scanner::new(&[]).unwrap();
    let (found, tried, misses) = corpus::recall(&scanner, 6);
    let recall = found as f64 / tried as f64;
    println!("recall {recall:.4} ({found} of {tried})");
    assert!(recall >= 0.98, "recall {recall:.4}; missed:\n{}", misses.join("\n"));
}

/// What providers publish about their tokens, in files as people have them; see `held_out` for what it shares with the detectors: nothing.
#[test]
fn tokens_of_published_formats_are_found_in_every_file() {
    let scores = held_out::scores(&Arc::new(Scanner::new(&[]).unwrap()), 3);
    let (mut found, mut tried, mut weak) = (0, 0, Vec::new());
    for (kind, score) in &scores {
        found += score.found;
        tried += score.tried;
        println!("{kind}: {:.4} of {}", score.recall(), score.tried);
        if score.recall() < 0.98 {
            weak.extend(score.misses.iter().take(4).cloned());
            weak.push(format!("{kind}: recall {:.4} of {}", score.recall(), score.tried));
        }
    }
    assert!(scores.len() >= 80 && tried >= 10_000, "{} kinds, {tried} texts", scores.len());
    assert!(weak.is_empty(), "recall {:.4} of {tried}; weak:\n{}", found as f64 / tried as f64, weak.join("\n"));
}

#[test]
fn sources_raise_at_most_one_alarm_per_megabyte() {
    let scanner = Scanner::new(&[]).unwrap();
    let mut alarms = Vec::new();
    let mut bytes = 0;
    for (path, text) in corpus::negatives(6 << 20) {
        bytes += text.len();
        for finding in scanner.scan(&text).findings {
            alarms.push(format!("{} {finding}", path.display()));
        }
    }
    let per_megabyte = alarms.len() as f64 / (bytes as f64 / 1e6).max(1.0);
    println!("{per_megabyte:.2} alarms per MB over {bytes} bytes");
    assert!(per_megabyte <= 1.0, "{per_megabyte:.2} per MB:\n{}", alarms.join("\n"));
}

#[test]
fn what_only_looks_like_a_secret_is_let_pass() {
    let scanner = Scanner::new(&[]).unwrap();
    for text in [
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "password = \"changeme\"",
        "let token = parser.next_token()?;",
        "token: self.tokens.get(index_of_token_1),",
        "https://user:password@localhost/db",
        "postgres://${USER}:${PASS}@host/db",
        "d41d8cd98f00b204e9800998ecf8427e",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "the task-force-of-twenty-five-people-who-met",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.",
        "the secret: nobody knows",
    ] {
        assert_eq!(scanner.scan(text.as_bytes()).findings, [], "{text}");
    }
}

#[test]
fn context_gives_values_away() {
    let scanner = Scanner::new(&[]).unwrap();
    for (text, kind, covered) in [
        ("api_key = \"q7Rk2Pz9Wm4Tx8Lc5Vb1\"", FindingKind::AssignedSecret, "q7Rk2Pz9Wm4Tx8Lc5Vb1"),
        ("DB_PASSWORD='Tr0ub4dor&3x'", FindingKind::AssignedSecret, "Tr0ub4dor&3x"),
        ("Server=db;User Id=sa;Password=9fK!x2Lq7zRt;", FindingKind::AssignedSecret, ""),
        ("mysql://root:9fKx2Lq7zRt@db/app", FindingKind::ConnectionString, "9fKx2Lq7zRt"),
        ("Authorization: Bearer 9fKx2Lq7zRtQ81mVbN3c", FindingKind::AuthorizationHeader, "9fKx2Lq7zRtQ81mVbN3c"),
        ("authorization: basic YWRtaW46OWZLeDJMcTd6UnQ=", FindingKind::AuthorizationHeader, ""),
    ] {
        let findings = scanner.scan(text.as_bytes()).findings;
        let finding =
            findings.iter().find(|finding| finding.kind == kind).unwrap_or_else(|| panic!("{text}: {findings:?}"));
        if !covered.is_empty() {
            assert_eq!(&text[finding.span.start..finding.span.end], covered, "{text}");
        }
    }
}

#[test]
fn a_broken_checksum_lowers_confidence_but_not_to_silence() {
    let scanner = Scanner::new(&[]).unwrap();
    let mut dice = Dice(5);
    let (_, token) = corpus::tokens(&mut dice).remove(0);
    let kinds =
        |text: &str| scanner.scan(text.as_bytes()).findings.iter().map(|f| (f.kind, f.confidence)).collect::<Vec<_>>();
    assert_eq!(kinds(&token), [(FindingKind::GithubToken, Confidence::High)]);
    // The checksum holds whatever is glued to the token.
    assert_eq!(kinds(&format!("xyz{token}Q")), [(FindingKind::GithubToken, Confidence::High)]);
    let last = if token.ends_with('0') { '1' } else { '0' };
    let broken = format!("{}{last}", &token[..token.len() - 1]);
    assert_eq!(kinds(&broken), [(FindingKind::GithubToken, Confidence::Medium)]);
}

#[test]
fn repetitive_text_is_scanned_within_bounds() {
    // Each of these invites following it from every place to the end; every look ahead has its bound instead.
    let scanner = Scanner::new(&[]).unwrap();
    for part in [
        "eyJ",
        "-eyJ",
        ".eyJ",
        "&#x41;",
        "%41",
        "%2541",
        "\\u0041",
        "password=",
        "token:\"",
        "://a:b@",
        "AKIA",
        "QUJD",
        "sk-",
        "8Q~",
        "YWFh\n",
        "-----BEGIN PRIVATE KEY-----",
        "secret_access_key ",
        "ｇ",
        "e\u{301}",
        "postgres://u:9fKx2Lq7zRt@h/ ",
    ] {
        let text = part.repeat((32 << 10) / part.len());
        for finding in scanner.scan(text.as_bytes()).findings {
            assert!(finding.span.end <= text.len(), "{part}");
        }
    }
}

#[test]
fn findings_show_no_secret_and_redaction_removes_it() {
    let scanner = Scanner::new(&[]).unwrap();
    for seed in 0..20 {
        let mut dice = Dice(seed);
        for (name, token) in corpus::tokens(&mut dice) {
            let text = format!("before {token} after");
            let scan = scanner.scan(text.as_bytes());
            let shown = format!("{scan:?} {} {}", serde_json::to_string(&scan).unwrap(), scan.findings[0]);
            let tail = &token[token.len() - 12..];
            if !token.contains('\n') && !token.contains("://") {
                assert!(!shown.contains(tail), "{name}: {shown}");
            }
            let clean = redact_str(&text, &scan.findings);
            assert!(
                clean.starts_with("before ") && clean.ends_with(" after") && clean.contains("[redacted:"),
                "{clean}"
            );
            assert_eq!(scanner.scan(clean.as_bytes()).findings, [], "{name}: {clean}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_are_scanned_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let scanner = Scanner::new(&[]).unwrap();
        let scan = scanner.scan(&bytes);
        for finding in &scan.findings {
            prop_assert!(finding.span.end <= bytes.len());
        }
        let _ = redact(&bytes, &scan.findings);
    }

    #[test]
    fn text_made_of_anchors_is_scanned_without_panic(parts in prop::collection::vec(
        prop::sample::select(vec![
            "ghp_", "eyJ", ".", "-----BEGIN ", "PRIVATE KEY-----", "-----END", "://", "@", ":", "password", "=", "\"", "AKIA", "sk-", "&#x", ";",
            "%4", "1", "\\u00", "é", "\u{200b}", "8Q~", "secret_access_key", "AAAAAAAAAAAAAAAAAAAAAAAA", "\n", " ", "Bearer ", "sig=",
        ]), 0..60))
    {
        let text = parts.concat();
        let scanner = Scanner::new(&[]).unwrap();
        let scan = scanner.scan(text.as_bytes());
        for finding in &scan.findings {
            prop_assert!(text.is_char_boundary(finding.span.start) && text.is_char_boundary(finding.span.end));
        }
    }
}
