//! What a process may do: tier, paths, network, limits, environment.
//!
//! A grant is plain data that the caller has already narrowed by policy. Nothing here looks at the host, except
//! [`Place::look`], which turns a path into the facts that planning needs, so that planning itself stays pure.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use palyra_common::SandboxTier;
use serde::{Deserialize, Serialize};

use crate::error::SandboxError;

/// What to do when the host cannot give tier C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// Refuse to run.
    Never,
    /// Run in tier B instead.
    TierB,
}

/// Whether a shared path may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read and execute.
    ReadOnly,
    /// Read, execute, create, change and delete.
    ReadWrite,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        })
    }
}

/// What kind of thing a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceKind {
    /// A directory, shared with everything below it.
    Directory,
    /// A single file.
    File,
}

/// The owner of a file on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A path of the host with the facts that planning needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Absolute and free of symbolic links when it was looked at.
    pub path: PathBuf,
    /// Directory or file.
    pub kind: PlaceKind,
    /// Who owns it.
    pub owner: Owner,
}

impl Place {
    /// Looks at a path of the host and resolves its symbolic links.
    pub fn look(path: &Path) -> Result<Self, SandboxError> {
        let unusable = |reason: String| SandboxError::PlaceUnusable { path: path.to_owned(), reason };
        let canonical = path.canonicalize().map_err(|error| unusable(error.to_string()))?;
        let metadata = canonical.symlink_metadata().map_err(|error| unusable(error.to_string()))?;
        let kind = if metadata.is_dir() {
            PlaceKind::Directory
        } else if metadata.is_file() {
            PlaceKind::File
        } else {
            return Err(unusable("it is neither a directory nor a regular file".to_owned()));
        };
        Ok(Self { path: canonical, kind, owner: owner_of(&metadata) })
    }
}

#[cfg(unix)]
fn owner_of(metadata: &std::fs::Metadata) -> Owner {
    use std::os::unix::fs::MetadataExt as _;
    Owner { uid: metadata.uid(), gid: metadata.gid() }
}

#[cfg(not(unix))]
fn owner_of(_metadata: &std::fs::Metadata) -> Owner {
    Owner { uid: 0, gid: 0 }
}

/// A place and what may be done with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The place.
    pub place: Place,
    /// What may be done with it.
    pub access: Access,
}

/// The way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing can be reached but, in tier C, the sandbox's own loopback.
    None,
    /// Only the egress proxy can be reached.
    Proxy(ProxyPorts),
}

/// Where the egress proxy listens on 127.0.0.1.
///
/// In tier C these are ports of the sandbox's private loopback and any numbers will do; in tier B they are ports of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyPorts {
    /// HTTP and CONNECT.
    pub http: u16,
    /// SOCKS5.
    pub socks: u16,
}

impl Default for ProxyPorts {
    fn default() -> Self {
        Self { http: 3128, socks: 1080 }
    }
}

/// How much of the host a process tree may use. No limit may be zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Processor time of the whole tree.
    pub cpu: Duration,
    /// Time from start to forced end.
    pub wall: Duration,
    /// Memory of the whole tree.
    pub memory_bytes: u64,
    /// Processes and threads at one time.
    pub processes: u32,
    /// Open files per process.
    pub open_files: u32,
    /// Size of one file.
    pub file_bytes: u64,
    /// Bytes written to disk by the whole tree: a full disk would stop the journal, and with it everything.
    pub written_bytes: u64,
    /// Size of each private temporary file system in tier C.
    pub scratch_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            cpu: Duration::from_secs(60),
            wall: Duration::from_secs(120),
            memory_bytes: 512 * MIB,
            processes: 256,
            open_files: 1024,
            file_bytes: 1024 * MIB,
            written_bytes: 4096 * MIB,
            scratch_bytes: 256 * MIB,
        }
    }
}

/// Everything a process was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The tier to run in: B or C.
    pub tier: SandboxTier,
    /// What to do when the host cannot give tier C.
    pub fallback: Fallback,
    /// The workspace, visible at its own path.
    pub workspace: Share,
    /// Further paths that may be read.
    pub read_only: Vec<Place>,
    /// Further paths that may be changed.
    pub writable: Vec<Place>,
    /// The way out.
    pub network: Network,
    /// How much of the host may be used.
    pub limits: Limits,
    /// Names of variables an invocation may set besides the built-in ones.
    pub environment: Vec<String>,
    /// Directories in which programs are looked up, in order.
    pub program_path: Vec<PathBuf>,
    /// Where tier B makes its private home; the directory must exist and belong to the daemon.
    pub scratch_root: PathBuf,
}

impl Grant {
    /// A grant of the given tier over one workspace: no network, default limits, no fallback, nothing else shared.
    #[must_use]
    pub fn new(tier: SandboxTier, workspace: Share) -> Self {
        Self {
            tier,
            fallback: Fallback::Never,
            workspace,
            read_only: Vec::new(),
            writable: Vec::new(),
            network: Network::None,
            limits: Limits::default(),
            environment: Vec::new(),
            program_path: DEFAULT_PATH.iter().map(PathBuf::from).collect(),
            scratch_root: std::env::temp_dir(),
        }
    }

    /// All shared places with their access, workspace first.
    pub fn shares(&self) -> impl Iterator<Item = (&Place, Access)> {
        std::iter::once((&self.workspace.place, self.workspace.access))
            .chain(self.read_only.iter().map(|place| (place, Access::ReadOnly)))
            .chain(self.writable.iter().map(|place| (place, Access::ReadWrite)))
    }
}

const DEFAULT_PATH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Columns.
    pub columns: u16,
}

/// One process to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// Unique name, such as the id of the tool call: letters, digits, `-` and `_`.
    pub id: String,
    /// A name looked up in the grant's program path, or an absolute path, or a path below the working directory.
    pub program: String,
    /// Arguments after the program's name.
    pub arguments: Vec<String>,
    /// Variables to set; each name must be in the grant's list.
    pub environment: Vec<(String, String)>,
    /// Absolute, inside a shared directory.
    pub working_directory: PathBuf,
    /// Whether the process gets a terminal.
    pub terminal: Option<TerminalSize>,
}

impl Invocation {
    /// A program in a directory, without arguments, variables or terminal.
    #[must_use]
    pub fn new(id: impl Into<String>, program: impl Into<String>, working_directory: impl Into<PathBuf>) -> Self {
        Self {
            id: id.into(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            working_directory: working_directory.into(),
            terminal: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }
}
