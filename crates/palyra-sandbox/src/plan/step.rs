//! The vocabulary of a plan: one value per act of the set-up.
//!
//! A step says exactly what is done and nothing about how; `launch` carries steps out in the order in which they are listed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::filter::FilterProfile;
use crate::grant::{Access, Owner, PlaceKind};

/// A namespace that the sandbox gets of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespace {
    /// Users.
    User,
    /// Mounts.
    Mount,
    /// Processes.
    Pid,
    /// Network.
    Network,
    /// System V and POSIX message queues, semaphores, shared memory.
    Ipc,
    /// Host name.
    Uts,
}

/// As whom the guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestIdentity {
    /// As the daemon's own, ordinary user.
    Caller {
        /// The user on the host.
        uid: u32,
        /// The group on the host.
        gid: u32,
    },
    /// As an id that nothing else on the host has, chosen at the start and free again after the end.
    Private,
}

/// A resource that the kernel limits per process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Seconds of processor time.
    Cpu,
    /// Bytes of one file.
    FileSize,
    /// Open files.
    OpenFiles,
    /// Processes and threads of the user, in the sandbox's own user namespace or under its own id.
    Processes,
    /// Processes and threads of the user, above those that the user runs already.
    MoreProcesses,
    /// Bytes of a core dump.
    CoreSize,
    /// Bytes of locked memory.
    LockedMemory,
    /// Bytes in message queues.
    MessageQueues,
}

/// What Landlock permits below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Read files, list directories, execute.
    ReadExecute,
    /// Read files and list directories.
    Read,
    /// Everything.
    Change,
    /// Read and write existing device files.
    Device,
}

/// One permission of Landlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRule {
    /// The path, as the guest sees it.
    pub path: PathBuf,
    /// Directory or file: a file takes fewer rights.
    pub kind: PlaceKind,
    /// What is permitted there.
    pub right: Right,
}

/// TCP in Landlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TcpRule {
    /// Left to the network namespace or to the filter.
    Unhandled,
    /// Nothing may be bound; only these ports may be connected to.
    Connect(Vec<u16>),
}

/// A Landlock rule set. Every right that the version knows and no rule permits is denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandlockRules {
    /// The version of the interface, as the host has it.
    pub version: u32,
    /// Permissions.
    pub paths: Vec<PathRule>,
    /// TCP.
    pub tcp: TcpRule,
    /// Whether signals and abstract sockets stay inside.
    pub scopes: Scopes,
}

/// Whether Landlock keeps signals and abstract sockets inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scopes {
    /// They stay inside.
    Inside,
    /// The kernel is too old for it.
    Unavailable,
}

/// How much of inotify the sandbox's user namespace may use. The kernel charges the host's user as well, who has 128 instances by default: without a limit
/// of its own, one guest could take them all from the user's editors and from the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InotifyLimits {
    /// Instances.
    pub instances: u32,
    /// Watches of all instances.
    pub watches: u32,
}

