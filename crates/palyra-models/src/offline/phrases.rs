//! The phrases of each request. One function per verb family; each gives up with `None` when words are left over, so that a
//! condition or a wish it cannot honour is never silently dropped.

use super::lex::{Kind, Token};
use super::request::{Clause, Depth, FILLERS, Referents, Request, Source};
use super::{counting, files, moving, searching, writing};

/// Words that begin a request.
pub(super) const VERBS: &[&str] = &[
    "list",
    "ls",
    "dir",
    "show",
    "display",
    "read",
    "open",
    "cat",
    "print",
    "view",
    "search",
    "find",
    "grep",
    "look",
    "locate",
    "summarise",
    "summarize",
    "outline",
    "write",
    "create",
    "make",
    "save",
    "put",
    "touch",
    "add",
    "append",
    "replace",
    "change",
    "substitute",
    "swap",
    "patch",
    "edit",
    "update",
    "delete",
    "remove",
    "rm",
    "run",
    "execute",
    "exec",
    "help",
    "tell",
    "give",
    "what",
    "what's",
    "whats",
    "how",
    "count",
    "copy",
    "cp",
    "duplicate",
    "move",
    "mv",
    "rename",
    "mkdir",
    "overwrite",
    "which",
    "where",
    "in",
];
/// Verbs that take a text.
pub(super) const TEXT_VERBS: &[&str] = &["write", "overwrite", "create", "make", "save", "put", "add", "append"];

/// Words that say nothing about which thing is meant.
pub(super) const ARTICLES: &[&str] = &["the", "a", "an", "all", "every", "my", "our", "this", "your", "any", "each"];
/// Words for the workspace as a whole.
pub(super) const WHOLE: &[&str] = &[
    "here",
    "workspace",
    "project",
    "repo",
    "repository",
    "folder",
    "directory",
    "current",
    "everything",
    "everywhere",
    "files",
    "file",
    "contents",
    "content",
    "entries",
    "folders",
    "directories",
    "code",
    "there",
    "root",
];
const DEEP: &[&str] = &["recursively", "recursive", "subfolders", "subdirectories", "tree", "deep", "deeply"];
pub(super) const INTO: &[&str] = &["in", "under", "inside", "within", "from", "of", "at", "below"];
/// Programs that people call by name; what follows is a command line of their own.
const PROGRAMS: &[&str] =
    &["git", "pwd", "wc", "mkdir", "cargo", "npm", "whoami", "uname", "echo", "df", "du", "head", "tail"];

/// Reads one clause. `referents` is what `it` can mean.
pub(super) fn understand(clause: &Clause<'_>, referents: &mut Referents<'_>) -> Vec<Request> {
    let clause = without_politeness(*clause);
    if clause.tokens.is_empty() {
        return Vec::new();
    }
    // `in FILE, …` and `edit FILE, …` only say which file is meant.
    if let Some(path) = only_names_a_file(clause) {
        referents.named = Some(path);
        return Vec::new();
    }
    let named = referents.named.clone();
    let understood = question(clause)
        .or_else(|| counting::count(clause, referents))
        .or_else(|| listing(clause))
        .or_else(|| moving::directory(clause))
        .or_else(|| writing::text(clause, named.as_deref()))
        .or_else(|| writing::replacement(clause, named.as_deref()))
        .or_else(|| moving::copy_or_move(clause))
        .or_else(|| files::on_files(clause, referents))
        .or_else(|| searching::search(clause))
        .or_else(|| running(clause));
    let requests = understood.unwrap_or_else(|| vec![Request::Unknown(clause.written().unwrap_or_default())]);
    for request in &requests {
        match request {
            Request::Read { source: Source::File(spellings) }
            | Request::Summarise { source: Source::File(spellings), .. }
            | Request::Count { source: Source::File(spellings), .. } => referents.named = spellings.first().cloned(),
            Request::Create { path, .. }
            | Request::Write { path, .. }
            | Request::Append { path, .. }
            | Request::Replace { path, .. }
            | Request::Copy { to: path, .. }
            | Request::Move { to: path, .. } => referents.named = Some(path.clone()),
            _ => {}
        }
    }
    requests
}

