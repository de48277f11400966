//! Short ways to make the errors that are made in many places, with a stranger's text as it may be shown.

use std::io;
use std::path::Path;

use super::SkillError;

/// How much of a stranger's text is shown.
const SHOWN: usize = 120;

/// A stranger's text as it may be shown: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

impl SkillError {
    pub(crate) fn name(kind: &'static str, text: &str, reason: &str) -> Self {
        Self::NameInvalid { kind, text: shown(text), reason: reason.to_owned() }
    }

    pub(crate) fn archive(reason: impl Into<String>) -> Self {
        Self::ArchiveMalformed { reason: reason.into() }
    }

    pub(crate) fn path(path: &str, reason: &'static str) -> Self {
        Self::PathRefused { path: shown(path), reason }
    }

    pub(crate) fn manifest(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::ManifestInvalid { field: field.into(), reason: reason.into() }
    }

    pub(crate) fn file(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { doing, path: path.to_owned(), source }
    }
}
