//! What a browser would make of a page: html5ever's tokeniser reads it, and everything that could act, load or lead astray is named.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// A page as its tokens.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Read {
    /// Start and end tags with their attributes, in order.
    pub(crate) tags: Vec<Tag>,
    /// All text outside scripts and styles.
    pub(crate) text: String,
    /// Text inside scripts.
    pub(crate) scripts: Vec<String>,
    /// Comments and doctypes.
    pub(crate) others: Vec<String>,
}

/// Tags with the names of their attributes, in order.
pub(crate) type Structure = Vec<(String, Vec<String>)>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

impl Read {
    /// The tags and names of attributes alone: what no text may change.
    pub(crate) fn structure(&self) -> Structure {
        let names = |tag: &Tag| tag.attributes.iter().map(|(name, _)| name.clone()).collect();
        self.tags.iter().map(|tag| (tag.name.clone(), names(tag))).collect()
    }
}

struct Sink(RefCell<(Read, Option<String>)>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut state = self.0.borrow_mut();
        let (read, inside) = &mut *state;
        match token {
            Token::CharacterTokens(text) => match inside.as_deref() {
                Some("script") => read.scripts.push(text.to_string()),
                Some("style") => {}
                _ => read.text.push_str(&text),
            },
            Token::NullCharacterToken => read.others.push("nul".to_owned()),
            Token::CommentToken(text) => read.others.push(format!("comment {text}")),
            Token::DoctypeToken(_) => read.others.push("doctype".to_owned()),
            Token::TagToken(tag) => {
                let attributes =
                    tag.attrs.iter().map(|attribute| (attribute.name.local.to_string(), attribute.value.to_string()));
                let name = match tag.kind {
                    TagKind::StartTag => tag.name.to_string(),
                    TagKind::EndTag => format!("/{}", tag.name),
                };
                read.tags.push(Tag { name: name.clone(), attributes: attributes.collect() });
                *inside = (tag.kind == TagKind::StartTag).then(|| name.clone());
                if tag.kind == TagKind::StartTag {
                    return match name.as_str() {
                        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                        "style" => TokenSinkResult::RawData(RawKind::Rawtext),
                        "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                        _ => TokenSinkResult::Continue,
                    };
                }
            }
            Token::EOFToken | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// Reads a page as a browser would.
pub(crate) fn read(page: &str) -> Read {
    let tokenizer = Tokenizer::new(Sink(RefCell::default()), TokenizerOpts::default());
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(page));
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.into_inner().0
}

const TAGS: [&str; 50] = [
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "div",
    "span",
    "ul",
    "ol",
    "li",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "form",
    "input",
    "textarea",
    "select",
    "option",
    "label",
    "fieldset",
    "button",
    "figure",
    "figcaption",
    "svg",
    "line",
    "rect",
    "polyline",
    "details",
    "summary",
    "progress",
    "pre",
    "code",
    "section",
    "footer",
    "a",
    "img",
    "em",
    "strong",
    "blockquote",
];
const MORE_TAGS: [&str; 6] = ["del", "sup", "sub", "br", "hr", "script"];
const ATTRIBUTES: [&str; 47] = [
    "lang",
    "charset",
    "name",
    "content",
    "nonce",
    "class",
    "id",
    "data-version",
    "data-page",
    "data-events",
    "data-entered",
    "role",
    "scope",
    "src",
    "alt",
    "max",
    "min",
    "value",
    "method",
    "action",
    "autocomplete",
    "type",
    "checked",
    "required",
    "for",
    "maxlength",
    "rows",
    "step",
    "selected",
    "disabled",
    "viewbox",
    "aria-hidden",
    "width",
    "height",
    "fill",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "stroke",
    "stroke-width",
    "points",
    "href",
    "rel",
    "start",
];

/// Everything on a page that must not be there.
pub(crate) fn complaints(page: &str, own_script: &str) -> Vec<String> {
    let read = read(page);
    let mut found = Vec::new();
    for tag in &read.tags {
        let name = tag.name.trim_start_matches('/');
        if !TAGS.contains(&name) && !MORE_TAGS.contains(&name) {
            found.push(format!("element {name}"));
        }
        for (attribute, value) in &tag.attributes {
            if !ATTRIBUTES.contains(&attribute.as_str()) {
                found.push(format!("attribute {attribute} of {name}"));
            }
            let lower = value.to_ascii_lowercase();
            let fine = match attribute.as_str() {
                "href" => ["http://", "https://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme)),
                "src" => ["png", "jpeg", "gif", "webp"]
                    .iter()
                    .any(|kind| lower.starts_with(&format!("data:image/{kind};base64,"))),
                "action" => name == "button" || value == "/canvas/v1/token/actions",
                "data-page" => value == "/canvas/v1/token",
                "data-events" => value == "/canvas/v1/token/events",
                "id" => value.starts_with("c-") || value.starts_with("f-"),
                "content" => name == "meta",
                _ => true,
            };
            if !fine {
                found.push(format!("{attribute}={value:?} of {name}"));
            }
        }
    }
    if read.scripts.concat() != own_script {
        found.push(format!("scripts {:?}", read.scripts));
    }
    found.extend(read.others.iter().filter(|other| *other != "doctype").cloned());
    found
}
