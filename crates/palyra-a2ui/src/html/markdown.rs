//! Markdown: a real parser finds the structure, and only elements named here are written. HTML inside is shown as the text it is, pictures
//! that would have to be loaded are their descriptions, and a link shows where it leads.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::writer::Html;
use crate::safe::{is_picture, link};

/// Deepest nesting that is written; what stands deeper is written flat. Browsers slow down on thousands of nested elements.
const MAX_NESTING: usize = 64;

pub(super) fn write(html: &mut Html, source: &str) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer { html, open: Vec::new(), flat: 0, picture: None, in_head: false };
    for event in Parser::new_ext(source, options) {
        writer.event(event);
    }
}

/// A picture whose description is being read.
struct Picture<'a> {
    address: CowStr<'a>,
    description: String,
    nested: usize,
}

struct Writer<'a, 'h> {
    html: &'h mut Html,
    /// What is to be written when each open element ends.
    open: Vec<Ending<'a>>,
    /// Elements that were too deep to be written.
    flat: usize,
    picture: Option<Picture<'a>>,
    in_head: bool,
}

/// How an element ends.
enum Ending<'a> {
    Element(&'static str),
    Code,
    Table,
    /// A link and where it leads.
    Link(CowStr<'a>),
    /// A link that leads nowhere harmless: its address stands there as text.
    Address(CowStr<'a>),
    Nothing,
}

impl<'a> Writer<'a, '_> {
    fn event(&mut self, event: Event<'a>) {
        if let Some(picture) = &mut self.picture {
            match event {
                Event::Start(_) => picture.nested += 1,
                Event::End(TagEnd::Image) if picture.nested == 0 => self.end_picture(),
                Event::End(_) => picture.nested = picture.nested.saturating_sub(1),
                Event::Text(text) | Event::Code(text) => picture.description.push_str(&text),
                _ => picture.description.push(' '),
            }
            return;
        }
        match event {
            Event::Start(tag) if self.open.len() >= MAX_NESTING => {
                self.flat += 1;
                if let Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } = tag {
                    self.html.literal(" (").text(&dest_url).literal(") ");
                }
            }
            Event::Start(tag) => self.start(tag),
            Event::End(_) if self.flat > 0 => self.flat -= 1,
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) | Event::FootnoteReference(text) => {
                self.html.text(&text);
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.html.literal("<code>").text(&text).literal("</code>");
            }
            Event::SoftBreak => {
                self.html.literal("\n");
            }
            Event::HardBreak => {
                self.html.literal("<br>");
            }
            Event::Rule => {
                self.html.literal("<hr>");
            }
            Event::TaskListMarker(done) => {
                self.html.literal(if done { "☑ " } else { "☐ " });
            }
        }
    }

    fn start(&mut self, tag: Tag<'a>) {
        let ending = match tag {
            Tag::Paragraph => self.element("p"),
            // The page's own title is the only one of the first rank.
            Tag::Heading { level, .. } => self.element(match level {
                HeadingLevel::H1 | HeadingLevel::H2 => "h2",
                HeadingLevel::H3 => "h3",
                HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h4",
            }),
            Tag::BlockQuote(_) => self.element("blockquote"),
            Tag::CodeBlock(kind) => {
                if let CodeBlockKind::Fenced(language) = &kind
                    && !language.is_empty()
                {
                    self.html.literal("<div class=\"note\">").text(language).literal("</div>");
                }
                self.html.literal("<pre><code>");
                Ending::Code
            }
            Tag::List(None) => self.element("ul"),
            Tag::List(Some(start)) => {
                self.html.open("ol", &[("start", &start.to_string())]);
                Ending::Element("ol")
            }
            Tag::Item => self.element("li"),
            Tag::Table(_) => {
                self.html.literal("<div class=\"wide\"><table>");
                Ending::Table
            }
            Tag::TableHead => {
                self.in_head = true;
                self.html.literal("<thead><tr>");
                Ending::Nothing
            }
            Tag::TableRow => self.element("tr"),
            Tag::TableCell => self.element(if self.in_head { "th" } else { "td" }),
            Tag::Emphasis => self.element("em"),
            Tag::Strong => self.element("strong"),
            Tag::Strikethrough => self.element("del"),
            Tag::Superscript => self.element("sup"),
            Tag::Subscript => self.element("sub"),
            Tag::Link { dest_url, .. } => match link(&dest_url) {
                Some(address) => {
                    self.html.open("a", &[("href", address), ("rel", "noopener noreferrer nofollow")]);
                    Ending::Link(dest_url)
                }
                None => Ending::Address(dest_url),
            },
            Tag::Image { dest_url, .. } => {
                self.picture = Some(Picture { address: dest_url, description: String::new(), nested: 0 });
                return;
            }
            Tag::HtmlBlock => self.element("p"),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => Ending::Nothing,
        };
        self.open.push(ending);
    }

    fn end(&mut self, tag: TagEnd) {
        match self.open.pop() {
            Some(Ending::Element(name)) => {
                self.html.close(name);
            }
            Some(Ending::Code) => {
                self.html.literal("</code></pre>");
            }
            Some(Ending::Table) => {
                self.html.literal("</tbody></table></div>");
            }
            Some(Ending::Link(address)) => {
                self.html.literal("</a> <span class=\"address\">(").text(&address).literal(")</span>");
            }
            Some(Ending::Address(address)) => {
                self.html.literal(" <span class=\"address\">(").text(&address).literal(")</span>");
            }
            Some(Ending::Nothing) | None => {}
        }
        if tag == TagEnd::TableHead {
            self.in_head = false;
            self.html.literal("</tr></thead><tbody>");
        }
    }

    fn element(&mut self, name: &'static str) -> Ending<'a> {
        self.html.open(name, &[]);
        Ending::Element(name)
    }

    fn end_picture(&mut self) {
        let Some(picture) = self.picture.take() else { return };
        if is_picture(&picture.address) {
            self.html.open("img", &[("src", &picture.address), ("alt", &picture.description)]);
        } else {
            // Nothing is loaded from elsewhere: whoever offers the picture would learn who looks, and when.
            self.html.literal("<span class=\"note\">[").text(&picture.description).literal("]</span>");
        }
    }
}
