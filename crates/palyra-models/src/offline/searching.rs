//! Phrases of searching: what for, and where.

use super::lex::{Kind, Token};
use super::phrases::{ARTICLES, INTO, WHOLE, is_path, path_of, starts_with};
use super::request::{Clause, Request};

/// `search …` and its kin.
pub(super) fn search(clause: Clause<'_>) -> Option<Vec<Request>> {
    let openings: &[&[&str]] = &[
        &["look", "for"],
        &["search"],
        &["grep"],
        &["find"],
        &["locate"],
        &["where", "is"],
        &["where", "are"],
        &["which", "files", "contain"],
        &["which", "files", "mention"],
        &["which", "files", "have"],
        &["what", "files", "contain"],
        &["what", "files", "mention"],
        &["show", "me", "where"],
    ];
    let opening = openings.iter().find(|opening| starts_with(clause.tokens, opening))?;
    let mut rest = clause.from(opening.len());
    let mut directory = None;
    // `grep PATTERN FILE`, as on a command line.
    if let ([grep], [text, place]) = (*opening, rest.tokens)
        && *grep == "grep"
        && is_path(place)
    {
        return Some(vec![Request::Search { text: text.text.to_owned(), directory: Some(path_of(place)) }]);
    }
    if let Some(name) = file_name(opening, rest.tokens) {
        return Some(vec![Request::FindFile { name }]);
    }
    // `search DIR for TEXT`
    if let Some(at) = rest.tokens.iter().position(|token| token.is("for")) {
        let (place, text) = (rest.up_to(at), rest.from(at + 1));
        if !place.tokens.is_empty() {
            directory = place_of(place.tokens)?;
        }
        rest = text;
    }
    const EMPTY: &[&str] = &[
        "all",
        "every",
        "any",
        "the",
        "occurrences",
        "occurrence",
        "mentions",
        "mention",
        "uses",
        "of",
        "text",
        "string",
        "word",
        "words",
        "phrase",
        "files",
        "lines",
        "that",
        "which",
        "containing",
        "contain",
        "mentioning",
        "me",
        "where",
        "each",
    ];
    while rest.tokens.len() > 1 && rest.tokens.first().is_some_and(|token| token.is_any(EMPTY)) {
        rest = rest.from(1);
    }
    // `TEXT in DIR`: the last preposition that is followed by a place.
    let preposition = rest.tokens.iter().rposition(|token| token.is_any(&["in", "under", "inside", "within"]));
    if let Some(at) = preposition.filter(|at| *at > 0)
        && let Some(place) = place_of(rest.from(at + 1).tokens)
    {
        directory = place.or(directory);
        rest = rest.up_to(at);
    }
    const AFTERWARDS: &[&str] = &["used", "defined", "mentioned", "is", "occurs", "appears"];
    while rest.tokens.len() > 1 && rest.tokens.last().is_some_and(|token| token.is_any(AFTERWARDS)) {
        rest = rest.up_to(rest.tokens.len() - 1);
    }
    let text = rest.written()?;
    Some(vec![Request::Search { text, directory }])
}

/// The name in `find notes.md`, `where is main.rs`, `find the file notes`, `find all *.md files`.
fn file_name(opening: &[&str], mut tokens: &[Token<'_>]) -> Option<String> {
    if !matches!(opening, ["find" | "locate"] | ["look", "for"] | ["where", "is"]) {
        return None;
    }
    let mut says_file = false;
    const LEADING: &[&str] = &["the", "a", "all", "every", "my", "me", "file", "files", "named", "called"];
    while let [first, rest @ ..] = tokens
        && !rest.is_empty()
        && first.is_any(LEADING)
    {
        says_file |= first.is_any(&["file", "files", "named", "called"]);
        tokens = rest;
    }
    if let [rest @ .., last] = tokens
        && !rest.is_empty()
        && last.is_any(&["file", "files"])
    {
        says_file = true;
        tokens = rest;
    }
    match tokens {
        [name] if name.kind != Kind::Punctuation && (says_file || (is_path(name) && name.text.contains('.'))) => {
            Some(path_of(name))
        }
        _ => None,
    }
}

/// A place to search in: the whole workspace (`Some(None)`), one directory, or no place at all.
#[expect(clippy::option_option, reason = "outer: is this a place; inner: which one")]
fn place_of(tokens: &[Token<'_>]) -> Option<Option<String>> {
    let mut place = None;
    for token in tokens {
        if token.is_any(ARTICLES) || token.is_any(WHOLE) || token.is_any(INTO) || token.is("through") {
        } else if place.is_none() && (token.kind == Kind::Quoted || is_path(token) || token.kind == Kind::Word) {
            place = Some(path_of(token));
        } else {
            return None;
        }
    }
    (!tokens.is_empty()).then_some(place)
}