/// One act of the set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Be the first to be killed when memory runs out, before anything of ours.
    FirstToGo,
    /// Map one id, as an ordinary user may.
    MapCaller,
    /// Map the caller to itself, so that its processes are counted apart and nothing else changes.
    MapSelf,
    /// Limit inotify in the sandbox's user namespace.
    LimitInotify(InotifyLimits),
    /// Give the sandbox its own host name.
    Hostname(String),
    /// Bring the loopback up.
    LoopbackUp,
    /// Listen on a port of the private loopback and hand the socket to the daemon.
    Listen(u16),
    /// Keep all later mounts from the host, and the host's from us.
    PrivateMounts,
    /// Take hold of a directory or file of the host, before the new root hides it.
    Source {
        /// Number by which `attach` and `cover` refer to it.
        slot: usize,
        /// Where it is on the host.
        path: PathBuf,
        /// What may be done with it.
        access: Access,
        /// Whose files appear as the guest's own, and whose the guest's files become.
        mapped: Option<Owner>,
    },
    /// Take hold of a device file of the host.
    Device {
        /// Number by which `attach` refers to it.
        slot: usize,
        /// Where it is on the host.
        path: PathBuf,
    },
    /// Make the new root, an empty file system in memory.
    Root,
    /// Make a directory in the new root.
    Directory(PathBuf),
    /// Write a file in the new root.
    Text {
        /// Where.
        path: PathBuf,
        /// What.
        content: String,
    },
    /// Make a symbolic link in the new root.
    Link {
        /// Where.
        path: PathBuf,
        /// To what.
        target: PathBuf,
    },
    /// Mount a source in the new root.
    Attach {
        /// Which source.
        slot: usize,
        /// Where.
        path: PathBuf,
        /// Directory or file.
        kind: PlaceKind,
    },
    /// Mount a source over its own path, when there is no new root.
    Cover {
        /// Which source.
        slot: usize,
        /// Where.
        path: PathBuf,
    },
    /// Mount a private file system in memory.
    Scratch {
        /// Where in the new root.
        path: PathBuf,
        /// How much fits.
        bytes: u64,
        /// Mode of its top directory.
        mode: u32,
    },
    /// Mount a new instance of pseudo-terminals.
    Terminals,
    /// Mount a new, read-only `/proc`.
    Proc,
    /// Mount a new, read-only `/proc` over the host's, when there is no new root.
    CoverProc,
    /// Mount a private file system in memory over an existing directory, when there is no new root.
    CoverScratch {
        /// Over which directory.
        path: PathBuf,
        /// How much fits.
        bytes: u64,
        /// Mode of its top directory.
        mode: u32,
    },
    /// Write a file of the guest's in its private directory, when there is no new root.
    ScratchText {
        /// Where.
        path: PathBuf,
        /// What.
        content: String,
    },
    /// Cover the sockets of the host that lie in shared places; where there is too much to search, the guest gets no Unix sockets.
    HideSockets {
        /// Places that the guest may write to.
        writable: Vec<PathBuf>,
        /// Places that it may read.
        read_only: Vec<PathBuf>,
    },
    /// Make the new root the root, and let go of the old one.
    Pivot,
    /// Die with the supervisor.
    DieWithParent,
    /// Start a session of its own.
    Session,
    /// Make the terminal the session's.
    ControllingTerminal,
    /// Put standard input, output and error into place.
    Stdio,
    /// Limit a resource.
    Limit {
        /// Which.
        resource: Resource,
        /// To what.
        value: u64,
    },
    /// Leave all supplementary groups.
    LeaveGroups,
    /// Enter the user namespace in which the guest's id is mapped.
    EnterUserNamespace,
    /// Let no file that is executed bring capabilities back.
    BoundCapabilities,
    /// Become the guest's user and group.
    BecomeGuest,
    /// Give up every capability, for good.
    DropCapabilities,
    /// Never gain rights by executing a file.
    NoNewPrivileges,
    /// Let no other process look into this one until it executes the program.
    Undumpable,
    /// Enter the working directory.
    WorkingDirectory(PathBuf),
    /// Restrict by Landlock.
    Landlock(LandlockRules),
    /// Close every descriptor but standard input, output and error.
    CloseDescriptors,
    /// Restrict system calls.
    Seccomp(FilterProfile),
}

impl Step {
    /// Short stable name, for errors and records.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::FirstToGo => "first_to_go",
            Self::MapCaller => "map_caller",
            Self::MapSelf => "map_self",
            Self::LimitInotify(_) => "limit_inotify",
            Self::Hostname(_) => "hostname",
            Self::LoopbackUp => "loopback_up",
            Self::Listen(_) => "listen",
            Self::PrivateMounts => "private_mounts",
            Self::Source { .. } => "source",
            Self::Device { .. } => "device",
            Self::Root => "root",
            Self::Directory(_) => "directory",
            Self::Text { .. } => "text",
            Self::Link { .. } => "link",
            Self::Attach { .. } => "attach",
            Self::Cover { .. } => "cover",
            Self::Scratch { .. } => "scratch",
            Self::Terminals => "terminals",
            Self::Proc => "proc",
            Self::CoverProc => "cover_proc",
            Self::CoverScratch { .. } => "cover_scratch",
            Self::ScratchText { .. } => "scratch_text",
            Self::HideSockets { .. } => "hide_sockets",
            Self::Pivot => "pivot",
            Self::DieWithParent => "die_with_parent",
            Self::Session => "session",
            Self::ControllingTerminal => "controlling_terminal",
            Self::Stdio => "stdio",
            Self::Limit { .. } => "limit",
            Self::LeaveGroups => "leave_groups",
            Self::EnterUserNamespace => "enter_user_namespace",
            Self::BoundCapabilities => "bound_capabilities",
            Self::BecomeGuest => "become_guest",
            Self::DropCapabilities => "drop_capabilities",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::Undumpable => "undumpable",
            Self::WorkingDirectory(_) => "working_directory",
            Self::Landlock(_) => "landlock",
            Self::CloseDescriptors => "close_descriptors",
            Self::Seccomp(_) => "seccomp",
        }
    }
}
