//! What the set-up asks of the kernel.
//!
//! The set-up speaks only to this trait, so that its order and each way it can fail are tested with a double, without root and on any
//! kernel. One method is one request with one answer; none decides anything.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use super::bpf::BpfProgram;
use super::sockets::Search;
use crate::grant::Owner;
use crate::plan::{InotifyLimits, LandlockRules, Resource};
use crate::report::HiddenSockets;

/// What is forbidden on a mount, besides setuid files, which always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountUse {
    /// No changes, no devices.
    ReadOnly,
    /// No devices.
    ReadWrite,
    /// A device file: no execution.
    Device,
}

/// What to execute.
#[derive(Debug)]
pub(crate) struct Execution<'a> {
    pub(crate) name: &'a str,
    pub(crate) candidates: &'a [PathBuf],
    pub(crate) arguments: &'a [String],
    pub(crate) environment: &'a [(String, String)],
}

/// One of the three standard descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standard {
    Input,
    Output,
    Error,
}

/// Requests to the kernel.
pub(crate) trait Syscall {
    fn first_to_go(&mut self) -> io::Result<()>;
    fn map_caller(&mut self, inside: Owner, outside: Owner) -> io::Result<()>;
    fn limit_inotify(&mut self, limits: InotifyLimits) -> io::Result<()>;
    fn set_hostname(&mut self, name: &str) -> io::Result<()>;
    fn loopback_up(&mut self) -> io::Result<()>;
    fn listen(&mut self, port: u16) -> io::Result<OwnedFd>;
    fn make_mounts_private(&mut self) -> io::Result<()>;
    fn open_tree(&mut self, path: &Path) -> io::Result<OwnedFd>;
    fn restrict_mount(
        &mut self,
        mount: BorrowedFd<'_>,
        usage: MountUse,
        owners: Option<BorrowedFd<'_>>,
    ) -> io::Result<()>;
    fn new_root(&mut self) -> io::Result<()>;
    fn make_directories(&mut self, path: &Path) -> io::Result<()>;
    fn write_file(&mut self, path: &Path, content: &str) -> io::Result<()>;
    fn make_link(&mut self, path: &Path, target: &Path) -> io::Result<()>;
    fn attach(&mut self, mount: BorrowedFd<'_>, path: &Path) -> io::Result<()>;
    fn cover(&mut self, mount: BorrowedFd<'_>, path: &Path) -> io::Result<()>;
    fn mount_scratch(&mut self, path: &Path, bytes: u64, mode: u32, owner: Option<Owner>) -> io::Result<()>;
    fn mount_terminals(&mut self, path: &Path) -> io::Result<()>;
    fn mount_proc(&mut self, path: &Path) -> io::Result<()>;
    fn cover_scratch(&mut self, path: &Path, bytes: u64, mode: u32, owner: Option<Owner>) -> io::Result<()>;
    fn write_scratch(&mut self, path: &Path, content: &str, owner: Option<Owner>) -> io::Result<()>;
    fn cover_proc(&mut self) -> io::Result<()>;
    fn hide_sockets(&mut self, search: Search<'_>) -> io::Result<HiddenSockets>;
    fn pivot(&mut self) -> io::Result<()>;
    fn die_with_parent(&mut self) -> io::Result<()>;
    fn new_session(&mut self) -> io::Result<()>;
    fn take_terminal(&mut self) -> io::Result<()>;
    fn place_standard(&mut self, which: Standard, descriptor: BorrowedFd<'_>) -> io::Result<()>;
    fn limit(&mut self, resource: Resource, value: u64) -> io::Result<()>;
    fn leave_groups(&mut self) -> io::Result<()>;
    fn enter_user_namespace(&mut self, namespace: BorrowedFd<'_>) -> io::Result<()>;
    fn bound_capabilities(&mut self) -> io::Result<()>;
    fn become_user(&mut self, owner: Owner) -> io::Result<()>;
    fn drop_capabilities(&mut self) -> io::Result<()>;
    fn no_new_privileges(&mut self) -> io::Result<()>;
    fn undumpable(&mut self) -> io::Result<()>;
    fn change_directory(&mut self, path: &Path) -> io::Result<()>;
    fn landlock(&mut self, rules: &LandlockRules) -> io::Result<()>;
    fn close_descriptors(&mut self) -> io::Result<()>;
    /// With a socket, the listener for what the filter hands over is sent there.
    fn seccomp(&mut self, program: &BpfProgram, supervisor: Option<BorrowedFd<'_>>) -> io::Result<()>;
    /// Returns only if nothing could be executed.
    fn execute(&mut self, execution: &Execution<'_>) -> io::Error;
}
