//! Phrases on named files: read, summarise, delete.

use super::lex::{Kind, Token};
use super::phrases::{ARTICLES, WHOLE, begins_with_letter, ends_with, is_path, path_of, starts_with};
use super::request::{Clause, Referents, Request, Source};

const PRONOUNS: &[&str] = &["it", "that", "this", "them", "stdin"];
/// Words between the verb and a name that say nothing.
const EMPTY: &[&str] = &["me", "and", "contents", "content", "of", "text", "whole", "both", "file", "files"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Read,
    Summarise,
    Delete,
}

/// `read FILE`, `what is FILE about`, `delete FILE`, …
pub(super) fn on_files(clause: Clause<'_>, referents: &Referents<'_>) -> Option<Vec<Request>> {
    let openings: &[(&[&str], Verb)] = &[
        (&["give", "me", "a", "summary", "of"], Verb::Summarise),
        (&["show", "me", "a", "summary", "of"], Verb::Summarise),
        (&["tell", "me", "what", "is", "in"], Verb::Read),
        (&["tell", "me", "what's", "in"], Verb::Read),
        (&["look", "at"], Verb::Read),
        (&["sum", "up"], Verb::Summarise),
        (&["what", "is", "in"], Verb::Read),
        (&["what's", "in"], Verb::Read),
        (&["whats", "in"], Verb::Read),
        (&["summarise"], Verb::Summarise),
        (&["summarize"], Verb::Summarise),
        (&["outline"], Verb::Summarise),
        (&["read"], Verb::Read),
        (&["cat"], Verb::Read),
        (&["open"], Verb::Read),
        (&["show"], Verb::Read),
        (&["display"], Verb::Read),
        (&["print"], Verb::Read),
        (&["view"], Verb::Read),
        (&["delete"], Verb::Delete),
        (&["remove"], Verb::Delete),
        (&["rm"], Verb::Delete),
    ];
    let asks: [(&[&str], &[&str], Verb); 3] = [
        (&["what", "is"], &["about"], Verb::Summarise),
        (&["what", "does"], &["say"], Verb::Read),
        (&["what", "does"], &["contain"], Verb::Read),
    ];
    for (opening, closing, verb) in asks {
        if starts_with(clause.tokens, opening)
            && ends_with(clause.tokens, closing)
            && clause.tokens.len() > opening.len()
        {
            let inner = clause.up_to(clause.tokens.len() - closing.len()).from(opening.len());
            return requests(verb, None, sources(inner, referents)?);
        }
    }
    let (opening, verb) = openings.iter().find(|(opening, _)| starts_with(clause.tokens, opening))?;
    let rest = clause.from(opening.len());
    let (rest, sentences) = if *verb == Verb::Summarise { length(rest) } else { (rest, None) };
    if rest.tokens.is_empty() && *verb == Verb::Summarise {
        return requests(*verb, sentences, vec![referents.attached.cloned().map(Source::Attached)?]);
    }
    requests(*verb, sentences, sources(rest, referents)?)
}

fn requests(verb: Verb, sentences: Option<usize>, sources: Vec<Source>) -> Option<Vec<Request>> {
    let request = |source| {
        Some(match (verb, source) {
            (Verb::Read, source) => Request::Read { source },
            (Verb::Summarise, source) => Request::Summarise { source, sentences },
            (Verb::Delete, Source::File(spellings)) => Request::Delete { spellings },
            (Verb::Delete, Source::Attached(_)) => return None,
        })
    };
    sources.into_iter().map(request).collect()
}

/// Takes `in one sentence` and the like off the end of a request.
fn length(clause: Clause<'_>) -> (Clause<'_>, Option<usize>) {
    const NUMBERS: &[&str] = &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let tokens = clause.tokens;
    for short in [&["briefly"][..], &["in", "short"], &["in", "brief"]] {
        if ends_with(tokens, short) {
            return (clause.up_to(tokens.len() - short.len()), Some(1));
        }
    }
    if let [.., within, number, unit] = tokens
        && within.is_any(&["in", "with"])
        && unit.is_any(&["sentence", "sentences", "line", "lines"])
    {
        let spelled = NUMBERS.iter().position(|word| number.is(word)).map(|position| position + 1);
        let single = number.is_any(&["a", "1"]).then_some(1);
        let digits = number.text.parse().ok().filter(|count| (1..=100).contains(count));
        if let Some(count) = spelled.or(single).or(digits) {
            return (clause.up_to(tokens.len() - 3), Some(count));
        }
    }
    (clause, None)
}

/// What is named; nothing when anything else is said.
pub(super) fn sources(clause: Clause<'_>, referents: &Referents<'_>) -> Option<Vec<Source>> {
    let mut sources = Vec::new();
    let mut says_file = false;
    let mut rest = clause;
    while let Some(token) = rest.tokens.first() {
        let next_is_word = rest.tokens.get(1).is_some_and(|next| next.kind == Kind::Word && !next.is("and"));
        let is_last = rest.tokens.len() == 1;
        if let Some((spellings, length)) = name(rest) {
            sources.push(Source::File(spellings));
            rest = rest.from(length);
            continue;
        }
        if token.is_any(PRONOUNS) && !next_is_word {
            sources.push(referents.source()?);
        } else if token.is_any(EMPTY) || token.is_any(ARTICLES) || token.is_mark(",") {
            says_file |= token.is_any(&["file", "text"]);
        } else if token.kind == Kind::Word && sources.is_empty() && is_last && !token.is_any(WHOLE) {
            sources.push(Source::File(vec![path_of(token)]));
        } else {
            return None;
        }
        rest = rest.from(1);
    }
    // `the file` is the one spoken of; `all files` never is.
    if sources.is_empty()
        && says_file
        && !clause.tokens.iter().any(|token| token.is_any(&["all", "every", "each", "any"]))
    {
        sources.push(referents.source()?);
    }
    (!sources.is_empty()).then_some(sources)
}

/// The file name that these words begin with, and how many tokens it has. A name may hold blanks: words up to one with an extension are
/// one name, and so are words around a slash.
fn name(clause: Clause<'_>) -> Option<(Vec<String>, usize)> {
    let tokens = clause.tokens;
    let first = tokens.first()?;
    if first.kind == Kind::Quoted {
        return Some((vec![path_of(first)], 1));
    }
    if begins_with_letter(tokens) {
        return Some((vec![path_of(first)], 1));
    }
    let article = usize::from(first.is_any(ARTICLES) && tokens.len() > 1);
    let words = tokens.get(article..)?;
    let ends_name = |token: &Token<'_>| {
        token.text.rsplit('/').next().is_some_and(|last| last.trim_start_matches('.').contains('.'))
    };
    let joins = |token: &&Token<'_>| token.kind == Kind::Word && !token.is("and") && !token.is_any(EMPTY);
    let unbroken = words.iter().take_while(joins).count();
    let length = words.iter().take(unbroken).position(ends_name).map_or(unbroken, |position| position + 1);
    let run = words.get(..length)?;
    let (start, end) = (run.first()?, run.last()?);
    let is_name = match run {
        [only] => is_path(only),
        several => several.iter().any(|word| word.text.contains('/')) || several.last().is_some_and(ends_name),
    };
    if !is_name {
        return None;
    }
    let plain = if run.len() == 1 { path_of(start) } else { clause.message.get(start.start..end.end)?.to_owned() };
    let mut spellings = vec![plain];
    if article == 1 && first.is("my") {
        spellings.extend(clause.message.get(first.start..end.end).map(str::to_owned));
    }
    Some((spellings, article + length))
}
