//! Where policies come from: texts with a name, read from a directory within limits.
//!
//! A directory is read whole or not at all. A file that is neither policy, grants nor tests is refused: a `forbid` in a file with a
//! misspelt ending must not be missed in silence.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::{Grant, Place, PolicyError};

/// Largest policy file. A person writes a few kilobytes; megabytes are an accident or an attack on the parser.
pub const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most bytes of policy in one set.
pub const MAX_SET_BYTES: u64 = 8 << 20;
/// Most policies in one set, grants included: each may be evaluated for each call.
pub const MAX_POLICIES: usize = 10_000;

/// Name of the file of grants in an operator's directory.
pub(crate) const GRANTS_FILE: &str = "grants.toml";
const POLICY_ENDING: &str = ".cedar";
const TEST_ENDING: &str = ".policy-test.toml";

/// A text of policies with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// What a person knows it by: usually a path.
    pub file: String,
    /// First part of the ids of its policies: the file's stem.
    pub stem: String,
    /// The policies.
    pub text: String,
}

impl PolicySource {
    /// A source that is not a file of its own, such as the patterns that people approved.
    #[must_use]
    pub fn new(file: impl Into<String>, text: impl Into<String>) -> Self {
        let file = file.into();
        let name = file.rsplit('/').next().unwrap_or_default();
        let stem = name.strip_suffix(POLICY_ENDING).unwrap_or(name).to_owned();
        Self { stem, text: text.into(), file }
    }

    /// Reads a file of policies within the limit.
    ///
    /// # Errors
    /// When it cannot be read, is no text or is too large.
    pub fn read(path: &Path) -> Result<Self, PolicyError> {
        must_be_file(path)?;
        if !path.to_string_lossy().ends_with(POLICY_ENDING) {
            return Err(PolicyError::UnknownFile { path: path.to_owned() });
        }
        Ok(Self::new(path.display().to_string(), read_file(path)?))
    }
}

/// What an operator's directory holds.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    pub(crate) policies: Vec<PolicySource>,
    pub(crate) tests: Vec<PolicySource>,
    pub(crate) grants: Vec<Grant>,
}

/// Reads a directory. The order is that of the names, so that the same files always give the same set.
pub(crate) fn read_directory(path: &Path) -> Result<Directory, PolicyError> {
    let unreadable = |source| PolicyError::unreadable(path, source);
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Err(PolicyError::WrongKind { path: path.to_owned(), found: "a file", wanted: "a directory" });
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.sort();
    let mut found = Directory::default();
    for name in names {
        let file = path.join(&name);
        let refused = || PolicyError::UnknownFile { path: file.clone() };
        let name = name.to_str().ok_or_else(refused)?;
        if name.starts_with('.') || name.ends_with('~') || name.ends_with(".md") {
            continue;
        }
        if !fs::metadata(&file).map_err(|source| PolicyError::unreadable(&file, source))?.is_file() {
            return Err(refused());
        }
        if name == GRANTS_FILE {
            found.grants = Grant::read_list(&file.display().to_string(), &read_file(&file)?)?;
        } else if name.ends_with(TEST_ENDING) {
            found.tests.push(PolicySource::new(file.display().to_string(), read_file(&file)?));
        } else if name.ends_with(POLICY_ENDING) {
            found.policies.push(PolicySource::new(file.display().to_string(), read_file(&file)?));
        } else {
            return Err(refused());
        }
    }
    Ok(found)
}

/// Refuses what is no ordinary file: a named pipe would keep its reader waiting for ever.
fn must_be_file(path: &Path) -> Result<(), PolicyError> {
    let kind = fs::metadata(path).map_err(|source| PolicyError::unreadable(path, source))?.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let found = if kind.is_dir() { "a directory" } else { "a pipe, a socket or a device" };
    Err(PolicyError::WrongKind { path: path.to_owned(), found, wanted: "a file" })
}

/// Reads one file within the limit, whatever its size claims to be.
pub(crate) fn read_file(path: &Path) -> Result<String, PolicyError> {
    must_be_file(path)?;
    let unreadable = |source| PolicyError::unreadable(path, source);
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    File::open(path).map_err(unreadable)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(PolicyError::FileTooLarge { file, limit: MAX_FILE_BYTES });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = error.as_bytes().iter().take(good);
        PolicyError::NotUtf8 { at: Place { file, line: before.filter(|byte| **byte == b'\n').count() + 1 } }
    })
}
