//! The JSON that answers are made of.

use std::borrow::Cow;

use serde_json::Value;

use crate::error::ModelError;

/// Bytes of an answer as text. Half a surrogate pair that was written as if it were a character stands for the replacement character, which is as
/// long; anything else that is not UTF-8 is none.
pub(super) fn text(mut bytes: Vec<u8>) -> Option<String> {
    if std::str::from_utf8(&bytes).is_err() {
        let mut at = 0;
        while let Some(three) = bytes.get_mut(at..at + 3) {
            if let [0xED, 0xA0..=0xBF, 0x80..=0xBF] = three {
                three.copy_from_slice("\u{fffd}".as_bytes());
                at += 2;
            }
            at += 1;
        }
    }
    String::from_utf8(bytes).ok()
}

/// One document of an answer. Half a surrogate pair, which models emit when a character is cut in two, stands for the replacement character.
pub(crate) fn parse(data: &str) -> Result<Value, ModelError> {
    serde_json::from_str(data)
        .or_else(|error| match without_lone_surrogates(data) {
            Cow::Borrowed(_) => Err(error),
            Cow::Owned(mended) => serde_json::from_str(&mended),
        })
        .map_err(|error| ModelError::malformed(format!("the server sent something that is not JSON: {error}")))
}

/// The same text with every escaped half of a surrogate pair that has no other half replaced by `\\ufffd`.
pub(crate) fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(offset) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        let begin = at + offset;
        match surrogate(text, begin) {
            Some(Half::High) if surrogate(text, begin + ESCAPE) == Some(Half::Low) => at = begin + 2 * ESCAPE,
            Some(_) => {
                mended.push_str(text.get(copied..begin).unwrap_or_default());
                mended.push_str("\\ufffd");
                at = begin + ESCAPE;
                copied = at;
            }
            // Any other escape: the character behind the backslash belongs to it.
            None => at = begin + 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(mended)
}

/// Length of an escape such as `\\ud83d`.
const ESCAPE: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// The half of a surrogate pair whose escape begins here.
fn surrogate(text: &str, begin: usize) -> Option<Half> {
    let digits = text.get(begin..begin + ESCAPE)?.strip_prefix("\\u")?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xD800..=0xDBFF => Some(Half::High),
        0xDC00..=0xDFFF => Some(Half::Low),
        _ => None,
    }
}

/// The error for JSON that has nothing of what this kind of server sends: most likely it is another kind of server.
pub(crate) fn no_part_of(what: &str) -> ModelError {
    ModelError::malformed(format!("the server sent JSON that is not the expected {what}; check the base URL"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_pair_in_raw_bytes_is_replaced_and_other_damage_is_none() {
        let lone = b"{\"t\":\"a\xED\xA0\xBDb\xED\xBF\xBF\"}".to_vec();
        assert_eq!(text(lone).as_deref(), Some("{\"t\":\"a\u{fffd}b\u{fffd}\"}"));
        assert_eq!(text("wörter 🦀 \u{d7ff}".into()).as_deref(), Some("wörter 🦀 \u{d7ff}"));
        for damaged in [&b"a\xFFb"[..], b"\xED\xA0", b"\xED\xA0\xBD\xFF"] {
            assert_eq!(text(damaged.to_vec()), None, "{damaged:?}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_whole_pairs_are_kept() {
        for (text, read) in [
            (r#"["a\ud83d"]"#, json!(["a\u{fffd}"])),
            (r#"["\ude00b"]"#, json!(["\u{fffd}b"])),
            (r#"["\ud83d\ud83d\ude00"]"#, json!(["\u{fffd}\u{1f600}"])),
            (r#"["\ud83d\n"]"#, json!(["\u{fffd}\n"])),
            (r#"["\\ud83d"]"#, json!(["\\ud83d"])),
            (r#"["\ud83d\ude00"]"#, json!(["\u{1f600}"])),
        ] {
            assert_eq!(parse(text).unwrap(), read, "{text}");
        }
        assert!(parse(r#"["\ud83d"#).is_err());
    }

    proptest! {
        #[test]
        fn valid_documents_are_never_touched(text in "\\PC{0,40}") {
            let document = json!([text]).to_string();
            prop_assert!(matches!(without_lone_surrogates(&document), Cow::Borrowed(_)));
        }

        #[test]
        fn any_text_is_mended_or_left(text in "[\\\\ud8c0-9a-f\"]{0,40}") {
            let _ = without_lone_surrogates(&text);
        }
    }
}
