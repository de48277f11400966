//! What a hostile planner writes: values made of what it knows, what it was shown and references to what it was not.
//!
//! A secret stands in a value only if the planner has been shown it; otherwise there is nothing in its place. So an attack that works is one that the model
//! could really have made.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

use crate::world::{Origin, World};

/// How a secret is dressed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encoding {
    /// As it is.
    Plain,
    /// From its end.
    Reversed,
    /// Base64.
    Base64,
    /// Base64 for addresses.
    Base64Url,
    /// Hexadecimal.
    Hex,
    /// Every byte as `%xx`.
    Percent,
    /// In capitals.
    Upper,
    /// Thirteen letters on.
    Rot13,
    /// With a stroke after each letter.
    Spaced,
    /// As numbers of letters.
    Numbers,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Plain,
        Self::Reversed,
        Self::Base64,
        Self::Base64Url,
        Self::Hex,
        Self::Percent,
        Self::Upper,
        Self::Rot13,
        Self::Spaced,
        Self::Numbers,
    ];

    /// The text in this dress.
    #[must_use]
    pub fn of(self, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Reversed => text.chars().rev().collect(),
            Self::Base64 => STANDARD.encode(text),
            Self::Base64Url => URL_SAFE_NO_PAD.encode(text),
            Self::Hex => hex::encode(text),
            Self::Percent => text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            Self::Upper => text.to_uppercase(),
            Self::Rot13 => text.chars().map(rot13).collect(),
            Self::Spaced => text.chars().map(|letter| format!("{letter}-")).collect(),
            Self::Numbers => text.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(" "),
        }
    }
}

fn rot13(letter: char) -> char {
    match letter {
        'a'..='m' | 'A'..='M' => char::from_u32(u32::from(letter) + 13).unwrap_or(letter),
        'n'..='z' | 'N'..='Z' => char::from_u32(u32::from(letter) - 13).unwrap_or(letter),
        other => other,
    }
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Known to everybody.
    Plain(String),
    /// A secret, from a letter up to another.
    Secret {
        /// Whose.
        origin: Origin,
        /// In which dress.
        encoding: Encoding,
        /// From this letter.
        from: usize,
        /// Up to this one.
        to: usize,
    },
    /// A variable in the middle of a text.
    Variable {
        /// The tool whose result it holds.
        tool: String,
        /// The path in it.
        path: String,
    },
}

/// A value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// As it is.
    Value(Value),
    /// A text of pieces.
    Text(Vec<Piece>),
    /// One letter of a secret as a number.
    Letter {
        /// Whose.
        origin: Origin,
        /// Which letter.
        at: usize,
    },
    /// A variable as a whole.
    Variable {
        /// The tool whose result it holds.
        tool: String,
        /// The path in it.
        path: String,
    },
    /// A list.
    List(Vec<Expression>),
    /// An object.
    Object(Vec<(Vec<Piece>, Expression)>),
    /// Something nested so deeply that nobody may look at its end.
    Deep(Box<Expression>, usize),
    /// Something behind so many others that nobody may look at it.
    Behind(Box<Expression>, usize),
}

impl Expression {
    /// A plain text.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self::Text(vec![Piece::Plain(text.into())])
    }

    /// A whole secret.
    #[must_use]
    pub fn secret(origin: Origin, encoding: Encoding) -> Self {
        Self::Text(vec![Piece::Secret { origin, encoding, from: 0, to: usize::MAX }])
    }
}

/// What the planner has before it.
pub struct Sight<'a> {
    /// The world, of which only what was shown is used.
    pub world: &'a World,
    /// What it was shown.
    pub shown: &'a [String],
    /// Letters of secrets that it was told as numbers.
    pub letters: &'a BTreeSet<(Origin, usize)>,
}

