//! A page as text: headings, paragraphs, lists, tables and links, in the order of the source.
//!
//! The tokeniser of html5ever reads the page, so entities, comments, odd quoting and unclosed tags are read as browsers read them; no tree is built,
//! so a page nested a million deep costs no more than a flat one. Scripts, styles and elements that a page hides are left out: what a person does
//! not see on the page should not be read from it either.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use tokio_util::sync::CancellationToken;

use super::Link;
use crate::target::Target;

/// Most links that are listed.
const LINK_LIMIT: usize = 1000;

pub(super) struct Page {
    pub(super) title: Option<String>,
    pub(super) text: String,
    pub(super) links: Vec<Link>,
}

/// Reads a page; `None` as soon as `stop` is cancelled.
pub(super) fn read(source: &str, base: &str, stop: &CancellationToken) -> Option<Page> {
    let writer = Writer { base: Target::parse(base).ok(), ..Writer::default() };
    let tokenizer =
        Tokenizer::new(Sink { writer: RefCell::new(writer), tokens: Cell::new(0) }, TokenizerOpts::default());
    let queue = BufferQueue::default();
    for piece in pieces(source) {
        if stop.is_cancelled() {
            return None;
        }
        let tokens = tokenizer.sink.tokens.get();
        queue.push_back(StrTendril::from_slice(piece));
        // The sink never asks to run a script, so one call reads all of the piece.
        let _ = tokenizer.feed(&queue);
        if tokenizer.sink.tokens.get() == tokens {
            queue.push_back(StrTendril::from_slice(END_OF_TAG));
            let _ = tokenizer.feed(&queue);
        }
    }
    tokenizer.end();
    Some(tokenizer.sink.writer.into_inner().finish())
}

/// How many words are read at once. Where so many pass without a token, the tokeniser is inside a tag, and compares each attribute with all before it:
/// a tag of a million would take hours, so it is ended there. Counted in words and not in bytes, because images are often written into attributes.
const WORDS: usize = 1000;

/// Ends a tag wherever its reader stands: before or in a value of either quotes, or in a name.
const END_OF_TAG: &str = "\"'>\"'>";

