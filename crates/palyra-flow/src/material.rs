//! Everything a run has read, indexed so that the origin of a value is found quickly.
//!
//! The index grows with what is read and never shrinks: summarising the planner's context does not make anybody forget where a value came
//! from.

use std::collections::{HashMap, HashSet};

use memchr::memmem;
use palyra_common::{FieldRole, Integrity, Label, Provenance, command_line};
use palyra_safety::{fold, views};
use serde_json::Value;

use crate::checks::{Check, holds};
use crate::entity::{Entities, Entity};
use crate::leaves::{Leaf, assigned_values, is_plain_identifier, leaves};
use crate::links::{self, LinkKind};
use crate::matching::{TrustedText, plain};
use crate::reading::{Reading, SourceNaming};

/// How a person is told of what they wrote.
const REQUEST: &str = "your request";

/// Where a value comes from, and how a person is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Where it comes from.
    pub provenance: Provenance,
    /// Where it was found.
    pub source: Option<String>,
    /// The sentence it was found in.
    pub sentence: Option<String>,
}

impl Trace {
    fn bare(provenance: Provenance) -> Self {
        Self { provenance, source: None, sentence: None }
    }
}

/// Everything a run has read.
#[derive(Debug, Clone, Default)]
pub struct Material {
    trusted: TrustedText,
    /// Handles: values of assigned fields and plain identifiers, by their plain form.
    issued: HashMap<String, Vec<Handle>>,
    /// Addresses of attested authors, and where.
    authors: HashMap<Entity, Vec<usize>>,
    /// Addresses in attested records from places that the user named, or that nobody chose: where, the sentence, and whether the user named the place.
    pointed: Entities<Pointed>,
    pieces: Vec<Piece>,
    /// Addresses that untrusted text holds, folded, with where.
    hosts: Vec<(String, usize)>,
    /// The first text with an address for which there was no room among them.
    beyond: Option<usize>,
}

/// An identifier that a server issued. It is what the server wrote, letter by letter: `T-102` and `t-102` may be two records, and which letters are capitals
/// can spell what the planner has seen.
#[derive(Debug, Clone)]
struct Handle {
    server: String,
    spelled: String,
    /// The piece it was found in.
    at: usize,
}

/// An address in a record whose author the server attests.
#[derive(Debug, Clone)]
struct Pointed {
    at: usize,
    sentence: String,
    /// Whether the user named the place that holds the record.
    by_user: bool,
}

/// An untrusted text, kept folded for loose search.
#[derive(Debug, Clone)]
struct Piece {
    /// The tool that gave it, if the user's own query did.
    listed_by: Option<String>,
    described: String,
    /// As it was, for showing.
    text: String,
    folded: String,
}

impl Piece {
    /// The sentence that holds the value: as it was written where the value stands there as it is, folded otherwise.
    fn sentence(&self, value: &str, folded: usize, length: usize) -> String {
        let plainly = memmem::find(self.text.to_ascii_lowercase().as_bytes(), value.to_ascii_lowercase().as_bytes());
        match plainly {
            Some(start) => sentence(&self.text, start, value.len()),
            None => sentence(&self.folded, folded, length),
        }
    }
}

impl Material {
    /// Adds what the user or the operator wrote, or a value that a person approved.
    pub fn trust(&mut self, text: &str) {
        self.trusted.add(text);
    }

    /// Adds untrusted text that no tool gave, such as an earlier answer of a model.
    pub fn distrust(&mut self, text: &str, described: &str) {
        self.keep(text, described.to_owned(), None);
    }

    /// Adds what a tool gave back.
    pub fn read(&mut self, reading: &Reading) {
        let at = self.pieces.len();
        if let Some(data) = &reading.data {
            for value in assigned_values(data, &reading.class.fields) {
                if let (Some(value), Some(server)) = (scalar(value), &reading.server) {
                    let handles = self.issued.entry(plain(&value)).or_default();
                    // A few places are enough: a server may repeat a name in each of a thousand results.
                    let known = handles.iter().filter(|known| known.server == *server && known.spelled == value);
                    if known.count() < MAX_PLACES && handles.len() < MAX_HANDLES {
                        handles.push(Handle { server: server.clone(), spelled: value, at });
                    }
                }
            }
            if reading.source != SourceNaming::ChosenOtherwise {
                let leaves = leaves(data, &reading.class.fields);
                self.keep_authors(&leaves, at);
                let by_user = reading.source == SourceNaming::NamedByUser || !holds(Check::PointedInNamedPlaces);
                self.point(&leaves, at, by_user);
            }
        }
        let of_own_query = reading.source != SourceNaming::ChosenOtherwise;
        self.keep(&reading.text, reading.described(), of_own_query.then(|| reading.tool.clone()));
    }

