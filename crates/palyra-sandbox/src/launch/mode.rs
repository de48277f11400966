//! Giving a directory the set-group-id bit on behalf of the guest.
//!
//! On a directory the bit means that files in it inherit its group; on a file it would let whoever executes it on the host do so with the rights of the workspace's
//! owner. The filter cannot tell the two apart, so it hands over each change of a mode that has the bit.
//!
//! INVARIANT: nothing but a directory gets the bit. The target is opened as a directory, and what was opened is what is changed. The guest could change it itself:
//! this process has the guest's user, groups and mounts, and no capabilities. Under a daemon that runs as root the guest is another user, and the filter refuses the
//! call.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::sys::{self, Notification};

/// Longest path, with its final zero.
const LONGEST: usize = 4096;
/// A path is read in pieces that end where pages do, because the next page may not be there.
const PAGE: u64 = 4096;
const OPENED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Changes a mode as the call says, if its target is a directory.
pub(super) fn change(listener: BorrowedFd<'_>, call: Notification) -> io::Result<()> {
    let [first, second, third, fourth, ..] = call.arguments.map(|argument| argument & u64::from(u32::MAX));
    let is = |name: &str| sys::number(name) == Some(call.call);
    let path =
        |at: usize| call.arguments.get(at).map_or(Err(Errno::FAULT.into()), |address| text(call.thread, *address));
    let here = signed(CWD.as_raw_fd());
    let (target, mode) = if is("fchmod") {
        (base(call.thread, first, OPENED)?, second)
    } else if is("chmod") {
        (target(call.thread, here, &path(0)?, AtFlags::empty())?, second)
    } else if is("fchmodat") {
        (target(call.thread, first, &path(1)?, AtFlags::empty())?, third)
    } else if is("fchmodat2") {
        let flags = u32::try_from(fourth).map_err(io::Error::other)?;
        (target(call.thread, first, &path(1)?, AtFlags::from_bits_retain(flags))?, third)
    } else {
        return Err(Errno::NOSYS.into());
    };
    // What was looked at belonged to the caller only if it has been waiting all the time.
    if !sys::still_waits(listener, call.id) {
        return Err(Errno::NOENT.into());
    }
    let mode = Mode::from_raw_mode(u32::try_from(mode).map_err(io::Error::other)?);
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", target.as_raw_fd()), mode)?)
}

fn signed(descriptor: i32) -> u64 {
    u64::from(descriptor.cast_unsigned())
}

/// The directory that a path is relative to, as the caller numbers it.
fn base(thread: u32, descriptor: u64, flags: OFlags) -> io::Result<OwnedFd> {
    let name = if descriptor == signed(CWD.as_raw_fd()) {
        format!("/proc/{thread}/cwd")
    } else {
        format!("/proc/{thread}/fd/{}", u32::try_from(descriptor).map_err(io::Error::other)?)
    };
    match rustix::fs::openat(CWD, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => Err(Errno::BADF.into()),
        Err(Errno::ACCESS) => Err(Errno::PERM.into()),
        result => directory(result),
    }
}

fn target(thread: u32, descriptor: u64, path: &CString, flags: AtFlags) -> io::Result<OwnedFd> {
    let follow = match flags {
        flags if flags.is_empty() => OFlags::empty(),
        AtFlags::SYMLINK_NOFOLLOW => OFlags::NOFOLLOW,
        _ => return Err(Errno::PERM.into()),
    };
    let base = if path.to_bytes().starts_with(b"/") {
        rustix::fs::openat(CWD, "/", OPENED, Mode::empty())?
    } else {
        base(thread, descriptor, OPENED)?
    };
    // Links of `/proc` would lead to what this process has open.
    directory(rustix::fs::openat2(&base, path, OPENED | follow, Mode::empty(), ResolveFlags::NO_MAGICLINKS))
}

/// What is no directory, or cannot be looked at, is refused as it always was.
fn directory(opened: Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
    opened.map_err(|error| if matches!(error, Errno::NOTDIR | Errno::LOOP) { Errno::PERM } else { error }.into())
}

/// A string in the caller's memory.
fn text(thread: u32, address: u64) -> io::Result<CString> {
    let memory = File::open(format!("/proc/{thread}/mem")).map_err(|_| Errno::PERM)?;
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST {
        let at = address.checked_add(bytes.len() as u64).ok_or(Errno::FAULT)?;
        let mut piece = vec![0; usize::try_from(PAGE - at % PAGE).map_err(io::Error::other)?];
        let length = memory.read_at(&mut piece, at).map_err(|_| Errno::FAULT)?;
        piece.truncate(length);
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                bytes.extend_from_slice(piece.get(..end).unwrap_or_default());
                return CString::new(bytes).map_err(io::Error::other);
            }
            None if length == 0 => return Err(Errno::FAULT.into()),
            None => bytes.extend(piece),
        }
    }
    Err(Errno::NAMETOOLONG.into())
}
