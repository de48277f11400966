//! Arguments of tool calls that are almost JSON.
//!
//! Models slip: a fence around the document, a comma too many, quotes of the wrong kind, a bracket that is missing. Such slips are put
//! right by the rules listed in [`Rule`] and by no others, each of them exact about what it changes, and every use is told. Valid JSON
//! is never touched. A text that the rules do not turn into one JSON object stays as it is: the model is told and writes it again.
//!
//! INVARIANT: nothing is made up. An answer that was cut off by its length is never completed, and a string is only closed where no
//! bracket stands in what it would swallow: half a file must not be written as if it were whole.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::IgnoredAny;
use serde_json::Value;

/// Deepest nesting that is followed.
const MAX_DEPTH: usize = 64;
/// Marks of chat templates that some servers leave behind a document.
const MARKS: &[&str] = &["</tool_call>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|end|>"];

/// Something that may be put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Fence,
    Mark,
    Comment,
    TrailingComma,
    SingleQuotes,
    BareKey,
    PythonWord,
    RawControl,
    QuoteEscape,
    MissingQuote,
    MissingBracket,
    SurplusBracket,
    Repeated,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fence => "a code fence was taken off",
            Self::Mark => "a mark of the chat template was taken off",
            Self::Comment => "comments were dropped",
            Self::TrailingComma => "a trailing comma was dropped",
            Self::SingleQuotes => "single quotes became double quotes",
            Self::BareKey => "a bare key was quoted",
            Self::PythonWord => "a Python word became its JSON word",
            Self::RawControl => "a control character in a string was escaped",
            Self::QuoteEscape => "a needless escape was dropped",
            Self::MissingQuote => "a missing closing quote was added",
            Self::MissingBracket => "missing closing brackets were added",
            Self::SurplusBracket => "surplus closing brackets were dropped",
            Self::Repeated => "the same document came twice and was taken once",
        })
    }
}

/// Whether the end of the text may be missing because the answer reached its upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It may: nothing is completed.
    Possible,
    /// The model said that it was done.
    Impossible,
}

/// A text that was put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repair {
    /// The JSON object.
    pub text: String,
    /// What was done, in one line.
    pub what: String,
}

/// Whether this is JSON as it stands.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Puts arguments right. None if they are valid, or if the rules do not make an object of them.
pub(crate) fn arguments(text: &str, cut: Cut) -> Option<Repair> {
    if is_json(text) {
        return None;
    }
    let mut used = BTreeSet::new();
    let bare = unwrap(text.trim(), &mut used);
    let mut writer = Writer { rest: bare, out: String::with_capacity(bare.len()), used, cut };
    writer.value(0)?;
    let document = bare.get(..bare.len() - writer.rest.len())?;
    writer.space()?;
    let rest = writer.rest.trim();
    if !rest.is_empty() {
        let rule = match rest {
            same if same == document.trim() => Rule::Repeated,
            brackets if brackets.chars().all(|c| matches!(c, '}' | ']') || c.is_whitespace()) => Rule::SurplusBracket,
            _ => return None,
        };
        writer.used.insert(rule);
    }
    let Writer { out, used, .. } = writer;
    let whole = serde_json::from_str::<Value>(&out).is_ok_and(|value| value.is_object());
    let what = used.iter().map(Rule::to_string).collect::<Vec<_>>().join("; ");
    whole.then_some(Repair { text: out, what })
}

/// Takes off what stands around the document.
fn unwrap<'a>(text: &'a str, used: &mut BTreeSet<Rule>) -> &'a str {
    let mut text = text;
    if let Some(fenced) = text.strip_prefix("```") {
        used.insert(Rule::Fence);
        let fenced = fenced.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        text = fenced.trim_end().strip_suffix("```").unwrap_or(fenced).trim();
    }
    while let Some(bare) = MARKS.iter().find_map(|mark| text.strip_suffix(mark)) {
        used.insert(Rule::Mark);
        text = bare.trim_end();
    }
    text
}

/// Reads leniently and writes strictly.
struct Writer<'a> {
    rest: &'a str,
    out: String,
    used: BTreeSet<Rule>,
    cut: Cut,
}

