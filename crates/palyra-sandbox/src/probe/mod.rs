//! Live probes of the host: each is a real attempt in a process that is thrown away.
//!
//! Runs in a launcher process, which has a single thread, so that forking is sound. Nothing is concluded from version numbers or settings;
//! settings are only noted, to explain a failure.

mod cgroup;
mod files;

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::pipe::PipeFlags;

use crate::grant::{Access, Owner, PlaceKind};
use crate::host::{Ability, HostFacts, Privilege};
use crate::launch::{Context, Failure, Kernel, Syscall as _, carry_out, compile, linux_flag, user_namespace};
use crate::plan::{FilterProfile, GuestIdentity, MemoryFiles, SetGroupId, Sockets, Step};
use crate::sys::{self, Forked, Patience};

/// An id that certainly is not the caller's, to see whether ids can be mapped at will.
const FOREIGN: Owner = Owner { uid: 0x7000_0000, gid: 0x7000_0000 };

/// A filter that works by itself.
const PLAIN: FilterProfile =
    FilterProfile { sockets: Sockets::Isolated, memory_files: MemoryFiles::None, set_group_id: SetGroupId::Nothing };

/// Probes everything.
pub(crate) fn facts() -> io::Result<HostFacts> {
    let uname = rustix::system::uname();
    let own = Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
    let privilege =
        if own.uid == 0 && privileged() { Privilege::Root } else { Privilege::Ordinary { uid: own.uid, gid: own.gid } };
    let cgroups = cgroup::probe();
    let mut notes = files::notes();
    notes.extend(cgroup::note(&cgroups, privilege, |manager| manager.exists()));
    Ok(HostFacts {
        kernel: uname.release().to_string_lossy().into_owned(),
        machine: uname.machine().to_string_lossy().into_owned(),
        privilege,
        user_namespace: user(privilege, own),
        isolation: isolation(privilege, own),
        mapped_mounts: mapped_mounts(privilege),
        landlock: sys::landlock_version(),
        seccomp: seccomp(),
        cgroups,
        system: files::system(),
        notes,
    })
}

/// Whether we may map ids that are not ours and make namespaces without a user namespace.
fn privileged() -> bool {
    user_namespace(Owner { uid: 1000, gid: 1000 }, FOREIGN, || Ok(())).is_ok()
        && in_child(u64::from(linux_flag::NEWNS), || Kernel::new().make_mounts_private()).works()
}

fn user(privilege: Privilege, own: Owner) -> Ability {
    match privilege {
        Privilege::Root => match user_namespace(Owner { uid: 1000, gid: 1000 }, FOREIGN, || Ok(())) {
            Ok(_) => Ability::Works,
            Err(error) => Ability::Fails(error.to_string()),
        },
        Privilege::Ordinary { .. } => {
            in_child(u64::from(linux_flag::NEWUSER), || Kernel::new().map_caller(Owner { uid: 1000, gid: 1000 }, own))
        }
    }
}

/// The whole of tier C's room, in small.
fn isolation(privilege: Privilege, own: Owner) -> Ability {
    let (identity, extra) = match privilege {
        Privilege::Root => (GuestIdentity::Private, 0),
        Privilege::Ordinary { uid, gid } => (GuestIdentity::Caller { uid, gid }, linux_flag::NEWUSER),
    };
    let namespaces =
        linux_flag::NEWNS | linux_flag::NEWPID | linux_flag::NEWNET | linux_flag::NEWIPC | linux_flag::NEWUTS | extra;
    let mut steps = Vec::new();
    if extra != 0 {
        steps.push(Step::MapCaller);
    }
    steps.extend([
        Step::Hostname("sandbox".to_owned()),
        Step::LoopbackUp,
        Step::PrivateMounts,
        Step::Source { slot: 0, path: "/usr".into(), access: Access::ReadOnly, mapped: None },
        Step::Device { slot: 1, path: "/dev/null".into() },
        Step::Root,
        Step::Attach { slot: 0, path: "/usr".into(), kind: PlaceKind::Directory },
        Step::Attach { slot: 1, path: "/dev/null".into(), kind: PlaceKind::File },
        Step::Scratch { path: "/tmp".into(), bytes: 1 << 20, mode: 0o1777 },
        Step::Terminals,
        Step::Proc,
        Step::Pivot,
        Step::BoundCapabilities,
        Step::DropCapabilities,
    ]);
    in_child(u64::from(namespaces), || {
        let mut context = Context::bare(own, Arc::default());
        carry_out(&steps, identity, &mut context, &mut Kernel::new()).map_err(|failure| describe(&failure))
    })
}

fn describe(failure: &Failure) -> io::Error {
    io::Error::other(format!("{} {}: {}", failure.step, failure.subject, failure.reason))
}

fn mapped_mounts(privilege: Privilege) -> Ability {
    if privilege != Privilege::Root {
        return Ability::Fails("only root may map owners".to_owned());
    }
    in_child(u64::from(linux_flag::NEWNS), || {
        let mut kernel = Kernel::new();
        let owners = user_namespace(Owner { uid: 0, gid: 0 }, FOREIGN, || Ok(()))?;
        kernel.make_mounts_private()?;
        let tree = kernel.open_tree(&std::env::temp_dir().canonicalize()?)?;
        sys::mount_setattr(tree.as_fd(), 0, Some(owners.as_fd()), sys::Reach::Top)
    })
}

fn seccomp() -> Ability {
    let compiled = match compile(PLAIN) {
        Ok(compiled) => compiled,
        Err(error) => return Ability::Fails(error.to_string()),
    };
    in_child(0, || {
        let mut kernel = Kernel::new();
        kernel.no_new_privileges()?;
        kernel.seccomp(&compiled, None)?;
        // A call that must be refused now, to see that the filter is in force.
        match fs::File::open("/dev/null") {
            Ok(_) if rustix::system::sethostname(b"").err() == Some(rustix::io::Errno::PERM) => Ok(()),
            Ok(_) => Err(io::Error::other("the filter was installed but has no effect")),
            Err(error) => Err(error),
        }
    })
}

/// Runs an attempt in a process of its own.
fn in_child(namespaces: u64, attempt: impl FnOnce() -> io::Result<()>) -> Ability {
    let tried = || -> io::Result<Ability> {
        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        match sys::fork(namespaces)? {
            Forked::Child => {
                drop(read);
                let code = match attempt() {
                    Ok(()) => 0,
                    Err(error) => {
                        let _ = File::from(write).write_all(error.to_string().as_bytes());
                        1
                    }
                };
                sys::exit(code)
            }
            Forked::Parent(pid) => {
                drop(write);
                let mut reason = String::new();
                File::from(read).read_to_string(&mut reason)?;
                match sys::wait4(Some(pid), Patience::Block)? {
                    Some(waited) if waited.status == 0 => Ok(Ability::Works),
                    _ if reason.is_empty() => Ok(Ability::Fails("the probe process died".to_owned())),
                    _ => Ok(Ability::Fails(reason)),
                }
            }
        }
    };
    tried().unwrap_or_else(|error| Ability::Fails(error.to_string()))
}
