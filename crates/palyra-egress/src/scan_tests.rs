use super::*;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

const SECRET: &str = "sk-Live/\"42+&'<x>=?aB";

fn needles() -> Arc<Needles> {
    Arc::new(Needles::of(&[SecretString::from(SECRET.to_owned())]))
}

fn through(text: &[u8], sizes: &[usize]) -> (Vec<u8>, u64) {
    let mut scanner = Scanner::new(needles());
    let mut out = Vec::new();
    let mut rest = text;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at((*sizes.next().unwrap()).clamp(1, rest.len()));
        out.extend_from_slice(&scanner.push(chunk));
        rest = after;
    }
    out.extend_from_slice(&scanner.finish());
    (out, scanner.take_found())
}

fn disguises() -> Vec<String> {
    let bytes = SECRET.as_bytes();
    vec![
        SECRET.to_owned(),
        hex::encode(bytes),
        hex::encode_upper(bytes),
        STANDARD.encode(bytes),
        URL_SAFE.encode(bytes),
        STANDARD.encode(format!("u:{SECRET}")),
        STANDARD.encode(format!("us:{SECRET}:x")),
        STANDARD.encode(format!("user:{SECRET}and more")),
        bytes.iter().map(|byte| format!("%{byte:02x}")).collect(),
        "sk-Live%2F%2242%2B%26%27%3Cx%3E%3D%3FaB".to_owned(),
        serde_json::to_string(&[SECRET]).unwrap(),
        SECRET.chars().map(|letter| format!("\\u{:04X}", u32::from(letter))).collect(),
        SECRET.chars().map(|letter| format!("&#{};", u32::from(letter))).collect(),
        SECRET.chars().map(|letter| format!("&#x{:x};", u32::from(letter))).collect(),
        SECRET.replace('k', "\\u006b").replace('/', "&sol;").replace('+', "%2b"),
        SECRET.chars().flat_map(|letter| [letter, '\0']).collect(),
        SECRET.chars().flat_map(|letter| ['\0', letter]).collect(),
        SECRET.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;"),
    ]
}

#[test]
fn every_disguise_is_found_however_the_stream_is_cut() {
    for disguise in disguises() {
        let text = format!("before {disguise} after");
        for sizes in [&[1][..], &[2, 3], &[7], &[1000]] {
            let (out, found) = through(text.as_bytes(), sizes);
            assert!(found >= 1, "{disguise} in pieces of {sizes:?}");
            assert_eq!(out.len(), text.len(), "lengths stay true");
            assert!(out.starts_with(b"before ") && out.ends_with(b" after"));
            let shown = String::from_utf8(out).unwrap();
            for other in disguises() {
                assert!(!shown.contains(&other), "{shown} still shows {other}");
            }
        }
    }
}

#[test]
fn what_is_no_match_passes_at_once() {
    let mut scanner = Scanner::new(needles());
    assert_eq!(&scanner.push(b"data: one event\n\n")[..], b"data: one event\n\n", "nothing is held back");
    assert_eq!(&scanner.push(b"xx sk-Li")[..], b"xx ", "only what could become a match");
    assert_eq!(&scanner.push(b"ke")[..], b"sk-Like");
    assert_eq!(scanner.take_found(), 0);
    assert!(needles().mask_whole(b"harmless").is_none());
    assert_eq!(needles().mask_whole(format!("a{SECRET}b").as_bytes()).unwrap().1, 1);
}

#[test]
fn a_secret_behind_the_start_of_another_match_is_found_at_the_end() {
    for lure in ["sk-Li", "&#11", "\\u00", "s%6", "c2st"] {
        let (out, found) = through(format!("{lure}{SECRET}").as_bytes(), &[1]);
        assert_eq!(found, 1, "{lure}");
        assert_eq!(&out[..lure.len()], lure.as_bytes());
        assert!(out[lure.len()..].iter().all(|byte| *byte == b'*'), "{lure}");
    }
}

proptest::proptest! {
    /// However a text that holds the secret is cut, the secret does not come out and everything else does.
    #[test]
    fn cutting_changes_nothing(before in "[a-zA-Z0-9+/=-]{0,40}", after in "[a-zA-Z0-9+/=-]{0,40}", sizes in proptest::collection::vec(1_usize..50, 1..8)) {
        let text = format!("{before}{SECRET}{after}");
        let (out, found) = through(text.as_bytes(), &sizes);
        proptest::prop_assert!(found >= 1);
        proptest::prop_assert_eq!(out.len(), text.len());
        proptest::prop_assert!(memmem::find(&out, SECRET.as_bytes()).is_none());
    }
}
