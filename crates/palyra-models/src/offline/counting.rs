//! Phrases of counting: lines, words and characters of a text, and files.

use super::files;
use super::lex::Kind;
use super::phrases::{ARTICLES, INTO, WHOLE, path_of, starts_with};
use super::request::{Clause, Referents, Request, Source, Unit};

/// `count the lines in FILE`, `how many words does FILE have`, `how many files are here`.
pub(super) fn count(clause: Clause<'_>, referents: &Referents<'_>) -> Option<Vec<Request>> {
    let opening: &[&str] =
        [&["how", "many"][..], &["count"]].into_iter().find(|opening| starts_with(clause.tokens, opening))?;
    let mut rest = clause.from(opening.len());
    while rest.tokens.len() > 1 && rest.tokens.first().is_some_and(|token| token.is_any(ARTICLES) || token.is("me")) {
        rest = rest.from(1);
    }
    let unit = rest.tokens.first()?;
    let mut rest = rest.from(1);
    const LEADING: &[&str] = &["are", "is", "there", "does", "do", "has", "in", "of", "contained"];
    while rest.tokens.first().is_some_and(|token| token.is_any(LEADING)) {
        rest = rest.from(1);
    }
    while rest.tokens.last().is_some_and(|token| token.is_any(&["have", "has", "contain", "hold", "there"])) {
        rest = rest.up_to(rest.tokens.len() - 1);
    }
    if unit.is_any(&["files", "file"]) {
        return Some(vec![Request::CountFiles { directory: directory(rest)? }]);
    }
    let unit = match () {
        () if unit.is_any(&["lines", "line"]) => Unit::Lines,
        () if unit.is_any(&["words", "word"]) => Unit::Words,
        () if unit.is_any(&["characters", "character", "letters", "chars"]) => Unit::Characters,
        () => return None,
    };
    let sources = if rest.tokens.is_empty() { vec![referents.source()?] } else { files::sources(rest, referents)? };
    Some(sources.into_iter().map(|source: Source| Request::Count { unit, source }).collect())
}

/// The directory that is named, or the workspace.
#[expect(clippy::option_option, reason = "outer: is this understood; inner: which directory")]
fn directory(clause: Clause<'_>) -> Option<Option<String>> {
    let mut named = None;
    for token in clause.tokens {
        if token.is_any(ARTICLES) || token.is_any(WHOLE) || token.is_any(INTO) {
        } else if named.is_none() && matches!(token.kind, Kind::Word | Kind::Quoted) {
            named = Some(path_of(token));
        } else {
            return None;
        }
    }
    Some(named)
}
