//! What the host can do, as plain data.
//!
//! Filled by the live probes of `probe`, or invented by a test. Planning reads only this, never the host.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whether something works here, and why not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// It was tried and worked.
    Works,
    /// It was tried and failed for this reason.
    Fails(String),
}

impl Ability {
    /// Whether it works.
    #[must_use]
    pub fn works(&self) -> bool {
        matches!(self, Self::Works)
    }

    /// Why it does not, if so.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Works => None,
            Self::Fails(reason) => Some(reason),
        }
    }
}

/// One directory or file of the system that programs need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemPath {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: SystemPathKind,
}

/// What a system path is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemPathKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link with this target, such as `/bin` to `usr/bin`.
    Link(PathBuf),
}

/// Which control groups this process may make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cgroups {
    /// None, for this reason.
    None(String),
    /// The unified hierarchy.
    V2 {
        /// Our own group, in which children can be made.
        parent: PathBuf,
        /// Whether a child gets the memory controller.
        memory: bool,
        /// Whether a child gets the process-count controller.
        pids: bool,
    },
    /// Separate hierarchies; each is our own group there, if a child can be made in it.
    V1 {
        /// Memory.
        memory: Option<PathBuf>,
        /// Process count.
        pids: Option<PathBuf>,
    },
}

impl Cgroups {
    /// Whether the memory of a tree can be limited by the kernel.
    #[must_use]
    pub fn limits_memory(&self) -> bool {
        match self {
            Self::None(_) => false,
            Self::V2 { memory, .. } => *memory,
            Self::V1 { memory, .. } => memory.is_some(),
        }
    }

    /// Whether the number of processes of a tree can be limited by the kernel.
    #[must_use]
    pub fn limits_processes(&self) -> bool {
        match self {
            Self::None(_) => false,
            Self::V2 { pids, .. } => *pids,
            Self::V1 { pids, .. } => pids.is_some(),
        }
    }
}

/// Whose rights the daemon runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// Root with the right to mount, to change ids and to make namespaces.
    Root,
    /// An ordinary user, or a root that lacks those rights.
    Ordinary {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
}

/// Everything planning needs to know about the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Release of the kernel, such as `6.18.4`.
    pub kernel: String,
    /// Machine, such as `x86_64`.
    pub machine: String,
    /// Whose rights the daemon runs with.
    pub privilege: Privilege,
    /// A user namespace with a mapped id.
    pub user_namespace: Ability,
    /// All namespaces of tier C at once, with a new `/proc`, a private root and the loopback up.
    pub isolation: Ability,
    /// Mounting a directory with mapped owners.
    pub mapped_mounts: Ability,
    /// Version of Landlock by its system call; 0 if the kernel has none.
    pub landlock: u32,
    /// A filter of system calls.
    pub seccomp: Ability,
    /// Control groups.
    pub cgroups: Cgroups,
    /// The system's directories and files, in order.
    pub system: Vec<SystemPath>,
    /// What was noticed besides, such as a setting that restricts user namespaces.
    pub notes: Vec<String>,
}

/// The first Landlock version with the right to connect by port.
pub(crate) const LANDLOCK_NETWORK: u32 = 4;
/// The first Landlock version that keeps signals and abstract sockets inside.
pub(crate) const LANDLOCK_SCOPES: u32 = 6;

/// What of the system tier C shows and tier B lets read, if it exists.
///
/// `/etc` is a short list: it also holds keys, password hashes and the names of internal hosts.
pub(crate) const SYSTEM_PATHS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];
