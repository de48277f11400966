//! Names of files inside a workspace, as values.
//!
//! A [`WorkspacePath`] is relative, has no `.` or `..` left in it and no NUL, and is what every tool works with. Its text form
//! is the name itself; bytes that are not UTF-8, control characters and the backslash are written as `\xHH` or `\\`, so that
//! *any* name that was shown can be given back. Whether something exists there, and where links lead, is the workspace's
//! business.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::ToolError;

/// Longest path the system takes.
const MAX_BYTES: usize = 4096;

/// A path relative to the workspace root, lexically normal; the empty path is the root itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(PathBuf);

impl WorkspacePath {
    /// The workspace itself.
    #[must_use]
    pub fn root() -> Self {
        Self(PathBuf::new())
    }

    /// Reads a path as a model or a person writes it; `roots` are the spellings of the workspace's own absolute path.
    pub fn parse(text: &str, roots: &[&Path]) -> Result<Self, ToolError> {
        let bytes = unescape(text);
        let invalid = |reason| ToolError::InvalidPath { path: text.to_owned(), reason };
        if bytes.is_empty() {
            return Err(invalid("it is empty"));
        }
        if bytes.contains(&0) {
            return Err(invalid("it holds a NUL character"));
        }
        if bytes.len() > MAX_BYTES {
            return Err(invalid("it is too long"));
        }
        let path = PathBuf::from(OsString::from_vec(bytes));
        let outside = || ToolError::PathOutsideWorkspace { path: text.to_owned() };
        let relative = if path.is_absolute() {
            let normal = normalise(&path).ok_or_else(outside)?;
            roots.iter().find_map(|root| normal.strip_prefix(root).ok()).ok_or_else(outside)?.to_path_buf()
        } else {
            normalise(&path).ok_or_else(outside)?
        };
        Ok(Self(relative))
    }

    /// A path that a walk of the workspace found.
    pub(crate) fn found(relative: &Path) -> Self {
        Self(relative.to_path_buf())
    }

    /// The path for system calls relative to the root; `.` for the root itself.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        if self.is_root() { Path::new(".") } else { &self.0 }
    }

    /// Whether this is the workspace itself.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.as_os_str().is_empty()
    }

    /// The directory it lies in; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|parent| Self(parent.to_path_buf()))
    }

    /// The last part of the name.
    #[must_use]
    pub fn file_name(&self) -> Option<&OsStr> {
        self.0.file_name()
    }

    /// A path below this one.
    #[must_use]
    pub(crate) fn join(&self, name: &OsStr) -> Self {
        Self(self.0.join(name))
    }

    /// How many parts the path has.
    pub(crate) fn depth(&self) -> usize {
        self.0.components().count()
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(self.as_path().as_os_str()))
    }
}

/// The normal form of a path for approvals, where the workspace is not at hand: `./a//b/../c` and `a/c` are one resource.
pub(crate) fn normal_text(text: &str) -> String {
    let path = PathBuf::from(OsString::from_vec(unescape(text)));
    match normalise(&path) {
        Some(normal) if normal.as_os_str().is_empty() => ".".to_owned(),
        Some(normal) => escape(normal.as_os_str()),
        None => text.to_owned(),
    }
}

/// A path in a list with commas; it can be given back like any other spelling.
pub(crate) fn in_list(path: &str) -> String {
    path.replace(',', "\\x2c")
}

/// Resolves `.` and `..` by the text alone; `None` when `..` climbs above the start. An absolute path stays absolute.
///
/// Doing this before any system call makes what is opened the same as what was approved: the kernel would resolve `link/..`
/// through the link.
fn normalise(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    let mut depth = 0_usize;
    for component in path.components() {
        match component {
            Component::Prefix(_) => return None,
            Component::RootDir => normal.push("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                depth = depth.checked_sub(1)?;
                normal.pop();
            }
            Component::Normal(name) => {
                depth += 1;
                normal.push(name);
            }
        }
    }
    Some(normal)
}

/// Text for a name: what is UTF-8 and printable stays, everything else becomes `\xHH`, a backslash becomes two.
pub(crate) fn escape(name: &OsStr) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                text.push_str("\\\\");
            } else if c.is_control() {
                let mut buffer = [0; 4];
                push_hex(&mut text, c.encode_utf8(&mut buffer).as_bytes());
            } else {
                text.push(c);
            }
        }
        push_hex(&mut text, chunk.invalid());
    }
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02X}");
    }
}

/// The bytes of an escaped name. A backslash that begins no escape stands for itself.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        match tail {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
                if let (Some(high), Some(low)) = (digit(*high), digit(*low)) {
                    bytes.push(high * 16 + low);
                    rest = after;
                } else {
                    bytes.push(b'\\');
                }
            }
            _ => bytes.push(b'\\'),
        }
    }
    bytes
}

#[cfg(test)]
#[path = "workspace_path_tests.rs"]
mod tests;
