//! Vault values: found in every encoding, never shown.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use palyra_common::{SecretString, ToStableError};
use palyra_safety::{FindingKind, SafetyError, Scanner, VaultEntry, redact_str};
use proptest::prelude::*;

fn entry(value: &str) -> VaultEntry {
    VaultEntry { name: "db".into(), value: SecretString::from(value.to_owned()) }
}

fn spellings(value: &str) -> Vec<(&'static str, String)> {
    let bytes = value.as_bytes();
    let each = |f: fn(u8) -> String| bytes.iter().map(|b| f(*b)).collect::<String>();
    let mut all = vec![
        ("raw", value.to_owned()),
        ("hex", each(|b| format!("{b:02x}"))),
        ("HEX", each(|b| format!("{b:02X}"))),
        ("percent", each(|b| format!("%{b:02x}"))),
        ("PERCENT", each(|b| format!("%{b:02X}"))),
        ("x", each(|b| format!("\\x{b:02x}"))),
        ("json", serde_json::to_string(value).unwrap()),
        ("units", value.encode_utf16().map(|u| format!("\\u{u:04x}")).collect()),
        (
            "html",
            value
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
                .replace('\'', "&#39;"),
        ),
        (
            "reserved",
            each(|b| {
                if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            }),
        ),
    ];
    for shift in 0..3 {
        let wrapped = format!("{}{value}{}", "\u{1}".repeat(shift), "\u{2}".repeat(2 - shift));
        all.push(("base64", STANDARD.encode(&wrapped)));
        all.push(("base64url", URL_SAFE_NO_PAD.encode(&wrapped)));
    }
    all
}

fn found(scanner: &Scanner, text: &str) -> bool {
    scanner
        .scan(text.as_bytes())
        .findings
        .iter()
        .any(|f| f.kind == FindingKind::VaultValue && f.vault_name.as_deref() == Some("db"))
}

#[test]
fn a_value_is_found_in_every_spelling_and_cut_out() {
    let value = "p/w+<&>\"9'x é";
    let scanner = Scanner::new(&[entry(value)]).unwrap();
    for (name, spelled) in spellings(value) {
        let text = format!("see {spelled} here");
        assert!(found(&scanner, &text), "{name}: {text}");
        let scan = scanner.scan(text.as_bytes());
        assert!(!format!("{scan:?}").contains("p/w+"), "{name}");
        let clean = redact_str(&text, &scan.findings);
        assert!(!found(&scanner, &clean) && clean.contains("[redacted:vault_value]"), "{name}: {clean}");
    }
    assert!(!found(&scanner, "P/W+<&>\"9'X é is another value"));
}

#[test]
fn nested_encodings_and_large_vaults_work_too() {
    let value = "S3cr3t-Passw0rd-Value";
    let mut entries: Vec<VaultEntry> = (0..300)
        .map(|n| VaultEntry { name: format!("v{n}"), value: SecretString::from(format!("filler-{n:04}-{}", n * 7919)) })
        .collect();
    entries.push(entry(value));
    for scanner in [Scanner::new(&entries).unwrap(), Scanner::new(&[entry(value)]).unwrap()] {
        assert!(found(&scanner, value));
        let nested = STANDARD.encode(format!("x{}", STANDARD.encode(format!("a secret sits here: {value}"))));
        assert!(found(&scanner, &nested), "{nested}");
        assert!(found(&scanner, &value.chars().map(|c| format!("{c}\u{200B}")).collect::<String>()));
    }
}

#[test]
fn too_short_a_value_is_refused_by_name() {
    let error = Scanner::new(&[entry("abc")]).unwrap_err();
    assert_eq!(error, SafetyError::VaultValueTooShort { name: "db".into(), bytes: 3 });
    assert_eq!(error.to_stable().code, "safety_vault_value_too_short");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_value_is_found_in_every_spelling(value in "[ -~é]{8,40}") {
        let scanner = Scanner::new(&[entry(&value)]).unwrap();
        for (name, spelled) in spellings(&value) {
            prop_assert!(found(&scanner, &format!("({spelled})")), "{}: {}", name, spelled);
        }
    }
}
