//! A document as a page: HTML that works without scripts, holds nothing that a document wrote as markup, and loads nothing.
//!
//! `writer` is the only place that makes markup, and it takes tags and names of attributes as literals of this crate; so a text that was not
//! escaped does not compile. `forms` and `questions` write what a person can act on, `chart` draws, `markdown` maps what a real parser found.
//! The page carries one style and one script of ours, both under a nonce; the daemon sends the policy that permits nothing else.

mod chart;
mod forms;
mod markdown;
mod questions;
mod writer;

use serde_json::{Map, Value};

use self::writer::Html;
use crate::component::{Cell, Component, Diff, Image, List, ListStyle, Progress, Table, Text, TextStyle};
use crate::document::Document;

pub use questions::{Question, Questions};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// What a page shows besides the document.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// Title of the canvas.
    pub title: &'a str,
    /// Whether the reader may act.
    pub acting: Acting<'a>,
    /// What became of what they did last.
    pub notice: Option<Notice<'a>>,
    /// Whether texts of strangers went into the document.
    pub origin: Origin,
    /// The questions that cards of the document show, by card.
    pub questions: &'a [Questions],
    /// What they entered into a form that was refused, so that nobody has to write it again.
    pub entered: Option<Entered<'a>>,
}

/// What was entered into one form.
#[derive(Debug, Clone, Copy)]
pub struct Entered<'a> {
    /// The form.
    pub form: &'a str,
    /// Its values by the names of its fields. A box that was not ticked is not among them.
    pub values: &'a Map<String, Value>,
}

/// Whether the reader of a page may act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acting<'a> {
    /// They look.
    Look,
    /// They act.
    Act {
        /// Where forms are sent.
        address: &'a str,
        /// A name that is good for one submission.
        once: &'a str,
    },
}

/// One sentence above the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// It was done.
    Done(&'a str),
    /// It was not, and why.
    Refused(&'a str),
}

/// Whose words went into a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Those of the user and of tools that only they can write to.
    Trusted,
    /// Those of strangers too.
    Untrusted,
}

/// How a page follows its canvas and proves its own style and script.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Named by the policy that goes with the page.
    pub nonce: &'a str,
    /// Where the page itself is: after a form was refused the browser shows it under another address.
    pub page: &'a str,
    /// Where new versions are told.
    pub events: &'a str,
}

/// The whole page.
#[must_use]
pub fn page(document: &Document, view: &View<'_>, frame: Frame<'_>) -> String {
    let mut html = Html::default();
    head(&mut html, view.title, frame.nonce);
    html.literal("<body>");
    body(&mut html, document, view, Some(frame));
    html.open("script", &[("nonce", frame.nonce)]).literal(SCRIPT).close("script").literal("</body></html>");
    html.finish()
}

/// A page that says one thing, such as that a link is no longer good.
#[must_use]
pub fn plain_page(title: &str, sentence: &str, nonce: &str) -> String {
    let mut html = Html::default();
    head(&mut html, title, nonce);
    html.literal("<body><main><h1>")
        .text(title)
        .literal("</h1><p>")
        .text(sentence)
        .literal("</p></main></body></html>");
    html.finish()
}

/// The document alone.
#[must_use]
pub fn fragment(document: &Document, view: &View<'_>) -> String {
    let mut html = Html::default();
    body(&mut html, document, view, None);
    html.finish()
}