/// Takes away what is said for politeness, at both ends.
fn without_politeness(mut clause: Clause<'_>) -> Clause<'_> {
    const OPENINGS: &[&[&str]] = &[
        &["can", "you"],
        &["could", "you"],
        &["would", "you"],
        &["will", "you"],
        &["i", "want", "you", "to"],
        &["i", "want", "to"],
        &["i", "need", "you", "to"],
        &["i", "would", "like", "you", "to"],
        &["i'd", "like", "you", "to"],
        &["let's"],
        &["let", "us"],
        &["hey"],
        &["hello"],
        &["hi"],
        &["palyra"],
        &["go", "ahead"],
    ];
    const CLOSINGS: &[&[&str]] = &[&["please"], &["for", "me"], &["thanks"], &["thank", "you"], &["too"], &["now"]];
    loop {
        let tokens = clause.tokens;
        let opening = OPENINGS.iter().find(|words| tokens.len() > words.len() && starts_with(tokens, words));
        if let Some(words) = opening {
            clause = clause.from(words.len());
        } else if tokens
            .first()
            .is_some_and(|token| token.is_any(FILLERS) || matches!(token.kind, Kind::Punctuation | Kind::LineEnd))
        {
            clause = clause.from(1);
        } else if tokens
            .last()
            .is_some_and(|token| matches!(token.text, "." | "!" | "?" | "," | "\n") && !is_path(token))
        {
            clause = clause.up_to(tokens.len() - 1);
        } else if let Some(words) = CLOSINGS.iter().find(|words| tokens.len() > words.len() && ends_with(tokens, words))
        {
            clause = clause.up_to(tokens.len() - words.len());
        } else {
            return clause;
        }
    }
}

pub(super) fn starts_with(tokens: &[Token<'_>], words: &[&str]) -> bool {
    tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, word)| token.is(word))
}

