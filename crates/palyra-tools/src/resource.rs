//! What a call acts on, as a value that policies judge.
//!
//! INVARIANT: no text is taken apart again to learn the kind or the number of things a call touches. A comma in a file name is a comma, an address that cannot
//! be read is no resource at all, and the text form below is for people, hooks and the binding of approvals.

use std::collections::BTreeSet;
use std::fmt;

use crate::WorkspacePath;
use crate::workspace_path::in_list;

/// The thing that a call acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallResource {
    /// Files of the workspace, links resolved; at least one.
    Files(FileSet),
    /// A directory of the workspace with everything below it, links resolved.
    Directory(WorkspacePath),
    /// A request to a server.
    Request(RequestTarget),
    /// The tool itself; the key tells apart what its calls act on, for the binding of approvals.
    Tool {
        /// In a form of the tool's own.
        key: String,
    },
}

/// One file or more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSet {
    first: WorkspacePath,
    others: BTreeSet<WorkspacePath>,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTarget {
    /// The method, in capital letters.
    pub method: String,
    /// The scheme, in small letters.
    pub scheme: String,
    /// The host as the egress rules know it.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl CallResource {
    /// One file.
    #[must_use]
    pub fn file(path: WorkspacePath) -> Self {
        Self::Files(FileSet { first: path, others: BTreeSet::new() })
    }

    /// Several files; none if there are none.
    #[must_use]
    pub fn files(paths: impl IntoIterator<Item = WorkspacePath>) -> Option<Self> {
        let mut others: BTreeSet<WorkspacePath> = paths.into_iter().collect();
        let first = others.pop_first()?;
        Some(Self::Files(FileSet { first, others }))
    }

    /// Something that only the tool knows.
    #[must_use]
    pub fn tool(key: impl Into<String>) -> Self {
        Self::Tool { key: key.into() }
    }
}

impl FileSet {
    /// The files, in order.
    pub fn iter(&self) -> impl Iterator<Item = &WorkspacePath> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl fmt::Display for CallResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) if files.others.is_empty() => write!(f, "file:{}", files.first),
            Self::Files(files) => {
                let names: Vec<String> = files.iter().map(|path| in_list(&path.to_string())).collect();
                write!(f, "files:{}", names.join(","))
            }
            Self::Directory(path) => write!(f, "directory:{path}"),
            Self::Request(target) => {
                write!(f, "url:{}:{}:{}:{}", target.method, target.scheme, target.port, target.host)
            }
            Self::Tool { key } => f.write_str(key),
        }
    }
}