fn head(html: &mut Html, title: &str, nonce: &str) {
    html.literal("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.literal("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>").text(title);
    html.literal("</title>").open("style", &[("nonce", nonce)]).literal(STYLE).close("style").literal("</head>");
}

fn body(html: &mut Html, document: &Document, view: &View<'_>, frame: Option<Frame<'_>>) {
    let version = document.version().to_string();
    let mut attributes = vec![("data-version", version.as_str())];
    if let Some(frame) = frame {
        attributes.extend([("data-page", frame.page), ("data-events", frame.events)]);
    }
    html.open("main", &attributes).literal("<h1>").text(view.title).literal("</h1>");
    match view.notice {
        Some(Notice::Done(text)) => {
            html.literal("<p class=\"done\" role=\"status\">").text(text).literal("</p>");
        }
        Some(Notice::Refused(text)) => {
            html.literal("<p class=\"refused\" role=\"alert\">").text(text).literal("</p>");
        }
        None => {}
    }
    component(html, document.root(), document, view);
    html.literal("<footer>This page was created by an agent, not by Palyra. Never enter a password or a key here.");
    if view.origin == Origin::Untrusted {
        html.literal(" The agent had read untrusted content, which may have influenced this page.");
    }
    html.literal("</footer></main>");
}

/// The attribute that names a component. The prefix keeps a document from taking names that scripts look for.
fn id_of(id: Option<&str>) -> Option<String> {
    id.map(|id| format!("c-{id}"))
}

fn component(html: &mut Html, component: &Component, document: &Document, view: &View<'_>) {
    let id = id_of(component.id());
    let mut attributes: Vec<(&'static str, &str)> = Vec::new();
    attributes.extend(id.as_deref().map(|id| ("id", id)));
    match component {
        Component::Text(it) => text(html, it, attributes),
        Component::Markdown(it) => {
            attributes.push(("class", "markdown"));
            html.open("div", &attributes);
            markdown::write(html, &it.text);
            html.close("div");
        }
        Component::List(it) => list(html, it, &attributes, document, view),
        Component::Table(it) => table(html, it, &attributes),
        Component::Form(it) => forms::write(html, it, &attributes, document.version(), view),
        Component::Chart(it) => chart::write(html, it, &attributes),
        Component::Image(it) => image(html, it, attributes),
        Component::Progress(it) => progress(html, it, attributes),
        Component::Code(it) => {
            html.open("figure", &attributes);
            if let Some(language) = &it.language {
                html.literal("<figcaption>").text(language).literal("</figcaption>");
            }
            html.literal("<pre><code>").text(&it.text).literal("</code></pre></figure>");
        }
        Component::Diff(it) => diff(html, it, attributes),
        Component::Approval(it) => questions::write(html, it, &attributes, document.version(), view),
    }
}

fn text(html: &mut Html, it: &Text, mut attributes: Vec<(&'static str, &str)>) {
    let tag = match it.style {
        TextStyle::Heading => "h2",
        TextStyle::Body | TextStyle::Note | TextStyle::Error => "p",
    };
    match it.style {
        TextStyle::Note => attributes.push(("class", "note")),
        TextStyle::Error => attributes.push(("class", "error")),
        TextStyle::Body | TextStyle::Heading => {}
    }
    html.open(tag, &attributes).text(&it.text).close(tag);
}

fn list(html: &mut Html, it: &List, attributes: &[(&'static str, &str)], document: &Document, view: &View<'_>) {
    let tag = match it.style {
        ListStyle::Plain => "div",
        ListStyle::Bullets => "ul",
        ListStyle::Numbers => "ol",
    };
    let item = if it.style == ListStyle::Plain { "div" } else { "li" };
    html.open(tag, attributes);
    for child in &it.items {
        html.open(item, &[]);
        component(html, child, document, view);
        html.close(item);
    }
    html.close(tag);
}

fn table(html: &mut Html, it: &Table, attributes: &[(&'static str, &str)]) {
    html.literal("<div class=\"wide\">").open("table", attributes);
    if let Some(caption) = &it.caption {
        html.literal("<caption>").text(caption).literal("</caption>");
    }
    html.literal("<thead><tr>");
    for column in &it.columns {
        html.literal("<th scope=\"col\">").text(column).literal("</th>");
    }
    html.literal("</tr></thead><tbody>");
    for row in &it.rows {
        html.literal("<tr>");
        for cell in row {
            match cell {
                Cell::Empty => html.literal("<td></td>"),
                Cell::Text(text) => html.literal("<td>").text(text).literal("</td>"),
                Cell::Number(number) => html.literal("<td class=\"number\">").text(number).literal("</td>"),
            };
        }
        html.literal("</tr>");
    }
    html.literal("</tbody></table></div>");
}

fn image<'a>(html: &mut Html, it: &'a Image, mut attributes: Vec<(&'static str, &'a str)>) {
    attributes.push(("src", &it.src));
    attributes.push(("alt", &it.alt));
    html.open("img", &attributes);
}

fn progress(html: &mut Html, it: &Progress, mut attributes: Vec<(&'static str, &str)>) {
    attributes.push(("class", "progress"));
    html.open("div", &attributes);
    if let Some(label) = &it.label {
        html.literal("<span>").text(label).literal("</span> ");
    }
    match it.value {
        None => html.literal("<progress></progress>"),
        Some(value) => html
            .open("progress", &[("max", "1"), ("value", &format!("{value:.4}"))])
            .close("progress")
            .literal(" <span class=\"note\">")
            .text(&format!("{:.0} %", value * 100.0))
            .literal("</span>"),
    };
    html.close("div");
}

fn diff(html: &mut Html, it: &Diff, mut attributes: Vec<(&'static str, &str)>) {
    attributes.push(("class", "diff"));
    html.open("pre", &attributes);
    for line in it.text.lines() {
        let class = match line.as_bytes().first() {
            Some(b'+') => "added",
            Some(b'-') => "removed",
            Some(b'@') => "place",
            _ => "same",
        };
        html.open("span", &[("class", class)]).text(line).literal("\n").close("span");
    }
    html.close("pre");
}