impl<'a> Writer<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space()?;
        match self.peek()? {
            '{' => self.list(depth, '}', Self::member),
            '[' => self.list(depth, ']', Self::value),
            quote @ ('"' | '\'') => self.string(quote),
            _ => self.word(),
        }
    }

    /// An object or an array: entries with commas between them, up to the closing bracket.
    fn list(&mut self, depth: usize, close: char, entry: fn(&mut Self, usize) -> Option<()>) -> Option<()> {
        self.copy()?;
        loop {
            self.space()?;
            if self.closes(close)? {
                return Some(());
            }
            entry(self, depth + 1)?;
            self.space()?;
            match self.peek() {
                Some(',') => {
                    self.skip();
                    self.space()?;
                    if self.peek().is_none_or(|next| next == close) {
                        self.used.insert(Rule::TrailingComma);
                    } else {
                        self.out.push(',');
                    }
                }
                Some(next) if next != close => return None,
                _ => {}
            }
        }
    }

    /// Whether the list ends here; a bracket that is missing at the end of the text is added.
    fn closes(&mut self, close: char) -> Option<bool> {
        match self.peek() {
            Some(next) if next == close => {
                self.copy()?;
                Some(true)
            }
            Some(_) => Some(false),
            None if self.cut == Cut::Impossible => {
                self.used.insert(Rule::MissingBracket);
                self.out.push(close);
                Some(true)
            }
            None => None,
        }
    }

    fn member(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            quote @ ('"' | '\'') => self.string(quote)?,
            _ => self.bare_key()?,
        }
        self.space()?;
        (self.peek()? == ':').then(|| self.copy())??;
        self.value(depth)
    }

    fn bare_key(&mut self) -> Option<()> {
        let key = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-'));
        if !key.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$')) {
            return None;
        }
        self.used.insert(Rule::BareKey);
        self.out.push_str(&format!("\"{key}\""));
        Some(())
    }

    /// A number or one of the words.
    fn word(&mut self) -> Option<()> {
        let word = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        let json = match word {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            known if !known.is_empty() && is_json(known) => known,
            _ => return None,
        };
        if json != word {
            self.used.insert(Rule::PythonWord);
        }
        self.out.push_str(json);
        Some(())
    }

    fn string(&mut self, quote: char) -> Option<()> {
        let begun = self.out.len();
        self.skip();
        self.out.push('"');
        if quote == '\'' {
            self.used.insert(Rule::SingleQuotes);
        }
        loop {
            let Some(c) = self.peek() else {
                let swallowed = self.out.get(begun..).is_none_or(|text| text.contains(['{', '}', '[', ']']));
                if self.cut == Cut::Possible || swallowed {
                    return None;
                }
                self.used.insert(Rule::MissingQuote);
                self.out.push('"');
                return Some(());
            };
            self.skip();
            match c {
                c if c == quote => {
                    self.out.push('"');
                    return Some(());
                }
                '"' => self.out.push_str("\\\""),
                '\\' => self.escape()?,
                c if c.is_control() && u32::from(c) < 0x20 => {
                    self.used.insert(Rule::RawControl);
                    self.out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => self.out.push(c),
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let c = self.peek()?;
        self.skip();
        match c {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u' => {
                // Whether four digits follow a `u` is checked with the whole.
                self.out.push('\\');
                self.out.push(c);
            }
            '\'' => {
                self.used.insert(Rule::QuoteEscape);
                self.out.push(c);
            }
            _ => return None,
        }
        Some(())
    }

    /// Skips white space and comments.
    fn space(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start();
            let after = if let Some(comment) = self.rest.strip_prefix("//") {
                comment.split_once('\n').map_or("", |(_, after)| after)
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                comment.split_once("*/")?.1
            } else {
                return Some(());
            };
            self.used.insert(Rule::Comment);
            self.rest = after;
        }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }

    fn copy(&mut self) -> Option<()> {
        let c = self.peek()?;
        self.skip();
        self.out.push(c);
        Some(())
    }

    fn take(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
