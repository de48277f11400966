//! Files in words, for wires that have no place for them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::part::Part;

/// Media types that are text without saying so.
const TEXTUAL: &[&str] =
    &["application/json", "application/xml", "application/yaml", "application/toml", "application/javascript"];

/// The text of a part that is text; none if it is something else.
pub(crate) fn text_of(part: &Part) -> Option<String> {
    let media_type = essence(part);
    if !media_type.starts_with("text/") && !TEXTUAL.contains(&media_type.as_str()) {
        return None;
    }
    String::from_utf8(STANDARD.decode(part.data.trim()).ok()?).ok()
}

/// A part in words: a text file as it is, anything else by its name, so that the model knows that there was something.
pub(crate) fn in_words(part: &Part) -> String {
    let name = part.name.as_deref().unwrap_or("without a name");
    match text_of(part) {
        Some(text) => format!("[file {name}]\n{text}"),
        None => format!("[{} {name} of type {} cannot be shown to this model]", part.kind, essence(part)),
    }
}

/// The media type without parameters, in lower case.
pub(crate) fn essence(part: &Part) -> String {
    part.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::PartKind;

    fn part(kind: PartKind, media_type: &str, data: &str) -> Part {
        Part { kind, media_type: media_type.into(), name: Some("n".into()), data: data.into() }
    }

    #[test]
    fn text_is_told_and_the_rest_is_named() {
        assert_eq!(in_words(&part(PartKind::File, "text/plain; charset=utf-8", "aGk=")), "[file n]\nhi");
        assert_eq!(in_words(&part(PartKind::File, "Application/JSON", "e30=")), "[file n]\n{}");
        for (media_type, data) in [("application/zip", "aGk="), ("text/plain", "not base64"), ("text/plain", "//8=")] {
            let shown = in_words(&part(PartKind::File, media_type, data));
            assert_eq!(shown, format!("[file n of type {media_type} cannot be shown to this model]"));
        }
    }
}
