//! The requests that the planner understands, and how a message is cut into them.
//!
//! A message is one or several requests, joined by a line end, `;`, `then`, or by `and`, `,`, `.`, `!`, `?` where the next
//! word begins a request. Text to be written that contains such joints has to be in quotation marks. After
//! `write FILE:` and a line end, everything to the end of the message is the text.

use super::lex::{Kind, Token, tokens};
use super::{phrases, summary};
use crate::message::ATTACHMENT_MARK;

/// How far a list goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Flat,
    Recursive,
}

/// What is counted in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Lines,
    Words,
    Characters,
}

/// What a request reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A file, by every spelling its name may have in the message; the first that exists is taken.
    File(Vec<String>),
    /// What was attached to the message.
    Attached(Attachment),
}

/// A text that came with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) text: String,
}

impl Attachment {
    /// The first attachment of a message, which stands behind the person's own words.
    pub(super) fn first_of(message: &str) -> Option<Self> {
        let (_, attached) = message.split_once(ATTACHMENT_MARK)?;
        let (name, text) = attached.split_once("]\n")?;
        let end = format!("\n[end of {name}]");
        let text = text.split_once(end.as_str()).map_or(text, |(text, _)| text);
        let name = name.strip_prefix("attachment ").unwrap_or(name);
        Some(Self { name: name.to_owned(), text: summary::without_frames(text) })
    }
}

/// What `it` and `this` can mean.
#[derive(Debug, Default)]
pub(super) struct Referents<'a> {
    /// The file the person spoke of last.
    pub(super) named: Option<String>,
    pub(super) attached: Option<&'a Attachment>,
}

impl Referents<'_> {
    /// What is meant: the file spoken of last, or else what came with the message.
    pub(super) fn source(&self) -> Option<Source> {
        let file = self.named.as_ref().map(|path| Source::File(vec![path.clone()]));
        file.or_else(|| self.attached.cloned().map(Source::Attached))
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    List {
        directory: Option<String>,
        depth: Depth,
    },
    Read {
        source: Source,
    },
    Search {
        text: String,
        directory: Option<String>,
    },
    /// Files of this name, `*` standing for any letters.
    FindFile {
        name: String,
    },
    Summarise {
        source: Source,
        /// Most sentences, where the person said how many.
        sentences: Option<usize>,
    },
    Count {
        unit: Unit,
        source: Source,
    },
    CountFiles {
        directory: Option<String>,
    },
    /// A new file; one that exists is left as it is.
    Create {
        path: String,
        text: String,
    },
    /// A file with this text and no other, whether it exists or not.
    Write {
        path: String,
        text: String,
    },
    Copy {
        from: String,
        to: String,
    },
    Move {
        from: String,
        to: String,
    },
    MakeDirectory {
        path: String,
    },
    Append {
        path: String,
        text: String,
    },
    Replace {
        old: String,
        new: String,
        path: String,
    },
    Delete {
        spellings: Vec<String>,
    },
    Run {
        command: String,
    },
    Time,
    Help,
    Thanks,
    /// Not understood: the words.
    Unknown(String),
}

impl Request {
    /// Whether it is about what came with the message.
    pub(super) fn reads_attachment(&self) -> bool {
        matches!(
            self,
            Self::Read { source: Source::Attached(_) }
                | Self::Summarise { source: Source::Attached(_), .. }
                | Self::Count { source: Source::Attached(_), .. }
        )
    }

    /// Whether it changes anything.
    pub(super) fn changes(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::Write { .. }
            | Self::Copy { .. }
            | Self::Move { .. }
            | Self::MakeDirectory { .. }
            | Self::Append { .. }
            | Self::Replace { .. }
            | Self::Delete { .. }
            | Self::Run { .. } => true,
            Self::List { .. }
            | Self::Read { .. }
            | Self::Search { .. }
            | Self::FindFile { .. }
            | Self::Summarise { .. }
            | Self::Count { .. }
            | Self::CountFiles { .. }
            | Self::Time
            | Self::Help
            | Self::Thanks
            | Self::Unknown(_) => false,
        }
    }
}

