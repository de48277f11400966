//! What a person is shown before they endorse it, and their answer.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use palyra_common::Digest;

use crate::console::{one_line, plain};
use crate::context::Context;
use crate::error::CliError;

/// Files of a directory that are endorsed with one question; nobody looks at more.
const MAX_FILES: usize = 1_000;
/// Names of them that are shown.
const NAMED: usize = 40;

/// A file with the digest of what it held when it was shown.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) digest: Digest,
}

/// What is at a path.
pub(super) enum Shown {
    File { found: Found, bytes: Vec<u8> },
    Directory(Vec<Found>),
}

/// Reads what is at a path; says in words why that cannot be done.
pub(super) fn found_at(path: &Path) -> Result<Shown, String> {
    let unreadable = |path: &Path, error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
    if path.is_dir() {
        let mut found = Vec::new();
        let mut ahead = vec![path.to_owned()];
        while let Some(directory) = ahead.pop() {
            let entries = std::fs::read_dir(&directory).map_err(|error| unreadable(&directory, error))?;
            for entry in entries {
                let entry = entry.map_err(|error| unreadable(&directory, error))?;
                let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), error))?;
                // What git keeps is not read as text, and links lead to files that have names of their own.
                if kind.is_dir() && entry.file_name() != ".git" {
                    ahead.push(entry.path());
                } else if kind.is_file() {
                    let bytes = std::fs::read(entry.path()).map_err(|error| unreadable(&entry.path(), error))?;
                    found.push(Found { path: entry.path(), digest: Digest::of(&bytes) });
                }
                if found.len() > MAX_FILES {
                    let many = format!("`{}` has more than {MAX_FILES} files", path.display());
                    return Err(format!("{many}; a directory that is yours belongs into `workspaces.trusted`"));
                }
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        return Ok(Shown::Directory(found));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
    Ok(Shown::File { found: Found { path: path.to_owned(), digest: Digest::of(&bytes) }, bytes })
}

/// Shows a file and asks.
pub(super) fn agreed(found: &Found, bytes: &[u8], context: &Context) -> Result<bool, CliError> {
    let digest = found.digest;
    require_terminal(context, &format!("look at the file and give --yes --digest {digest}"))?;
    show(found, bytes, context)?;
    ask("Runs will trust exactly this, wherever it lies. Endorse it? [y/N] ", context)
}

/// Shows a file.
pub(crate) fn show(found: &Found, bytes: &[u8], context: &Context) -> Result<(), CliError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => context.console.prose(&plain(text))?,
        Err(_) => context.console.line(&format!("({} bytes, not text)", bytes.len()))?,
    }
    context.console.line(&format!("--- {}, {} bytes, {}", found.path.display(), bytes.len(), found.digest))
}

/// Shows which files a directory has and asks.
pub(super) fn agreed_to_all(directory: &Path, found: &[Found], context: &Context) -> Result<bool, CliError> {
    require_terminal(context, "a directory is endorsed on a terminal; or add it to `workspaces.trusted`")?;
    if found.is_empty() {
        context.console.remark(&format!("`{}` has no files", directory.display()));
        return Ok(false);
    }
    for file in found.iter().take(NAMED) {
        context.console.line(&one_line(&file.path.display().to_string()))?;
    }
    if let Some(more) = found.len().checked_sub(NAMED).filter(|more| *more > 0) {
        context.console.line(&format!("… and {more} more"))?;
    }
    let question =
        format!("Runs will trust what these {} files hold now, wherever it lies. Endorse them? [y/N] ", found.len());
    ask(&question, context)
}

fn require_terminal(context: &Context, instead: &str) -> Result<(), CliError> {
    if !context.console.is_text() || !std::io::stdin().is_terminal() {
        return Err(CliError::Usage { reason: format!("nobody can be asked here; {instead}"), usage: None });
    }
    Ok(())
}

/// A question with the answer no unless somebody says yes.
pub(crate) fn ask(question: &str, context: &Context) -> Result<bool, CliError> {
    context.console.prompt(question);
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|source| CliError::Output { source })?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
