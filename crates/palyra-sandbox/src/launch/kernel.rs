//! The real kernel behind the [`Syscall`] trait.
//!
//! While the new root is filled, it is addressed through its own descriptor and walked one name at a time without following links: a share
//! may hold links that an earlier guest put there, and the set-up may run with more rights than the guest.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};
use rustix::process::{DumpableBehavior, Gid, Pid, Signal, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType};

use super::bpf::BpfProgram;
use super::restrict;
use super::sockets::{self, Search};
use super::syscall::{Execution, MountUse, Standard, Syscall};
use super::wire;
use crate::grant::Owner;
use crate::plan::{InotifyLimits, LandlockRules, Resource};
use crate::report::HiddenSockets;
use crate::sys;

/// The directory of the host over which the new root is mounted until it becomes the root. Nothing below it is ever shared.
const STAGE: &str = "/proc";
/// Files of a private file system; their descriptions take kernel memory that the size does not count.
const SCRATCH_INODES: &str = "131072";

/// Most terminals of a sandbox; the host has a few thousand for everybody.
const TERMINALS: &str = "64";

/// The kernel this runs on.
#[derive(Debug)]
pub(crate) struct Kernel {
    root: Option<OwnedFd>,
    parent: Option<Pid>,
}

impl Kernel {
    /// For a process that was forked just now.
    pub(crate) fn new() -> Self {
        Self { root: None, parent: rustix::process::getppid() }
    }