    /// Whether a tool listed this value in answer to a query of the user's own, so that something may be done to it: a record of the server that it is given back to, or the
    /// address of an author whom the server attests. What stands in a text that somebody wrote is no record, whoever wrote it.
    #[must_use]
    pub(crate) fn is_listed_by(&self, tool: &str, value: &str, server: Option<&str>) -> bool {
        let by_tool = |at: &usize| self.is_listing_of(tool, *at);
        match Entity::parse(value) {
            Some(entity) if entity.leads_somewhere() => {
                self.authors.get(&entity).is_some_and(|places| places.iter().any(by_tool))
                    || !holds(Check::MembersAreAuthors) && self.is_pointed_at_by(tool, value)
            }
            _ => self.handles(value).any(|handle| Some(handle.server.as_str()) == server && by_tool(&handle.at)),
        }
    }

    /// Whether an address stands in a record that a tool listed in answer to a query of the user's own, and whose author the server attests. It may be read, like the record.
    #[must_use]
    pub(crate) fn is_pointed_at_by(&self, tool: &str, value: &str) -> bool {
        let pointed = Entity::parse(value).and_then(|entity| self.pointed.get(&entity));
        pointed.is_some_and(|pointed| self.is_listing_of(tool, pointed.at))
    }

    fn is_listing_of(&self, tool: &str, at: usize) -> bool {
        self.pieces.get(at).is_some_and(|piece| piece.listed_by.as_deref() == Some(tool))
    }

    /// Whether a word names something: a server lists it under exactly that name, or the person who wrote it set it apart from the words around it.
    #[must_use]
    pub(crate) fn names_something(&self, word: &str, server: Option<&str>) -> bool {
        self.is_issued_by(word, server) || self.trusted.sets_apart(word)
    }

    /// Whether a person wrote this, and nothing is said by how it is spelled.
    #[must_use]
    pub(crate) fn is_spelled_by_person(&self, value: &str) -> bool {
        self.trusted.spells(value) || self.trusted.spells_number(value)
    }

    /// Whether a person wrote this number.
    #[must_use]
    pub(crate) fn says_number(&self, number: f64) -> bool {
        self.trusted.says_number(number)
    }

    /// The addresses of untrusted text that a text carries, wherever in it and however disguised: glued to other letters, spaced out,
    /// encoded. Those that are trusted anyway are left out.
    #[must_use]
    pub fn carried(&self, text: &str) -> Vec<(String, Trace)> {
        if self.hosts.is_empty() {
            return Vec::new();
        }
        let (views, _) = views(text.as_bytes());
        let decoded: Vec<String> = views.iter().map(|view| squeezed(&String::from_utf8_lossy(&view.bytes))).collect();
        let whole = squeezed(text);
        let holds = |host: &str| {
            let host = host.as_bytes();
            decoded.iter().chain([&whole]).any(|view| memmem::find(view.as_bytes(), host).is_some())
        };
        let mut found: Vec<(String, Trace)> = Vec::new();
        for (host, at) in &self.hosts {
            if !holds(host) || found.iter().any(|(known, _)| known == host) {
                continue;
            }
            if self.trace(host, None).provenance > Provenance::Pointed {
                let source = self.pieces.get(*at).map(|piece| piece.described.clone());
                found.push((host.clone(), Trace { provenance: Provenance::Untrusted, source, sentence: None }));
            }
        }
        if let Some(at) = self.beyond.filter(|_| whole.len() >= SHORTEST_HOST && !self.trusted.holds(text)) {
            let source = self.pieces.get(at).map(|piece| piece.described.clone());
            // Longer than what a pattern of calls may name, so nobody can agree to all of them for longer than once.
            let one_of_many = format!(
                "one of more than {MAX_HOSTS} addresses of untrusted text, which are too many to look for each of them in what is sent here"
            );
            found.push((one_of_many, Trace { provenance: Provenance::Untrusted, source, sentence: None }));
        }
        found
    }

    /// Whether a person wrote any amount.
    #[must_use]
    pub(crate) fn says_an_amount(&self) -> bool {
        self.trusted.says_an_amount()
    }

    fn keep(&mut self, text: &str, described: String, listed_by: Option<String>) {
        let at = self.pieces.len();
        for (link, _) in links::links(text).into_iter().filter(|(_, kind)| *kind != LinkKind::FileName) {
            let host = squeezed(host(&link));
            let known = self.hosts.iter().any(|(known, _)| *known == host);
            if host.len() < SHORTEST_HOST || known {
                continue;
            }
            if self.hosts.len() < MAX_HOSTS {
                self.hosts.push((host, at));
            } else {
                self.beyond.get_or_insert(at);
            }
        }
        self.pieces.push(Piece { listed_by, described, text: text.to_owned(), folded: loose(text) });
    }

