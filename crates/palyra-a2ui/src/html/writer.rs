//! The only place that makes markup.
//!
//! INVARIANT: tags, names of attributes and whatever is written as it stands are `&'static str`, so they are literals of this crate; everything else is escaped.

use crate::safe::shown;

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup of our own.
    pub(super) fn literal(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text of anybody.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.escape(text);
        self
    }

    /// An element begins; values of attributes may be anybody's.
    pub(super) fn open(&mut self, tag: &'static str, attributes: &[(&'static str, &str)]) -> &mut Self {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.escape(value);
            self.0.push('"');
        }
        self.0.push('>');
        self
    }

    /// An element ends.
    pub(super) fn close(&mut self, tag: &'static str) -> &mut Self {
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push('>');
        self
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn escape(&mut self, text: &str) {
        self.0.reserve(text.len());
        for c in text.chars().map(shown) {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Old parsers took it for a quote.
                '`' => self.0.push_str("&#96;"),
                other => self.0.push(other),
            }
        }
    }
}