pub(super) fn ends_with(tokens: &[Token<'_>], words: &[&str]) -> bool {
    tokens.len().checked_sub(words.len()).and_then(|at| tokens.get(at..)).is_some_and(|tail| starts_with(tail, words))
}

/// Whether a token can only be a path: it is a directory mark, or a word with a dot or a slash, a well-known name, or a letter that is no word.
pub(super) fn is_path(token: &Token<'_>) -> bool {
    const KNOWN: &[&str] =
        &["README", "LICENSE", "LICENCE", "Makefile", "Dockerfile", "CHANGELOG", "CONTRIBUTING", "NOTICE"];
    let letter = is_letter(token) && !token.is_any(&["a", "i"]);
    token.kind == Kind::Word
        && (letter
            || token.text.contains(['.', '/', '@'])
            || token.text.starts_with('~')
            || KNOWN.contains(&token.text))
}

/// Whether a token names a file where nothing but a file can stand: quoted, a path, or any single letter.
pub(super) fn is_name(token: &Token<'_>) -> bool {
    token.kind == Kind::Quoted || is_path(token) || is_letter(token)
}

/// Whether the first of these tokens is a letter that names a file: `a` in `read a` and `create a with "x"`, but not in `create a file`.
pub(super) fn begins_with_letter(tokens: &[Token<'_>]) -> bool {
    const JOINTS: &[&str] = &["and", "with", "containing", "saying", "holding", "to", "into", "in", "as", "from"];
    let joint = |next: &Token<'_>| next.kind != Kind::Word || next.is_any(JOINTS);
    tokens.first().is_some_and(is_letter) && tokens.get(1).is_none_or(joint)
}

fn is_letter(token: &Token<'_>) -> bool {
    let mut letters = token.text.chars();
    token.kind == Kind::Word && letters.next().is_some_and(char::is_alphanumeric) && letters.next().is_none()
}

/// The path a token stands for.
pub(super) fn path_of(token: &Token<'_>) -> String {
    token.text.strip_prefix("@file:").unwrap_or(token.text).to_owned()
}

/// `in FILE`, `edit FILE`, with nothing else.
fn only_names_a_file(clause: Clause<'_>) -> Option<String> {
    let (first, rest) = clause.tokens.split_first()?;
    if !first.is_any(&["in", "edit", "patch", "update"]) {
        return None;
    }
    match rest {
        [path] if is_name(path) => Some(path_of(path)),
        [filler, path] if filler.is_any(&["file", "the"]) && is_path(path) => Some(path_of(path)),
        [path, mark] if mark.is_mark(":") && is_path(path) => Some(path_of(path)),
        _ => None,
    }
}

/// Requests that need no file: time and help.
fn question(clause: Clause<'_>) -> Option<Vec<Request>> {
    let words: Vec<String> = clause.tokens.iter().map(|token| token.text.to_ascii_lowercase()).collect();
    let said = words.join(" ");
    let one = |request| Some(vec![request]);
    match said.as_str() {
        "help"
        | "help me"
        | "hello"
        | "hi"
        | "hey"
        | "what can you do"
        | "who are you"
        | "what are you"
        | "how do you work"
        | "what do you understand"
        | "good morning"
        | "good evening"
        | "show help" => one(Request::Help),
        "thanks" | "thank you" | "thanks a lot" | "thank you very much" | "great" | "bye" | "goodbye" => {
            one(Request::Thanks)
        }
        "what time is it"
        | "what is the time"
        | "what's the time"
        | "tell me the time"
        | "what is the date"
        | "what's the date"
        | "what day is it"
        | "what is today's date"
        | "what's today's date"
        | "tell me the date"
        | "what is the current time"
        | "what time is it now"
        | "show the time"
        | "show me the time"
        | "current time"
        | "what date is it" => one(Request::Time),
        _ => None,
    }
}

/// `run …`: the rest of the clause is the person's own command line.
fn running(clause: Clause<'_>) -> Option<Vec<Request>> {
    for opening in [&["run", "the", "command"][..], &["run", "command"], &["run"], &["execute"], &["exec"]] {
        if starts_with(clause.tokens, opening) {
            let command = after_colon(clause.from(opening.len())).written()?;
            return Some(vec![Request::Run { command }]);
        }
    }
    let own_line = clause.tokens.first().is_some_and(|token| PROGRAMS.contains(&token.text));
    own_line.then(|| clause.written()).flatten().map(|command| vec![Request::Run { command }])
}

fn after_colon(clause: Clause<'_>) -> Clause<'_> {
    if clause.tokens.first().is_some_and(|token| token.is_mark(":")) { clause.from(1) } else { clause }
}

/// `list …` and its kin.
fn listing(clause: Clause<'_>) -> Option<Vec<Request>> {
    let tokens = clause.tokens;
    let first = tokens.first()?;
    let speaks_of_files = tokens.iter().any(|token| {
        token.is_any(&["files", "folder", "folders", "directory", "directories", "entries", "tree", "everything"])
    });
    let asks = first.is_any(&["what", "which", "what's", "whats"])
        && speaks_of_files
        && !tokens
            .iter()
            .any(|token| token.is_any(&["contain", "containing", "mention", "have", "say", "with", "use"]));
    let shows = first.is_any(&["show", "display", "give", "print", "view"])
        && speaks_of_files
        && !tokens.iter().any(|token| token.is_any(&["contents", "content", "containing", "with", "summary"]));
    if !(first.is_any(&["list", "ls", "dir"]) || asks || shows) {
        return None;
    }
    let mut depth = Depth::Flat;
    let mut directories = Vec::new();
    // A bare word is a directory only where one is expected: after the verb, a preposition, or `and` behind another one.
    let mut expected = first.is_any(&["list", "ls", "dir"]);
    for (at, token) in tokens.iter().enumerate().skip(1) {
        let letter = expected && begins_with_letter(tokens.get(at..).unwrap_or_default());
        if token.is_any(DEEP) {
            depth = Depth::Recursive;
        } else if token.kind == Kind::Quoted || is_path(token) || letter {
            directories.push(path_of(token));
            expected = false;
        } else if token.is_any(INTO) {
            expected = true;
        } else if token.is("and") || token.is_mark(",") {
            expected = !directories.is_empty();
        } else if token.is_any(&["files", "file", "entries", "folders", "directories", "there"]) {
            expected = false;
        } else if token.kind == Kind::Punctuation
            || token.is_any(ARTICLES)
            || token.is_any(WHOLE)
            || token.is_any(&[
                "me",
                "are",
                "is",
                "what",
                "which",
                "with",
                "its",
                "including",
                "exist",
                "do",
                "i",
                "we",
                "have",
            ])
        {
        } else if expected && token.text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_')) {
            directories.push(path_of(token));
            expected = false;
        } else {
            return None;
        }
    }
    // Several bare words are a sentence, not directories.
    let bare = directories.iter().filter(|name| !name.contains(['.', '/'])).count();
    let joined = tokens.iter().filter(|token| token.is("and") || token.is_mark(",")).count();
    if bare > joined + 1 {
        return None;
    }
    if directories.is_empty() {
        return Some(vec![Request::List { directory: None, depth }]);
    }
    Some(directories.into_iter().map(|directory| Request::List { directory: Some(directory), depth }).collect())
}
