//! A kernel that does nothing but remember what it was asked, and fail where a test wants it to.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use super::bpf::BpfProgram;
use super::sockets::Search;
use super::syscall::{Execution, MountUse, Standard, Syscall};
use crate::grant::Owner;
use crate::plan::{InotifyLimits, LandlockRules, Resource};
use crate::report::HiddenSockets;

/// Remembers every request, in order.
#[derive(Debug, Default)]
pub(crate) struct Double {
    /// What was asked.
    pub(crate) asked: Vec<String>,
    /// Which request fails, counted from 0.
    pub(crate) fails_at: Option<usize>,
    /// With which error; "not permitted" if none is given.
    pub(crate) fails_with: Option<i32>,
}

impl Double {
    fn answer(&mut self, request: String) -> io::Result<()> {
        let number = self.asked.len();
        self.asked.push(request);
        if self.fails_at == Some(number) {
            Err(io::Error::from_raw_os_error(self.fails_with.unwrap_or(1)))
        } else {
            Ok(())
        }
    }

    fn descriptor() -> io::Result<OwnedFd> {
        Ok(std::fs::File::open("/dev/null")?.into())
    }
}

impl Syscall for Double {
    fn first_to_go(&mut self) -> io::Result<()> {
        self.answer("first_to_go".to_owned())
    }

    fn map_caller(&mut self, inside: Owner, outside: Owner) -> io::Result<()> {
        self.answer(format!("map_caller {} {}", inside.uid, outside.uid))
    }

    fn limit_inotify(&mut self, limits: InotifyLimits) -> io::Result<()> {
        self.answer(format!("limit_inotify {} {}", limits.instances, limits.watches))
    }

    fn set_hostname(&mut self, name: &str) -> io::Result<()> {
        self.answer(format!("set_hostname {name}"))
    }

    fn loopback_up(&mut self) -> io::Result<()> {
        self.answer("loopback_up".to_owned())
    }

    fn listen(&mut self, port: u16) -> io::Result<OwnedFd> {
        self.answer(format!("listen {port}"))?;
        Self::descriptor()
    }

    fn make_mounts_private(&mut self) -> io::Result<()> {
        self.answer("make_mounts_private".to_owned())
    }

    fn open_tree(&mut self, path: &Path) -> io::Result<OwnedFd> {
        self.answer(format!("open_tree {}", path.display()))?;
        Self::descriptor()
    }

    fn restrict_mount(
        &mut self,
        _mount: BorrowedFd<'_>,
        usage: MountUse,
        owners: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let owners = if owners.is_some() { " mapped" } else { "" };
        self.answer(format!("restrict_mount {usage:?}{owners}"))
    }

    fn new_root(&mut self) -> io::Result<()> {
        self.answer("new_root".to_owned())
    }

    fn make_directories(&mut self, path: &Path) -> io::Result<()> {
        self.answer(format!("make_directories {}", path.display()))
    }

    fn write_file(&mut self, path: &Path, content: &str) -> io::Result<()> {
        self.answer(format!("write_file {} {}", path.display(), content.len()))
    }

    fn make_link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        self.answer(format!("make_link {} {}", path.display(), target.display()))
    }

    fn attach(&mut self, _mount: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        self.answer(format!("attach {}", path.display()))
    }

    fn cover(&mut self, _mount: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        self.answer(format!("cover {}", path.display()))
    }

    fn mount_scratch(&mut self, path: &Path, bytes: u64, mode: u32, owner: Option<Owner>) -> io::Result<()> {
        let owner = owner.map_or(String::new(), |owner| format!(" for {}", owner.uid));
        self.answer(format!("mount_scratch {} {bytes} {mode:o}{owner}", path.display()))
    }

    fn mount_terminals(&mut self, path: &Path) -> io::Result<()> {
        self.answer(format!("mount_terminals {}", path.display()))
    }

    fn mount_proc(&mut self, path: &Path) -> io::Result<()> {
        self.answer(format!("mount_proc {}", path.display()))
    }

    fn cover_scratch(&mut self, path: &Path, bytes: u64, mode: u32, owner: Option<Owner>) -> io::Result<()> {
        let owner = owner.map_or(String::new(), |owner| format!(" for {}", owner.uid));
        self.answer(format!("cover_scratch {} {bytes} {mode:o}{owner}", path.display()))
    }

    fn write_scratch(&mut self, path: &Path, content: &str, owner: Option<Owner>) -> io::Result<()> {
        let owner = owner.map_or(String::new(), |owner| format!(" for {}", owner.uid));
        self.answer(format!("write_scratch {} {}{owner}", path.display(), content.len()))
    }

    fn cover_proc(&mut self) -> io::Result<()> {
        self.answer("cover_proc".to_owned())
    }

    fn hide_sockets(&mut self, search: Search<'_>) -> io::Result<HiddenSockets> {
        self.answer(format!("hide_sockets {} {}", search.writable.len(), search.read_only.len()))?;
        Ok(HiddenSockets::default())
    }

    fn pivot(&mut self) -> io::Result<()> {
        self.answer("pivot".to_owned())
    }

    fn die_with_parent(&mut self) -> io::Result<()> {
        self.answer("die_with_parent".to_owned())
    }

    fn new_session(&mut self) -> io::Result<()> {
        self.answer("new_session".to_owned())
    }

    fn take_terminal(&mut self) -> io::Result<()> {
        self.answer("take_terminal".to_owned())
    }

    fn place_standard(&mut self, which: Standard, _descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.answer(format!("place_standard {which:?}"))
    }

    fn limit(&mut self, resource: Resource, value: u64) -> io::Result<()> {
        self.answer(format!("limit {resource} {value}"))
    }

    fn leave_groups(&mut self) -> io::Result<()> {
        self.answer("leave_groups".to_owned())
    }

    fn enter_user_namespace(&mut self, _namespace: BorrowedFd<'_>) -> io::Result<()> {
        self.answer("enter_user_namespace".to_owned())
    }

    fn bound_capabilities(&mut self) -> io::Result<()> {
        self.answer("bound_capabilities".to_owned())
    }

    fn become_user(&mut self, owner: Owner) -> io::Result<()> {
        self.answer(format!("become_user {}", owner.uid))
    }

    fn drop_capabilities(&mut self) -> io::Result<()> {
        self.answer("drop_capabilities".to_owned())
    }

    fn no_new_privileges(&mut self) -> io::Result<()> {
        self.answer("no_new_privileges".to_owned())
    }

    fn undumpable(&mut self) -> io::Result<()> {
        self.answer("undumpable".to_owned())
    }

    fn change_directory(&mut self, path: &Path) -> io::Result<()> {
        self.answer(format!("change_directory {}", path.display()))
    }

    fn landlock(&mut self, rules: &LandlockRules) -> io::Result<()> {
        self.answer(format!("landlock {} rules", rules.paths.len()))
    }

    fn close_descriptors(&mut self) -> io::Result<()> {
        self.answer("close_descriptors".to_owned())
    }

    fn seccomp(&mut self, program: &BpfProgram, supervisor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        assert!(!program.is_empty());
        self.answer(if supervisor.is_some() { "seccomp supervised" } else { "seccomp" }.to_owned())
    }

    fn execute(&mut self, execution: &Execution<'_>) -> io::Error {
        self.asked.push(format!("execute {}", execution.name));
        io::Error::from_raw_os_error(2)
    }
}
