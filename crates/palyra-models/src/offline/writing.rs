//! Phrases that carry a text: writing, appending, replacing.

use super::lex::{Kind, Token};
use super::phrases::{begins_with_letter, is_name, is_path, path_of, starts_with};
use super::request::{Clause, Request};

/// Words between a file and its text that say nothing.
const NOTHING: &[&str] = &[
    "the",
    "a",
    "an",
    "text",
    "content",
    "contents",
    "line",
    "lines",
    "words",
    "following",
    "new",
    "file",
    "called",
    "named",
    "empty",
    "is",
    "just",
    "this",
    "of",
    "it",
];
/// Words that lead from a file to its text.
const HOLDING: &[&str] = &["with", "containing", "saying", "that", "says", "contains", "holding", "reading"];
/// Words that lead from a text to its file.
const TOWARDS: &[&str] = &["to", "into", "in", "as"];

/// What becomes of a file that exists. Only who says `write` or `overwrite` has its text replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Create,
    Replace,
    Append,
}

/// `write FILE with TEXT`, `write TEXT to FILE`, `append TEXT to FILE`, `create FILE`, …
pub(super) fn text(clause: Clause<'_>, named: Option<&str>) -> Option<Vec<Request>> {
    let verb = clause.tokens.first()?;
    let mode = match () {
        () if verb.is_any(&["create", "make", "save", "put", "touch"]) => Mode::Create,
        () if verb.is_any(&["write", "overwrite"]) => Mode::Replace,
        () if verb.is_any(&["append", "add"]) => Mode::Append,
        () => return None,
    };
    let mut rest = clause.from(1);
    let request = |path: String, text: String| match mode {
        Mode::Create => vec![Request::Create { path, text }],
        Mode::Replace => vec![Request::Write { path, text }],
        Mode::Append => vec![Request::Append { path, text }],
    };
    rest = after_nothing(rest);
    let towards_first = rest.tokens.first().is_some_and(|token| token.is_any(TOWARDS));
    if towards_first {
        rest = rest.from(1);
    }
    let first = rest.tokens.first()?;
    let after = after_nothing(rest.from(1));
    let leads_to_text = after.tokens.first().is_some_and(|token| token.is_any(HOLDING) || token.is_mark(":"));
    let names = is_path(first) || begins_with_letter(rest.tokens) || (first.kind == Kind::Quoted && leads_to_text);
    if names && (leads_to_text || after.tokens.is_empty()) {
        let path = path_of(first);
        if after.tokens.is_empty() {
            // A file without a text: made empty, but only where making is what was asked for.
            return (verb.is_any(&["create", "make", "touch"])).then(|| request(path, String::new()));
        }
        return Some(request(path, text_of(after)?));
    }
    if towards_first {
        return None;
    }
    // TEXT to FILE
    let at = rest.tokens.iter().rposition(|token| token.is_any(TOWARDS)).filter(|at| *at > 0)?;
    let target = after_nothing(rest.from(at + 1));
    let path = match target.tokens {
        [path] if is_name(path) => path_of(path),
        [pronoun] if pronoun.is("it") => named?.to_owned(),
        [] => named?.to_owned(),
        _ => return None,
    };
    let text = rest.up_to(at).written()?;
    Some(request(path, text))
}

fn after_nothing(mut clause: Clause<'_>) -> Clause<'_> {
    while clause.tokens.len() > 1
        && clause.tokens.first().is_some_and(|token| token.is_any(NOTHING))
        && !begins_with_letter(clause.tokens)
    {
        clause = clause.from(1);
    }
    clause
}

/// The text after `with`, `containing`, `:`.
fn text_of(mut clause: Clause<'_>) -> Option<String> {
    while clause.tokens.len() > 1
        && clause.tokens.first().is_some_and(|token| {
            token.is_any(HOLDING) || token.is_any(NOTHING) || token.is_mark(":") || token.kind == Kind::LineEnd
        })
    {
        let colon = clause.tokens.first().is_some_and(|token| token.is_mark(":"));
        clause = clause.from(1);
        if colon {
            // What follows a colon is the text, whatever it begins with.
            while clause.tokens.first().is_some_and(|token| token.kind == Kind::LineEnd) {
                clause = clause.from(1);
            }
            break;
        }
    }
    let only_marks = clause.tokens.iter().all(|token| token.is_any(HOLDING) || token.kind == Kind::Punctuation);
    if only_marks { None } else { clause.written() }
}

/// `replace A with B in FILE`, `change A to B in FILE`, `remove A from FILE`.
pub(super) fn replacement(clause: Clause<'_>, named: Option<&str>) -> Option<Vec<Request>> {
    let (clause, place) = place_first(clause)?;
    let named = place.as_deref().or(named);
    let verb = clause.tokens.first()?;
    if verb.is_any(&["remove", "delete"]) {
        let [_, old, from, path] = clause.tokens else { return None };
        let fits = old.kind == Kind::Quoted && from.is("from") && is_name(path);
        return fits
            .then(|| vec![Request::Replace { old: old.text.to_owned(), new: String::new(), path: path_of(path) }]);
    }
    let with: &[&str] = match () {
        () if verb.is_any(&["replace", "substitute", "swap"]) => &["with", "by", "for"],
        () if verb.is_any(&["change"]) => &["to", "into"],
        () => return None,
    };
    let mut rest = clause.from(1);
    for opening in [
        &["every", "occurrence", "of"][..],
        &["all", "occurrences", "of"],
        &["the", "word"],
        &["the", "text"],
        &["every"],
        &["all"],
    ] {
        if starts_with(rest.tokens, opening) {
            rest = rest.from(opening.len());
            break;
        }
    }
    let at = rest.tokens.iter().position(|token| token.is_any(with)).filter(|at| *at > 0)?;
    let old = rest.up_to(at).written()?;
    let rest = rest.from(at + 1);
    let (new, path) = match rest.tokens.iter().rposition(|token| token.is("in")) {
        Some(at) => {
            let target = after_nothing(rest.from(at + 1));
            let path = match target.tokens {
                [path] if is_name(path) => path_of(path),
                [pronoun] if pronoun.is_any(&["it", "there", "file"]) => named?.to_owned(),
                _ => return None,
            };
            (rest.up_to(at).written()?, path)
        }
        None => (rest.written()?, named?.to_owned()),
    };
    Some(vec![Request::Replace { old, new, path }])
}

/// `in FILE replace …`, `patch FILE: replace …`: the file that is named before the verb.
fn place_first(clause: Clause<'_>) -> Option<(Clause<'_>, Option<String>)> {
    let first = clause.tokens.first()?;
    if !first.is_any(&["in", "edit", "patch", "update"]) {
        return Some((clause, None));
    }
    let path: &Token<'_> = clause.tokens.get(1).filter(|token| is_name(token))?;
    let mut rest = clause.from(2);
    while rest
        .tokens
        .first()
        .is_some_and(|token| token.kind == Kind::Punctuation || token.is_any(&["and", "to", "by", "so", "replacing"]))
    {
        rest = rest.from(1);
    }
    Some((rest, Some(path_of(path))))
}