/// The source in pieces of so many words.
fn pieces(source: &str) -> impl Iterator<Item = &str> {
    let mut rest = source;
    std::iter::from_fn(move || {
        let separates =
            |(_, byte): &(usize, u8)| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'/' | b'"' | b'\'');
        let end = rest.bytes().enumerate().filter(separates).nth(WORDS).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at_checked(end.max(1)).unwrap_or((rest, ""));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

struct Sink {
    writer: RefCell<Writer>,
    /// How many tokens came.
    tokens: Cell<u64>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        // What is wrong with a tag is told while it is read.
        if !matches!(token, Token::ParseError(_)) {
            self.tokens.set(self.tokens.get().saturating_add(1));
        }
        let mut writer = self.writer.borrow_mut();
        match token {
            Token::CharacterTokens(text) => writer.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                writer.start(&tag);
                return match &*tag.name {
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
                    "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                    "plaintext" => TokenSinkResult::Plaintext,
                    _ => TokenSinkResult::Continue,
                };
            }
            Token::TagToken(tag) => writer.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// What is being left out, and how many elements of that name are open.
struct Hidden {
    name: String,
    depth: usize,
}

#[derive(Default)]
struct Writer {
    base: Option<Target>,
    out: String,
    title: Option<String>,
    in_title: bool,
    hidden: Option<Hidden>,
    /// Depth of `pre`: white space counts there.
    verbatim: usize,
    lists: Vec<Option<usize>>,
    cells: usize,
    link: Option<(usize, String)>,
    links: Vec<Link>,
    seen: HashSet<String>,
}

/// Elements whose content is not for reading.
fn is_left_out(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "noscript"
            | "template"
            | "svg"
            | "math"
            | "iframe"
            | "object"
            | "canvas"
            | "audio"
            | "video"
            | "select"
            | "dialog"
            | "noembed"
            | "noframes"
    )
}

/// Elements that must be closed by a tag of their own; only for these can be told where a hidden one ends.
fn is_container(name: &str) -> bool {
    matches!(
        name,
        "div"
            | "span"
            | "section"
            | "article"
            | "aside"
            | "nav"
            | "header"
            | "footer"
            | "main"
            | "ul"
            | "ol"
            | "table"
            | "a"
            | "b"
            | "i"
            | "em"
            | "strong"
            | "font"
            | "figure"
            | "form"
            | "label"
            | "button"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "details"
            | "blockquote"
            | "pre"
            | "code"
            | "small"
            | "sup"
            | "sub"
            | "center"
            | "textarea"
    )
}

fn is_hidden(tag: &Tag) -> bool {
    tag.attrs.iter().any(|attribute| match &*attribute.name.local {
        "hidden" => true,
        "aria-hidden" => attribute.value.eq_ignore_ascii_case("true"),
        "style" => {
            let style: String =
                attribute.value.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase();
            ["display:none", "visibility:hidden", "font-size:0", "opacity:0;"]
                .iter()
                .any(|hiding| style.contains(hiding))
                || style.ends_with("opacity:0")
        }
        _ => false,
    })
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

impl Writer {
    fn start(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if let Some(hidden) = &mut self.hidden {
            if hidden.name == name && !tag.self_closing {
                hidden.depth += 1;
            }
            return;
        }
        let hides = is_left_out(name) && !tag.self_closing || is_container(name) && is_hidden(tag);
        if hides {
            self.hidden = Some(Hidden { name: name.to_owned(), depth: 1 });
            return;
        }
        match name {
            "title" => self.in_title = self.title.is_none(),
            "br" => self.out.push('\n'),
            "hr" => self.block("\n---\n"),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.bytes().last().map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
                self.block("\n");
                self.out.push_str(&"#".repeat(level.clamp(1, 6)));
                self.out.push(' ');
            }
            "ul" | "menu" => {
                self.block("");
                self.lists.push(None);
            }
            "ol" => {
                self.block("");
                self.lists.push(Some(0));
            }
            "li" => self.item(),
            "tr" => {
                self.block("");
                self.cells = 0;
            }
            "td" | "th" => {
                if self.cells > 0 {
                    self.out.push_str(" | ");
                }
                self.cells += 1;
            }
            "pre" | "xmp" | "plaintext" => {
                self.block("\n```\n");
                self.verbatim += 1;
            }
            "a" => {
                self.close_link();
                if let Some(url) = attribute(tag, "href").and_then(|href| self.resolve(href)) {
                    self.link = Some((self.out.len(), url));
                }
            }
            "img" => {
                if let Some(alt) = attribute(tag, "alt").map(str::to_owned).filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            "p" | "dl" | "table" | "blockquote" | "figure" | "article" | "section" | "main" => self.block("\n"),
            "div" | "header" | "footer" | "nav" | "aside" | "form" | "dt" | "dd" | "caption" | "figcaption"
            | "details" | "summary" | "address" | "fieldset" | "option" | "body" | "center" => self.block(""),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(hidden) = &mut self.hidden {
            if hidden.name == name {
                hidden.depth = hidden.depth.saturating_sub(1);
                if hidden.depth == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "a" => self.close_link(),
            "pre" | "xmp" if self.verbatim > 0 => {
                self.verbatim -= 1;
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                self.out.push_str("```\n");
            }
            "ul" | "ol" | "menu" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { "\n" } else { "" });
            }
            "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "blockquote" => self.block("\n"),
            "div" | "li" | "tr" | "dt" | "dd" | "header" | "footer" | "nav" | "section" | "article" | "form" => {
                self.block("");
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.in_title {
            let title = self.title.get_or_insert_default();
            title.push_str(text);
            return;
        }
        if self.verbatim > 0 {
            self.out.push_str(text);
            return;
        }
        for (index, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            if index > 0 && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
            self.out.push_str(word);
        }
    }

    /// Ends the line, and adds what stands between blocks unless it is there already.
    fn block(&mut self, between: &str) {
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        if !(self.out.is_empty() || between == "\n" && self.out.ends_with("\n\n")) {
            self.out.push_str(between);
        } else if self.out.is_empty() && between.len() > 1 {
            self.out.push_str(between.trim_start_matches('\n'));
        }
    }

    fn item(&mut self) {
        self.block("");
        let depth = self.lists.len().clamp(1, 8);
        self.out.push_str(&"  ".repeat(depth - 1));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                let mark = format!("{number}. ");
                self.out.push_str(&mark);
            }
            _ => self.out.push_str("- "),
        }
    }

    /// A whole address, or `None` for what leads nowhere outside the page.
    fn resolve(&self, href: &str) -> Option<String> {
        let href = href.trim();
        let lower = href.to_ascii_lowercase();
        if href.is_empty()
            || href.starts_with('#')
            || ["javascript:", "data:", "vbscript:", "blob:"].iter().any(|odd| lower.starts_with(odd))
        {
            return None;
        }
        if lower.starts_with("mailto:") || lower.starts_with("tel:") {
            return Some(href.to_owned());
        }
        let joined = match &self.base {
            Some(base) => base.join(href),
            None => Target::parse(href),
        };
        joined.ok().map(|target| target.url())
    }

    fn close_link(&mut self) {
        let Some((start, url)) = self.link.take() else { return };
        let Some(text) = self.out.get(start..) else { return };
        let label = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if label.is_empty() {
            return;
        }
        let lead = text.len() - text.trim_start().len();
        let trail = text.len() - text.trim_end().len();
        let (before, after) = (
            text.get(..lead).unwrap_or_default().to_owned(),
            text.get(text.len() - trail..).unwrap_or_default().to_owned(),
        );
        self.out.truncate(start);
        self.out.push_str(&format!("{before}[{label}]({url}){after}"));
        if self.links.len() < LINK_LIMIT && self.seen.insert(url.clone()) {
            self.links.push(Link { text: label, url });
        }
    }

    fn finish(mut self) -> Page {
        self.close_link();
        let title = self
            .title
            .map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|title| !title.is_empty());
        // At most one empty line in a row.
        let mut text = String::with_capacity(self.out.len());
        let mut empty = 0;
        for line in self.out.lines() {
            let line = line.trim_end();
            empty = if line.is_empty() { empty + 1 } else { 0 };
            if empty <= 1 && !(text.is_empty() && line.is_empty()) {
                text.push_str(line);
                text.push('\n');
            }
        }
        Page { title, text: text.trim_end().to_owned(), links: self.links }
    }
}