    /// Whether the user or the operator wrote this, as a whole.
    #[must_use]
    pub fn is_written_by_person(&self, value: &str) -> bool {
        self.trusted.holds(value)
    }

    /// Whether this server issued the value as a record or name of its own.
    #[must_use]
    pub(crate) fn is_issued_by(&self, value: &str, server: Option<&str>) -> bool {
        self.handles(value).any(|handle| Some(handle.server.as_str()) == server)
    }

    /// The handles that a value is.
    fn handles(&self, value: &str) -> impl Iterator<Item = &Handle> {
        let known = self.issued.get(&plain(value.trim())).into_iter().flatten();
        known.filter(move |handle| handle.spelled == value || !holds(Check::HandlesAreExact))
    }

    /// Where a text value comes from, for a call to this server. An identifier that a server issued is a handle for that server and says nothing to any other,
    /// nor is an address ever one: whoever may write a record could have put it there.
    #[must_use]
    pub fn trace(&self, value: &str, server: Option<&str>) -> Trace {
        if self.trusted.holds(value) || !holds(Check::WholeValues) && self.trusted.mentions(value) {
            return Trace::bare(Provenance::Trusted);
        }
        let found = |at: &usize| self.pieces.get(*at).map(|piece| piece.described.clone());
        let entity = Entity::parse(value);
        let is_address = entity.as_ref().is_some_and(Entity::leads_somewhere) || links::leads_somewhere(value.trim());
        let is_address = is_address && holds(Check::HandlesAreNoAddresses);
        let counts = |handle: &&Handle| Some(handle.server.as_str()) == server || !holds(Check::HandlesOfTheirServer);
        if !is_address && let Some(handle) = self.handles(value).find(counts) {
            return Trace { provenance: Provenance::ToolTrusted, source: found(&handle.at), sentence: None };
        }
        if let Some(pointed) = entity.and_then(|entity| self.pointed.get(&entity)).filter(|pointed| pointed.by_user) {
            let sentence = Some(pointed.sentence.clone());
            return Trace { provenance: Provenance::Pointed, source: found(&pointed.at), sentence };
        }
        self.trace_untrusted(value)
    }

    /// Where a path outside the workspace comes from.
    #[must_use]
    pub fn trace_path(&self, path: &str) -> Trace {
        if self.trusted.holds_path(path) || !holds(Check::WholePaths) && self.trusted.mentions(path) {
            Trace::bare(Provenance::Trusted)
        } else {
            self.trace_untrusted(path)
        }
    }

    /// Where a command comes from: a person wrote it as a whole, untrusted text has it, or neither.
    ///
    /// A script that a person wrote and a shell is to read is not the person's command: a shell does whatever stray text says. It stays `invented`, but
    /// whoever is asked is told that the text is theirs.
    #[must_use]
    pub fn trace_command(&self, words: &[&str]) -> Trace {
        if self.trusted.holds_command(words) || !holds(Check::WholeCommands) {
            return Trace::bare(Provenance::Trusted);
        }
        let trace = self.trace_untrusted(&command_line(words.iter().copied()));
        match words {
            ["sh", "-c", script] if trace.provenance == Provenance::Invented && self.trusted.holds_script(script) => {
                Trace { source: Some(REQUEST.to_owned()), sentence: Some((*script).to_owned()), ..trace }
            }
            _ => trace,
        }
    }

    /// Whether untrusted text contains the value, however it is dressed up.
    fn trace_untrusted(&self, value: &str) -> Trace {
        let wanted = loose(value.trim());
        if !wanted.is_empty() {
            // The newest piece first: it is the likeliest to have been copied from.
            for piece in self.pieces.iter().rev() {
                if let Some(start) = memmem::find(piece.folded.as_bytes(), wanted.as_bytes()) {
                    return Trace {
                        provenance: Provenance::Untrusted,
                        source: Some(piece.described.clone()),
                        sentence: Some(piece.sentence(value.trim(), start, wanted.len())),
                    };
                }
            }
        }
        Trace::bare(Provenance::Invented)
    }