    fn root(&self) -> io::Result<BorrowedFd<'_>> {
        self.root.as_ref().map(OwnedFd::as_fd).ok_or_else(|| io::Error::other("there is no new root yet"))
    }

    /// Opens a directory of the new root, making what is missing.
    fn directory(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = self.root()?.try_clone_to_owned()?;
        for part in path.components() {
            let Component::Normal(name) = part else {
                return Err(io::Error::other("a path of the new root is not plain"));
            };
            at = match rustix::fs::openat(&at, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => {
                    rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o755))?;
                    rustix::fs::openat(&at, name, flags, Mode::empty())?
                }
                found => found?,
            };
        }
        Ok(at)
    }

    /// The directory that holds a path, and the path's last name.
    fn parent_of<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a std::ffi::OsStr)> {
        let name = path.file_name().ok_or_else(|| io::Error::other("a path of the new root has no name"))?;
        Ok((self.directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Mounts a file system of our own making at a path of the new root.
    fn mount_new(
        &self,
        kind: &str,
        options: &[(&str, String)],
        attributes: MountAttrFlags,
        path: &Path,
    ) -> io::Result<()> {
        let mount = make_mount(kind, options, attributes)?;
        self.attach_at(mount.as_fd(), self.directory(path)?.as_fd())
    }

    fn attach_at(&self, mount: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        Ok(rustix::mount::move_mount(mount, c"", target, c"", flags)?)
    }
}

fn make_mount(kind: &str, options: &[(&str, String)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(context.as_fd(), *key, value.as_str())?;
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn scratch_options(bytes: u64, mode: u32, owner: Option<Owner>) -> Vec<(&'static str, String)> {
    let mut options =
        vec![("size", bytes.to_string()), ("nr_inodes", SCRATCH_INODES.to_owned()), ("mode", format!("{mode:o}"))];
    if let Some(owner) = owner {
        options.push(("uid", owner.uid.to_string()));
        options.push(("gid", owner.gid.to_string()));
    }
    options
}

fn proc_attributes() -> MountAttrFlags {
    safe_attributes() | MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOEXEC
}

fn safe_attributes() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV
}

impl Syscall for Kernel {
    fn first_to_go(&mut self) -> io::Result<()> {
        // The launcher hides itself; a hidden process may not write about itself.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        std::fs::write("/proc/self/oom_score_adj", "1000")
    }

    fn map_caller(&mut self, inside: Owner, outside: Owner) -> io::Result<()> {
        // The launcher hides itself; a hidden process may not write its own maps.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{} {} 1", inside.uid, outside.uid))?;
        std::fs::write("/proc/self/gid_map", format!("{} {} 1", inside.gid, outside.gid))
    }

    fn limit_inotify(&mut self, limits: InotifyLimits) -> io::Result<()> {
        let settings = [("max_inotify_instances", limits.instances), ("max_inotify_watches", limits.watches)];
        for (name, value) in settings {
            match std::fs::write(Path::new("/proc/sys/user").join(name), value.to_string()) {
                // A kernel without inotify has nothing to limit. Containers mount `/proc/sys` read-only; there the limit of the container's user remains.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ReadOnlyFilesystem) => {}
                result => result?,
            }
        }
        Ok(())
    }

    fn set_hostname(&mut self, name: &str) -> io::Result<()> {
        Ok(rustix::system::sethostname(name.as_bytes())?)
    }

    fn loopback_up(&mut self) -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        sys::loopback_up(socket.as_fd())
    }

    fn listen(&mut self, port: u16) -> io::Result<OwnedFd> {
        Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.into())
    }

    fn make_mounts_private(&mut self) -> io::Result<()> {
        let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        Ok(rustix::mount::mount_change("/", flags)?)
    }

    fn open_tree(&mut self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE;
        Ok(rustix::mount::open_tree(&found, c"", flags)?)
    }

    fn restrict_mount(
        &mut self,
        mount: BorrowedFd<'_>,
        usage: MountUse,
        owners: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let attributes = match usage {
            MountUse::ReadOnly => safe_attributes() | MountAttrFlags::MOUNT_ATTR_RDONLY,
            MountUse::ReadWrite => safe_attributes(),
            MountUse::Device => MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        };
        sys::mount_setattr(mount, u64::from(attributes.bits()), owners, sys::Reach::Below)
    }

    fn new_root(&mut self) -> io::Result<()> {
        let options = [("size", "4m".to_owned()), ("mode", "0755".to_owned())];
        let root = make_mount("tmpfs", &options, safe_attributes())?;
        rustix::mount::move_mount(root.as_fd(), c"", CWD, STAGE, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        self.root = Some(root);
        Ok(())
    }

    fn make_directories(&mut self, path: &Path) -> io::Result<()> {
        self.directory(path).map(drop)
    }

    fn write_file(&mut self, path: &Path, content: &str) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o644)) {
            // A mount point inside a share that is mounted already.
            Err(Errno::EXIST) if content.is_empty() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(file) => File::from(file).write_all(content.as_bytes()),
        }
    }

    fn make_link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        Ok(rustix::fs::symlinkat(target, &parent, name)?)
    }

    fn attach(&mut self, mount: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        let (parent, name) = self.parent_of(path)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = rustix::fs::openat(&parent, name, flags, Mode::empty())?;
        self.attach_at(mount, target.as_fd())
    }

    fn cover(&mut self, mount: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let target = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        self.attach_at(mount, target.as_fd())
    }

    fn mount_scratch(&mut self, path: &Path, bytes: u64, mode: u32, owner: Option<Owner>) -> io::Result<()> {
        self.mount_new("tmpfs", &scratch_options(bytes, mode, owner), safe_attributes(), path)
    }

    fn cover_scratch(&mut self, path: &Path, bytes: u64, mode: u32, owner: Option<Owner>) -> io::Result<()> {
        // The supervisor made the directory just now, in a place that no guest may write to.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let mount = make_mount("tmpfs", &scratch_options(bytes, mode, owner), safe_attributes())?;
        self.attach_at(mount.as_fd(), target.as_fd())
    }

    fn write_scratch(&mut self, path: &Path, content: &str, owner: Option<Owner>) -> io::Result<()> {
        // No guest runs yet that could have put a link there.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(0o644))?;
        if let Some(owner) = owner {
            rustix::fs::fchown(&file, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
        }
        File::from(file).write_all(content.as_bytes())
    }

    fn mount_terminals(&mut self, path: &Path) -> io::Result<()> {
        let options = [("mode", "0620".to_owned()), ("ptmxmode", "0666".to_owned()), ("max", TERMINALS.to_owned())];
        // Terminals are devices.
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        self.mount_new("devpts", &options, attributes, path)
    }

    fn mount_proc(&mut self, path: &Path) -> io::Result<()> {
        self.mount_new("proc", &[], proc_attributes(), path)
    }

    fn cover_proc(&mut self) -> io::Result<()> {
        let mount = make_mount("proc", &[], proc_attributes())?;
        self.cover(mount.as_fd(), Path::new("/proc"))
    }

    fn hide_sockets(&mut self, search: Search<'_>) -> io::Result<HiddenSockets> {
        sockets::hide(self.root()?, search)
    }

    fn pivot(&mut self) -> io::Result<()> {
        let root = self.root()?;
        rustix::process::fchdir(root)?;
        rustix::process::pivot_root(".", ".")?;
        // The old root now lies over the new one; letting go of it uncovers the new one.
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
        let attributes = u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits());
        sys::mount_setattr(root, attributes, None, sys::Reach::Top)
    }

    fn die_with_parent(&mut self) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // Asked for too late, the signal never comes.
        if rustix::process::getppid() == self.parent {
            Ok(())
        } else {
            Err(io::Error::other("the supervisor has exited"))
        }
    }

    fn new_session(&mut self) -> io::Result<()> {
        rustix::process::setsid()?;
        Ok(())
    }

    fn take_terminal(&mut self) -> io::Result<()> {
        Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
    }

    fn place_standard(&mut self, which: Standard, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let placed = match which {
            Standard::Input => rustix::stdio::dup2_stdin(descriptor),
            Standard::Output => rustix::stdio::dup2_stdout(descriptor),
            Standard::Error => rustix::stdio::dup2_stderr(descriptor),
        };
        Ok(placed?)
    }

    fn limit(&mut self, resource: Resource, value: u64) -> io::Result<()> {
        restrict::limit(resource, value)
    }

    fn leave_groups(&mut self) -> io::Result<()> {
        Ok(rustix::thread::set_thread_groups(&[])?)
    }

    fn enter_user_namespace(&mut self, namespace: BorrowedFd<'_>) -> io::Result<()> {
        Ok(rustix::thread::move_into_link_name_space(namespace, Some(LinkNameSpaceType::User))?)
    }

    fn bound_capabilities(&mut self) -> io::Result<()> {
        for bit in 0..u64::BITS {
            match rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
                // The kernel knows no capability from here on.
                Err(Errno::INVAL) if bit > 0 => break,
                result => result?,
            }
        }
        Ok(())
    }

    fn become_user(&mut self, owner: Owner) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        Ok(rustix::thread::set_thread_res_uid(uid, uid, uid)?)
    }

    fn drop_capabilities(&mut self) -> io::Result<()> {
        rustix::thread::clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        Ok(rustix::thread::set_capabilities(None, sets)?)
    }

    fn no_new_privileges(&mut self) -> io::Result<()> {
        Ok(rustix::thread::set_no_new_privs(true)?)
    }

    fn undumpable(&mut self) -> io::Result<()> {
        Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
    }

    fn change_directory(&mut self, path: &Path) -> io::Result<()> {
        Ok(rustix::process::chdir(path)?)
    }

    fn landlock(&mut self, rules: &LandlockRules) -> io::Result<()> {
        restrict::landlock(rules)
    }

    fn close_descriptors(&mut self) -> io::Result<()> {
        sys::close_on_exec_from(3)
    }

    fn seccomp(&mut self, program: &BpfProgram, supervisor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        match supervisor {
            None => sys::seccomp(program),
            Some(socket) => wire::send(socket, &(), &[sys::seccomp_with_listener(program)?.as_fd()]),
        }
    }

    fn execute(&mut self, execution: &Execution<'_>) -> io::Error {
        let text = |text: &str| CString::new(text).map_err(io::Error::from);
        let prepare = || -> io::Result<(Vec<CString>, Vec<CString>)> {
            let arguments = std::iter::once(execution.name).chain(execution.arguments.iter().map(String::as_str));
            let variables = execution.environment.iter().map(|(name, value)| text(&format!("{name}={value}")));
            Ok((arguments.map(text).collect::<io::Result<_>>()?, variables.collect::<io::Result<_>>()?))
        };
        let (arguments, environment) = match prepare() {
            Ok(prepared) => prepared,
            Err(error) => return error,
        };
        let mut refused = None;
        for candidate in execution.candidates {
            let error = match CString::new(candidate.as_os_str().as_bytes()) {
                Ok(path) => sys::execute(&path, &arguments, &environment),
                Err(error) => return error.into(),
            };
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT | Errno::NOTDIR) if candidate.symlink_metadata().is_err() => {}
                Some(Errno::NOENT) => return io::Error::other("the interpreter it names was not found"),
                Some(Errno::ACCESS) => refused = Some(error),
                _ => return error,
            }
        }
        refused.unwrap_or_else(|| Errno::NOENT.into())
    }
}
