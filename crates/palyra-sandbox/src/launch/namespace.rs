//! User namespaces made ahead of a start and kept by a supervisor.
//!
//! A daemon that runs as root gives each running sandbox an id of its own, from a range that no distribution hands out. Two kinds of
//! namespaces belong to such an id: the one the guest lives in, and one per owner of a shared place, which serves only as the map of a
//! mount: files of that owner appear as the guest's, and files that the guest makes belong to that owner.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::kernel::Kernel;
use super::syscall::Syscall as _;
use crate::grant::Owner;
use crate::plan::{GUEST_GROUP, GUEST_USER, GuestIdentity, INOTIFY, Plan, Step};
use crate::report::Exit;
use crate::sys::{self, Forked, Patience};

/// First private id. From 1879048192 to 2147483647 nothing is assigned by any known convention.
const FIRST_ID: u32 = 0x7000_0000;
/// How many private ids there are.
const IDS: u32 = 1 << 24;
/// How many ids are tried for a start. Other launchers hold some; that this many are held is a sign of something else.
const ATTEMPTS: u32 = 65_536;

/// A private id, both of user and group, that no other sandbox on this host uses while this is held.
#[derive(Debug)]
struct PrivateId {
    owner: Owner,
    _claim: OwnedFd,
}

/// A supervisor's stock: its private id and the namespaces that belong to it. All are made when first needed and kept.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    id: Option<PrivateId>,
    guest: Option<OwnedFd>,
    owners: BTreeMap<Owner, OwnedFd>,
}

/// What one start takes from the stock.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) host_ids: Owner,
    pub(crate) user_namespace: Option<OwnedFd>,
    pub(crate) owners: BTreeMap<Owner, OwnedFd>,
}

impl Namespaces {
    /// What a plan needs.
    pub(crate) fn take(&mut self, plan: &Plan) -> io::Result<Taken> {
        if let GuestIdentity::Caller { uid, gid } = plan.identity {
            return Ok(Taken { host_ids: Owner { uid, gid }, user_namespace: None, owners: BTreeMap::new() });
        }
        let id = match self.id.take() {
            Some(id) => id,
            None => claim_any()?,
        };
        let host_ids = self.id.insert(id).owner;
        let entered = if plan.guest.contains(&Step::EnterUserNamespace) {
            let inside = Owner { uid: GUEST_USER, gid: GUEST_GROUP };
            Some(copy_or_make(&mut self.guest, || {
                user_namespace(inside, host_ids, || Kernel::new().limit_inotify(INOTIFY))
            })?)
        } else {
            None
        };
        let mut owners = BTreeMap::new();
        for step in &plan.room {
            let Step::Source { mapped: Some(owner), .. } = step else { continue };
            let mut known = self.owners.remove(owner);
            let copy = copy_or_make(&mut known, || user_namespace(*owner, host_ids, || Ok(())))?;
            self.owners.extend(known.map(|known| (*owner, known)));
            owners.insert(*owner, copy);
        }
        Ok(Taken { host_ids, user_namespace: entered, owners })
    }
}

fn copy_or_make(kept: &mut Option<OwnedFd>, make: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let made = match kept.take() {
        Some(known) => known,
        None => make()?,
    };
    kept.insert(made).try_clone()
}

/// Claims an id. Supervisors begin at different places, so that they seldom meet.
fn claim_any() -> io::Result<PrivateId> {
    let first = std::process::id().wrapping_mul(64);
    for attempt in 0..ATTEMPTS {
        let id = FIRST_ID.saturating_add(first.wrapping_add(attempt) % IDS);
        match claim(id) {
            Ok(claim) => return Ok(PrivateId { owner: Owner { uid: id, gid: id }, _claim: claim }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no private id is free"))
}

/// An abstract socket is a lock by name that the kernel releases when its holder dies. Without it, two daemons could give one id to two
/// sandboxes, and ending the one would kill the other.
fn claim(id: u32) -> io::Result<OwnedFd> {
    let address = SocketAddr::from_abstract_name(format!("palyra-sandbox-id-{id}"))?;
    Ok(UnixDatagram::bind_addr(&address)?.into())
}

/// Makes a user namespace with one mapped user and group; `configure` runs inside it, with every capability that it gives.
pub(crate) fn user_namespace(
    inside: Owner,
    outside: Owner,
    configure: impl FnOnce() -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let (hold, keep) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let namespaces = u64::from(linux_flag::NEWUSER);
    match sys::fork(namespaces)? {
        Forked::Child => {
            drop(keep);
            // Goes on when the parent has written the maps and lets go of the pipe, or dies.
            let _ = File::from(hold).read(&mut [0]);
            sys::exit(configure().map_or_else(|error| error.raw_os_error().unwrap_or(1), |()| 0))
        }
        Forked::Parent(pid) => {
            let make = || -> io::Result<OwnedFd> {
                let process = format!("/proc/{}", pid.as_raw_nonzero());
                std::fs::write(format!("{process}/uid_map"), format!("{} {} 1", inside.uid, outside.uid))?;
                std::fs::write(format!("{process}/gid_map"), format!("{} {} 1", inside.gid, outside.gid))?;
                Ok(File::open(format!("{process}/ns/user"))?.into())
            };
            let made = make();
            drop(keep);
            let ended = sys::wait4(Some(pid), Patience::Block)?;
            match ended.map(|waited| Exit::from_raw(waited.status)) {
                Some(Exit::Code(0)) => made,
                Some(Exit::Code(errno)) => made.and(Err(io::Error::from_raw_os_error(errno))),
                _ => made.and(Err(io::Error::other("the process that configured the user namespace was killed"))),
            }
        }
    }
}

/// Flags of `clone`, as the kernel numbers them.
pub(crate) mod linux_flag {
    pub(crate) const NEWNS: u32 = 0x0002_0000;
    pub(crate) const NEWUTS: u32 = 0x0400_0000;
    pub(crate) const NEWIPC: u32 = 0x0800_0000;
    pub(crate) const NEWUSER: u32 = 0x1000_0000;
    pub(crate) const NEWPID: u32 = 0x2000_0000;
    pub(crate) const NEWNET: u32 = 0x4000_0000;
}