/// Cuts a message into requests, in order.
pub(super) fn parse(message: &str, attached: Option<&Attachment>) -> Vec<Request> {
    let tokens = tokens(message);
    let mut requests = Vec::new();
    let mut referents = Referents { named: None, attached };
    for clause in clauses(&tokens) {
        let clause = Clause { message, tokens: clause };
        requests.extend(phrases::understand(&clause, &mut referents));
    }
    requests
}

/// The tokens of one request and the message they stand in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clause<'a> {
    pub(super) message: &'a str,
    pub(super) tokens: &'a [Token<'a>],
}

impl<'a> Clause<'a> {
    /// The same clause from this token on.
    pub(super) fn from(self, position: usize) -> Self {
        Self { tokens: self.tokens.get(position..).unwrap_or_default(), ..self }
    }

    /// The same clause up to this token.
    pub(super) fn up_to(self, position: usize) -> Self {
        Self { tokens: self.tokens.get(..position).unwrap_or(self.tokens), ..self }
    }

    /// What the person wrote: the inside of a lone quotation, else the words as they stand, without a closing mark.
    pub(super) fn written(self) -> Option<String> {
        let marks = self.tokens.iter().rev().take_while(|token| token.kind == Kind::Punctuation).count();
        let quoted = self.up_to(self.tokens.len() - marks);
        if let [Token { kind: Kind::Quoted, text, .. }] = quoted.tokens {
            return Some((*text).to_owned());
        }
        let (first, last) = (self.tokens.first()?, self.tokens.last()?);
        let text = self.message.get(first.start..last.end)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// Words that may stand before a request without changing it.
pub(super) const FILLERS: &[&str] = &[
    "please", "kindly", "now", "first", "second", "third", "next", "finally", "lastly", "also", "then", "and", "just",
];

/// Cuts tokens where one request ends and another begins.
fn clauses<'a>(tokens: &'a [Token<'a>]) -> Vec<&'a [Token<'a>]> {
    let mut clauses = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let clause = tokens.get(start..at).unwrap_or_default();
        let next = tokens.get(at + 1..).unwrap_or_default();
        if token.kind == Kind::LineEnd && takes_the_rest(clause) {
            break;
        }
        if is_joint(token, next) {
            clauses.push(clause);
            start = at + 1;
        }
        at += 1;
    }
    clauses.push(tokens.get(start..).unwrap_or_default());
    clauses.retain(|clause| clause.iter().any(|token| matches!(token.kind, Kind::Word | Kind::Quoted)));
    clauses
}

/// `write FILE:` at the end of a line.
fn takes_the_rest(clause: &[Token<'_>]) -> bool {
    clause.last().is_some_and(|token| token.is_mark(":"))
        && clause.iter().find(|token| !token.is_any(FILLERS)).is_some_and(|token| token.is_any(phrases::TEXT_VERBS))
}

fn is_joint(token: &Token<'_>, next: &[Token<'_>]) -> bool {
    match token.kind {
        Kind::LineEnd => true,
        Kind::Punctuation if token.text == ";" => true,
        Kind::Word if token.is("then") => true,
        Kind::Punctuation if matches!(token.text, "," | "." | "!" | "?") => begins_request(next),
        Kind::Word if token.is("and") => begins_request(next),
        Kind::Word | Kind::Punctuation | Kind::Quoted => false,
    }
}

fn begins_request(tokens: &[Token<'_>]) -> bool {
    let polite = ["can", "could", "would", "you", "i", "want", "let's"];
    tokens
        .iter()
        .find(|token| !token.is_any(FILLERS) && !token.is_any(&polite) && !token.is_mark(","))
        .is_some_and(|token| token.is_any(phrases::VERBS))
}
