//! Phrases that copy, move and rename files, and that make directories.

use super::lex::{Kind, Token};
use super::phrases::{ARTICLES, path_of, starts_with};
use super::request::{Clause, Request};

/// `copy A to B`, `rename A to B`, `mv A B`.
pub(super) fn copy_or_move(clause: Clause<'_>) -> Option<Vec<Request>> {
    let verb = clause.tokens.first()?;
    let copies = verb.is_any(&["copy", "cp", "duplicate"]);
    if !copies && !verb.is_any(&["move", "mv", "rename"]) {
        return None;
    }
    let rest = clause.from(1);
    let (from, to) = match rest.tokens.iter().position(|token| token.is_any(&["to", "into", "as"])) {
        // Of a new name every word counts: `my notes.md` may be meant as it stands.
        Some(at) => (one_name(rest.up_to(at).tokens)?, only_name(rest.from(at + 1).tokens)?),
        None => match rest.tokens {
            [from, to] if verb.is_any(&["cp", "mv"]) => (path_of(from), path_of(to)),
            _ => return None,
        },
    };
    let to = match (to.ends_with('/'), from.rsplit('/').next()) {
        (true, Some(name)) => format!("{to}{name}"),
        _ => to,
    };
    Some(vec![if copies { Request::Copy { from, to } } else { Request::Move { from, to } }])
}

/// `make a directory called NAME`, `create the folder NAME`.
pub(super) fn directory(clause: Clause<'_>) -> Option<Vec<Request>> {
    let openings = [&["create"][..], &["make"], &["add"]];
    let opening = openings.into_iter().find(|opening| starts_with(clause.tokens, opening))?;
    let mut rest = clause.from(opening.len());
    let mut says_directory = false;
    const LEADING: &[&str] = &["new", "empty", "directory", "folder", "dir", "called", "named"];
    while rest.tokens.len() > 1
        && rest.tokens.first().is_some_and(|token| token.is_any(ARTICLES) || token.is_any(LEADING))
    {
        says_directory |= rest.tokens.first().is_some_and(|token| token.is_any(&["directory", "folder", "dir"]));
        rest = rest.from(1);
    }
    match rest.tokens {
        [name] if says_directory && name.kind != Kind::Punctuation => {
            Some(vec![Request::MakeDirectory { path: path_of(name) }])
        }
        _ => None,
    }
}

/// The only name among these words.
fn one_name(mut tokens: &[Token<'_>]) -> Option<String> {
    while let [first, rest @ ..] = tokens
        && !rest.is_empty()
        && (first.is_any(ARTICLES) || first.is_any(&["file", "directory", "folder"]))
    {
        tokens = rest;
    }
    only_name(tokens)
}

fn only_name(tokens: &[Token<'_>]) -> Option<String> {
    match tokens {
        [name] if name.kind != Kind::Punctuation => Some(path_of(name)),
        _ => None,
    }
}