    /// Remembers the addresses of authors, which the server attests. Ids that it assigns are no addresses, whatever they look like.
    fn keep_authors(&mut self, scalars: &[Leaf<'_>], at: usize) {
        for leaf in scalars.iter().filter(|leaf| leaf.has(FieldRole::Author)) {
            let entity = leaf.value.as_str().and_then(Entity::parse).filter(Entity::leads_somewhere);
            if let Some(entity) = entity {
                let places = self.authors.entry(entity).or_default();
                if places.len() < MAX_PLACES {
                    places.push(at);
                }
            }
        }
    }

    /// Remembers the addresses that stand in records with an attested author.
    fn point(&mut self, scalars: &[Leaf<'_>], at: usize, by_user: bool) {
        let attested = |leaf: &&Leaf<'_>| {
            leaf.has(FieldRole::Author) && leaf.value.as_str().is_some_and(is_plain_identifier)
                || !holds(Check::PointedByAuthors)
        };
        let records: HashSet<&[String]> = scalars.iter().filter(attested).map(Leaf::record).collect();
        for leaf in scalars.iter().filter(|leaf| leaf.roles.is_empty() && records.contains(leaf.record())) {
            let Some(text) = leaf.value.as_str() else { continue };
            for (link, _) in links::links(text) {
                if let Some(start) = text.find(&link) {
                    let sentence = sentence(text, start, link.len());
                    if let Some(entity) = Entity::parse(&link) {
                        self.pointed.insert(entity, Pointed { at, sentence, by_user });
                    }
                }
            }
        }
    }
}

/// The label of what a leaf says, in a result with this label.
#[must_use]
pub(crate) fn leaf_label(leaf: &Leaf<'_>, whole: &Label) -> Label {
    let mut label = whole.clone();
    if leaf.is_trusted() {
        label.integrity = label.integrity.min(Integrity::ToolTrusted);
    }
    label
}

/// A scalar as text; nothing for null.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Most places that are remembered for a name that one server issued.
const MAX_PLACES: usize = 8;
/// Most handles that are remembered of which only the case of letters differs, or the server; further ones are nobody's.
const MAX_HANDLES: usize = 256;
/// Shortest address that is looked for inside other text: shorter ones stand in too many words.
const SHORTEST_HOST: usize = 6;
/// Most addresses of untrusted text that are looked for. Once there are more, nobody can say of a text that it carries none, and a person is asked: decoys must
/// not push the one address out that matters.
const MAX_HOSTS: usize = 2_000;

/// The host of an address, for search; the whole of what is no web address.
fn host(link: &str) -> &str {
    let bare = link.split_once("://").map_or(link, |(_, rest)| rest);
    let bare = bare.strip_prefix("//").or_else(|| bare.strip_prefix("mailto:")).unwrap_or(bare);
    bare.split('/').next().unwrap_or_default()
}

/// Folded, lower case, without any space.
fn squeezed(text: &str) -> String {
    loose(text).replace(' ', "")
}

/// Folded, lower case, single spaces: for finding, never for trusting.
fn loose(text: &str) -> String {
    if text.is_ascii() {
        return loose_ascii(text);
    }
    let folded = fold(text);
    let mut out = String::with_capacity(folded.text.len());
    let mut space = true;
    for letter in folded.text.chars() {
        if letter.is_whitespace() {
            if !space {
                out.push(' ');
            }
            space = true;
        } else {
            space = false;
            if letter.is_ascii() {
                out.push(letter.to_ascii_lowercase());
            } else {
                out.extend(letter.to_lowercase());
            }
        }
    }
    out
}

/// The same for plain text, which most text is. Folding changes nothing in it.
fn loose_ascii(text: &str) -> String {
    let bytes = text.as_bytes();
    let other_space = |byte: &u8| byte.is_ascii_whitespace() && *byte != b' ';
    // Each of these looks at many bytes at a time; going through them one by one takes several times as long.
    if !bytes.starts_with(b" ") && memmem::find(bytes, b"  ").is_none() && !bytes.iter().any(other_space) {
        return text.to_ascii_lowercase();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut space = true;
    for byte in text.bytes() {
        if !byte.is_ascii_whitespace() {
            out.push(byte.to_ascii_lowercase());
        } else if !space {
            out.push(b' ');
        }
        space = byte.is_ascii_whitespace();
    }
    // Bytes of ASCII are text.
    String::from_utf8(out).unwrap_or_default()
}

/// Most characters of a sentence on either side of what was found.
const AROUND: usize = 80;

/// The sentence around a find, shortened.
fn sentence(text: &str, start: usize, length: usize) -> String {
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(start + length..).unwrap_or_default();
    let mut left: Vec<char> = before.chars().rev().take(AROUND).take_while(|letter| !is_end(*letter)).collect();
    left.reverse();
    let right: String = after.chars().take(AROUND).take_while(|letter| !is_end(*letter)).collect();
    let middle: String = text.get(start..start + length).unwrap_or_default().chars().take(2 * AROUND).collect();
    format!("{}{middle}{right}", left.into_iter().collect::<String>()).trim().to_owned()
}

fn is_end(letter: char) -> bool {
    matches!(letter, '!' | '?' | '\n' | '\r')
}

#[cfg(test)]
#[path = "material_tests.rs"]
mod tests;
