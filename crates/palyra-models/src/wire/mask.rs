//! Keys in what servers say.
//!
//! Some servers repeat the key they refuse, as it is, encoded, or cut into pieces. Every error that holds a server's words passes through here
//! before anybody sees it.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use palyra_common::SecretString;

use crate::error::ModelError;

/// Shortest key that is looked for. Anything shorter is no key, and would tear words apart.
const SHORTEST: usize = 4;
/// Shortest key that is looked for in pieces and encodings; short ones would be found in innocent words.
const SHORTEST_HIDDEN: usize = 8;
/// Most characters between two characters of a key that was cut into pieces.
const MAX_GAP: usize = 8;
/// What stands in the place of a key.
const REDACTED: &str = "[redacted]";

/// Takes one key out of texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask(Option<SecretString>);

impl Mask {
    pub(crate) const fn new(key: Option<SecretString>) -> Self {
        Self(key)
    }

    /// The same error without the key.
    pub(crate) fn clean(&self, mut error: ModelError) -> ModelError {
        let Some(key) = self.0.as_ref().map(|key| key.expose()).filter(|key| key.len() >= SHORTEST) else {
            return error;
        };
        error.message = error.message.replace(key.as_str(), REDACTED);
        if key.len() >= SHORTEST_HIDDEN {
            for form in encoded(key) {
                error.message = error.message.replace(&form, REDACTED);
            }
            error.message = without_pieces(&error.message, key);
        }
        error
    }
}

/// The ways in which servers write a text that is not to be read at once.
fn encoded(key: &str) -> Vec<String> {
    let hex = |upper: bool, prefix: &str| {
        key.bytes().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = if upper { write!(text, "{prefix}{byte:02X}") } else { write!(text, "{prefix}{byte:02x}") };
            text
        })
    };
    let percent = |upper: bool| {
        key.bytes().fold(String::new(), |mut text, byte| {
            if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                text.push(char::from(byte));
            } else {
                let _ = if upper { write!(text, "%{byte:02X}") } else { write!(text, "%{byte:02x}") };
            }
            text
        })
    };
    let mut forms = vec![hex(false, ""), hex(true, ""), hex(false, "%"), hex(true, "%"), percent(false), percent(true)];
    // Within a longer text (`user:key`) the key begins at any of three places of a group; the first and last characters then depend on its
    // neighbours and are left out.
    for shift in 0..3_usize {
        let mut padded = vec![0; shift];
        padded.extend_from_slice(key.as_bytes());
        for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            let begin = if shift == 0 { 0 } else { shift + 1 };
            let end = if padded.len() % 3 == 0 { text.len() } else { text.len().saturating_sub(1) };
            forms.extend(text.get(begin..end).map(str::to_owned));
        }
    }
    forms.retain(|form| form.len() >= SHORTEST_HIDDEN && form != key);
    forms
}

/// The text without stretches that are the key with something put between its characters.
fn without_pieces(text: &str, key: &str) -> String {
    let all: Vec<char> = text.chars().collect();
    let wanted: Vec<char> = key.chars().collect();
    let mut cleaned = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(first) = all.get(at) {
        match end_of_pieces(&all, at, &wanted) {
            Some(end) => {
                cleaned.push_str(REDACTED);
                at = end;
            }
            None => {
                cleaned.push(*first);
                at += 1;
            }
        }
    }
    cleaned
}

/// Where the key ends that begins here, with at most a few characters that are no letters or digits between two of its own.
fn end_of_pieces(all: &[char], begin: usize, wanted: &[char]) -> Option<usize> {
    let mut at = begin;
    for (position, character) in wanted.iter().enumerate() {
        let mut gap = 0;
        while all.get(at)? != character {
            let may_skip = position > 0 && gap < MAX_GAP && !all.get(at)?.is_alphanumeric();
            if !may_skip {
                return None;
            }
            gap += 1;
            at += 1;
        }
        at += 1;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::error::ModelErrorClass;

    const KEY: &str = "sk-hunter2/+=x";

    fn cleaned(message: &str) -> String {
        let mask = Mask::new(Some(SecretString::from(KEY.to_owned())));
        mask.clean(ModelError::new(ModelErrorClass::Auth, message)).message
    }

    #[test]
    fn a_repeated_key_is_masked() {
        assert_eq!(cleaned(&format!("incorrect key {KEY} given")), "incorrect key [redacted] given");
        let error = ModelError::new(ModelErrorClass::Auth, "incorrect key sk-hunter2 given");
        assert_eq!(Mask::default().clean(error.clone()), error);
    }

    #[test]
    fn an_encoded_key_is_masked() {
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02X}")).collect();
        for form in ["sk-hunter2%2F%2B%3Dx", "sk-hunter2%2f%2b%3dx", &hex, &STANDARD.encode(KEY)] {
            assert_eq!(cleaned(&format!("bad key {form}!")).matches(REDACTED).count(), 1, "{form}");
        }
        for user in ["u", "us", "use"] {
            let shown = cleaned(&format!("Basic {}", STANDARD.encode(format!("{user}:{KEY}"))));
            assert!(shown.contains(REDACTED), "{shown}");
        }
    }

    #[test]
    fn a_key_in_pieces_is_masked() {
        for pieces in
            ["sk-hunt er2/+=x", "s k - h u n t e r 2 / + = x", "\"sk-hun\" + \"ter2/+=x\"", "sk-hunter2\\/+=x"]
        {
            assert!(cleaned(&format!("bad key {pieces}!")).contains(REDACTED), "{pieces}");
        }
        assert_eq!(cleaned("skip the hunter of sk-hunters"), "skip the hunter of sk-hunters");
    }
}
