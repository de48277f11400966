//! What a person or a model can read of an answer.
//!
//! HTML becomes text with its links kept (`html`), JSON and other text pass through in UTF-8, everything else is reported by type and size. The
//! answer's own word on its type and charset is taken where it makes sense and checked against the bytes where it does not. Nothing here judges
//! whether the text is to be trusted: it is not.

mod html;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use palyra_common::runtime_contract_enum;
use tokio_util::sync::CancellationToken;

/// How far into a page a charset is looked for, as browsers do.
const PRESCAN: usize = 1024;

runtime_contract_enum! {
    /// What kind of content an answer has.
    pub enum ContentKind("egress_content_kind") {
        /// A page.
        Html = "html",
        /// JSON.
        Json = "json",
        /// Other text.
        Text = "text",
        /// Not text.
        Binary = "binary",
        /// Nothing.
        Empty = "empty",
    }
}

/// A link of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// What it says.
    pub text: String,
    /// Where it leads, as a whole address where it could be made one.
    pub url: String,
}

/// The readable form of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    /// What kind of content it was.
    pub kind: ContentKind,
    /// The media type without parameters, in lower case; a guess where the answer named none.
    pub media_type: String,
    /// The charset the text was in.
    pub charset: Option<&'static str>,
    /// The title of a page.
    pub title: Option<String>,
    /// The text; for binary content a line with type and size.
    pub text: String,
    /// The links of a page, in order, each address once.
    pub links: Vec<Link>,
    /// Size of the content in bytes.
    pub bytes: usize,
}

/// Makes content readable, unless `stop` is cancelled meanwhile. `base` is the address it came from, for the links of a page.
#[must_use]
pub fn readable(content_type: Option<&str>, body: &[u8], base: &str, stop: &CancellationToken) -> Option<Readable> {
    let (media_type, label) = parse_content_type(content_type.unwrap_or_default());
    let kind = kind_of(&media_type, body);
    let media_type = match (media_type.as_str(), kind) {
        ("", ContentKind::Html) => "text/html".to_owned(),
        ("", ContentKind::Json) => "application/json".to_owned(),
        ("", ContentKind::Text) => "text/plain".to_owned(),
        ("", _) => "application/octet-stream".to_owned(),
        _ => media_type,
    };
    let mut readable = Readable {
        kind,
        media_type,
        charset: None,
        title: None,
        text: String::new(),
        links: Vec::new(),
        bytes: body.len(),
    };
    match kind {
        ContentKind::Empty => {}
        ContentKind::Binary => readable.text = format!("[{}, {} bytes]", readable.media_type, body.len()),
        ContentKind::Json | ContentKind::Text | ContentKind::Html => {
            let (text, charset) = decode(body, label.as_deref(), kind);
            readable.charset = Some(charset);
            if kind == ContentKind::Html {
                let page = html::read(&text, base, stop)?;
                (readable.title, readable.text, readable.links) = (page.title, page.text, page.links);
            } else {
                readable.text = text;
            }
        }
    }
    Some(readable)
}

/// Media type and charset of a `Content-Type` header.
fn parse_content_type(text: &str) -> (String, Option<String>) {
    let mut parts = text.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (media_type, charset)
}

fn kind_of(media_type: &str, body: &[u8]) -> ContentKind {
    if body.is_empty() {
        return ContentKind::Empty;
    }
    let named = match media_type {
        "text/html" | "application/xhtml+xml" => Some(ContentKind::Html),
        "application/json" | "text/json" => Some(ContentKind::Json),
        "application/javascript"
        | "application/ecmascript"
        | "application/xml"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-ndjson"
        | "application/x-www-form-urlencoded"
        | "application/sql"
        | "application/x-sh"
        | "image/svg+xml" => Some(ContentKind::Text),
        other if other.ends_with("+json") => Some(ContentKind::Json),
        other if other.ends_with("+xml") || other.starts_with("text/") => Some(ContentKind::Text),
        "" | "application/octet-stream" | "binary/octet-stream" | "unknown/unknown" => None,
        _ => return ContentKind::Binary,
    };
    match named {
        // Whatever the header says, text has no NUL; UTF-16 has, and begins with a mark.
        Some(_) if looks_binary(body) => ContentKind::Binary,
        Some(kind) => kind,
        None => sniff(body),
    }
}

fn looks_binary(body: &[u8]) -> bool {
    Encoding::for_bom(body).is_none() && body.iter().take(PRESCAN).any(|byte| *byte == 0)
}

fn sniff(body: &[u8]) -> ContentKind {
    let front = body.get(..body.len().min(PRESCAN)).unwrap_or_default();
    let cut_inside_letter = |error: std::str::Utf8Error| error.error_len().is_none() && body.len() > front.len();
    let is_text = match std::str::from_utf8(front) {
        Ok(_) => true,
        Err(error) => cut_inside_letter(error),
    };
    if looks_binary(body) || !is_text {
        return ContentKind::Binary;
    }
    let start =
        String::from_utf8_lossy(front).trim_start_matches(['\u{feff}', ' ', '\n', '\r', '\t']).to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        ContentKind::Html
    } else if start.starts_with(['{', '[']) && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
        ContentKind::Json
    } else {
        ContentKind::Text
    }
}

/// Text in UTF-8 and the charset it was in: by its mark, by the header, by the page itself, or by what it can be.
fn decode(body: &[u8], label: Option<&str>, kind: ContentKind) -> (String, &'static str) {
    let by_label = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let by_page = || (kind == ContentKind::Html).then(|| charset_of_page(body)).flatten();
    let encoding =
        Encoding::for_bom(body).map(|(encoding, _)| encoding).or(by_label).or_else(by_page).unwrap_or_else(|| {
            if std::str::from_utf8(body).is_ok() || kind == ContentKind::Json { UTF_8 } else { WINDOWS_1252 }
        });
    let (text, used, _) = encoding.decode(body);
    (text.into_owned(), used.name())
}

/// The charset in a `meta` element near the start of a page.
fn charset_of_page(body: &[u8]) -> Option<&'static Encoding> {
    let front = body.get(..body.len().min(PRESCAN)).unwrap_or_default().to_ascii_lowercase();
    let text = String::from_utf8_lossy(&front);
    let meta = text.find("<meta")?;
    let (_, value) = text.get(meta..)?.split_once("charset=")?;
    let label: String = value
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
        .collect();
    Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
#[path = "readable_tests.rs"]
mod tests;
