//! Keys in every spelling that servers were seen to use, and words that are none.

use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::error::ModelErrorClass;

const KEY: &str = "sk-hunter2/+=x";

fn mask() -> Mask {
    Mask::new(Some(SecretString::from(KEY.to_owned())))
}

fn cleaned(message: &str) -> String {
    mask().clean(ModelError::new(ModelErrorClass::Auth, message)).message
}

fn hex(between: &str, upper: bool) -> String {
    let digits = |byte: u8| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
    KEY.bytes().map(digits).collect::<Vec<_>>().join(between)
}

#[test]
fn a_repeated_key_is_masked() {
    assert_eq!(cleaned(&format!("incorrect key {KEY} given")), "incorrect key [redacted] given");
    let error = ModelError::new(ModelErrorClass::Auth, "incorrect key sk-hunter2 given");
    assert_eq!(Mask::default().clean(error.clone()), error);
}

#[test]
fn an_encoded_key_is_masked() {
    let unicode: String = KEY.chars().map(|letter| format!("\\u{:04X}", u32::from(letter))).collect();
    let entities: String = KEY.chars().map(|letter| format!("&#{};", u32::from(letter))).collect();
    let mixed: String = KEY
        .bytes()
        .enumerate()
        .map(|(at, byte)| if at % 2 == 0 { format!("{byte:02x}") } else { format!("{byte:02X}") })
        .collect();
    for form in [
        "sk-hunter2%2F%2B%3Dx",
        "sk-hunter2%2f%2b%3dx",
        "sk-hunter2&#x2f;&plus;&equals;x",
        &unicode,
        &entities,
        &mixed,
        &hex("", true),
        &hex(" ", false),
        &hex(":", true),
        &hex(", 0x", false),
        &hex("\\x", false),
        &STANDARD.encode(KEY),
    ] {
        let shown = cleaned(&format!("bad key {form}!"));
        assert_eq!(shown.matches(REDACTED).count(), 1, "{form}: {shown}");
    }
    for user in ["u", "us", "use"] {
        let shown = cleaned(&format!("Basic {}", STANDARD.encode(format!("{user}:{KEY}"))));
        assert!(shown.contains(REDACTED), "{shown}");
    }
}

#[test]
fn a_key_in_pieces_is_masked() {
    for pieces in ["sk-hunt er2/+=x", "s k - h u n t e r 2 / + = x", "\"sk-hun\" + \"ter2/+=x\"", "sk-hunter2\\/+=x"] {
        assert!(cleaned(&format!("bad key {pieces}!")).contains(REDACTED), "{pieces}");
    }
    assert_eq!(cleaned("skip the hunter of sk-hunters"), "skip the hunter of sk-hunters");
}

#[test]
fn a_key_that_is_cut_off_with_the_message_is_masked() {
    for form in [KEY, &hex("", false), &hex(":", true), &STANDARD.encode(KEY), "s k - h u n t e r 2 / + = x"] {
        for shown in 5..form.len() {
            let message = format!("{}{form}", "x".repeat(400 - shown));
            let shown = cleaned(&message);
            // The last characters in Base64 depend on what follows and give nothing away.
            let behind = shown.split_once("x[redacted]").map(|(_, behind)| behind.chars().count());
            assert!(behind.is_some_and(|behind| behind <= 3), "{form} cut: {shown}");
        }
    }
    let long = "y".repeat(500);
    assert_eq!(cleaned(&long), format!("{}…", "y".repeat(400)));
}

#[test]
fn text_that_arrives_in_pieces_is_held_back_only_while_it_could_become_the_key() {
    let whole = format!("ask {KEY}, risk, {} and desks", hex(" ", false));
    for size in 1..whole.len() {
        let (mut held, mut shown) = (String::new(), String::new());
        for piece in whole.as_bytes().chunks(size) {
            held.push_str(std::str::from_utf8(piece).unwrap());
            shown.push_str(&mask().take_decided(&mut held));
        }
        shown.push_str(&mask().clean_text(&held));
        assert_eq!(shown, "ask [redacted], risk, [redacted] and desks", "in pieces of {size}");
    }
    let mut held = "no key here: öä".to_owned();
    assert_eq!((mask().take_decided(&mut held).as_str(), held.as_str()), ("no key here: öä", ""));
}