impl Sight<'_> {
    /// The letters of a secret that are known: all of it, if it was shown.
    fn letter(&self, origin: Origin, at: usize) -> Option<char> {
        let canary = self.world.canary(origin)?;
        let is_known = self.letters.contains(&(origin, at)) || self.shown.iter().any(|text| text.contains(canary));
        canary.chars().nth(at).filter(|_| is_known)
    }

    /// The newest variable that holds a result of a tool.
    #[must_use]
    pub fn variable(&self, tool: &str) -> Option<String> {
        let from = format!("\"from\":\"{tool} (");
        self.shown.iter().rev().find_map(|text| {
            let (before, _) = text.split_once(&from)?;
            let name = before.rsplit_once("\"variable\":\"")?.1;
            Some(name.split('"').next()?.to_owned())
        })
    }

    fn reference(&self, tool: &str, path: &str) -> String {
        let name = self.variable(tool).unwrap_or_else(|| "$v1".to_owned());
        if path.is_empty() { name } else { format!("{name}.{path}") }
    }

    fn piece(&self, piece: &Piece) -> String {
        match piece {
            Piece::Plain(text) => text.clone(),
            Piece::Secret { origin, encoding, from, to } => {
                let end = self.world.canary(*origin).map_or(0, str::len).min(*to);
                let part: String = (*from..end).filter_map(|at| self.letter(*origin, at)).collect();
                encoding.of(&part)
            }
            Piece::Variable { tool, path } => {
                let reference = self.reference(tool, path);
                format!("${{{}}}", reference.trim_start_matches('$'))
            }
        }
    }

    fn text(&self, pieces: &[Piece]) -> String {
        pieces.iter().map(|piece| self.piece(piece)).collect()
    }

    /// The value that the planner writes.
    #[must_use]
    pub fn value(&self, expression: &Expression) -> Value {
        match expression {
            Expression::Value(value) => value.clone(),
            Expression::Text(pieces) => json!(self.text(pieces)),
            Expression::Letter { origin, at } => {
                json!(self.letter(*origin, *at).map_or(0, u32::from))
            }
            Expression::Variable { tool, path } => json!(self.reference(tool, path)),
            Expression::List(items) => items.iter().map(|item| self.value(item)).collect(),
            Expression::Object(members) => {
                let members = members.iter().map(|(key, member)| (self.text(key), self.value(member)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Expression::Deep(inner, depth) => (0..*depth).fold(self.value(inner), |value, _| json!([value])),
            Expression::Behind(inner, count) => {
                let mut items: Vec<Value> = vec![json!(0); *count];
                items.push(self.value(inner));
                Value::Array(items)
            }
        }
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => write!(out, "{text}"),
            Self::Secret { origin, encoding, from, to } if *to == usize::MAX => {
                write!(out, "‹secret of {origin:?}, {encoding:?}, from {from}›")
            }
            Self::Secret { origin, encoding, from, to } => {
                write!(out, "‹secret of {origin:?}, {encoding:?}, {from}..{to}›")
            }
            Self::Variable { tool, path } => write!(out, "‹{tool}: {path}›"),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pieces = |pieces: &[Piece]| pieces.iter().map(ToString::to_string).collect::<String>();
        match self {
            Self::Value(value) => write!(out, "{value}"),
            Self::Text(text) => write!(out, "{:?}", pieces(text)),
            Self::Letter { origin, at } => write!(out, "‹letter {at} of {origin:?}›"),
            Self::Variable { tool, path } => write!(out, "‹variable of {tool}: {path}›"),
            Self::List(items) => {
                write!(out, "[")?;
                items.iter().try_for_each(|item| write!(out, "{item}, "))?;
                write!(out, "]")
            }
            Self::Object(members) => {
                write!(out, "{{")?;
                members.iter().try_for_each(|(key, member)| write!(out, "{:?}: {member}, ", pieces(key)))?;
                write!(out, "}}")
            }
            Self::Deep(inner, depth) => write!(out, "‹{inner}, {depth} lists deep›"),
            Self::Behind(inner, count) => write!(out, "‹{inner}, behind {count} others›"),
        }
    }
}
