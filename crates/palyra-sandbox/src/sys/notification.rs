//! Calls that a filter hands to another process: seccomp's user notification.
//!
//! The caller waits in the kernel until it is answered, is killed, or nobody holds the listener any more; then its call fails with "no such call".

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use super::{Instruction, kernel_program};

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notification {
    /// By which the answer names it.
    pub(crate) id: u64,
    /// The thread that made it, as the listener's process numbers it.
    pub(crate) thread: u32,
    /// The number of the call.
    pub(crate) call: i64,
    /// Its arguments, as they are in the registers.
    pub(crate) arguments: [u64; 6],
}

/// Whether a descriptor is closed when a program is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseOnExec {
    Yes,
    No,
}

/// Restricts the system calls of this process and its descendants; what the filter hands over is read from the descriptor, which does not survive executing
/// a program.
#[expect(unsafe_code, reason = "installing a filter passes a pointer to it and makes a descriptor")]
pub(crate) fn seccomp_with_listener(program: &[Instruction]) -> io::Result<OwnedFd> {
    let mut filter = kernel_program(program);
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::other("the filter is too long"))?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    // From Linux 5.19 on, a caller whose call was read can be killed but not interrupted, so that no call is carried out twice.
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let mut result = -1;
    for flags in [listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listener] {
        // SAFETY: the program points to `length` instructions that live through the call; the kernel copies and checks them.
        result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
        if result != -1 {
            break;
        }
    }
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    let descriptor = i32::try_from(result).map_err(io::Error::other)?;
    // SAFETY: the kernel has returned a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// The next call that waits; `None` if its caller is gone already. Blocks unless the listener is readable.
#[expect(unsafe_code, reason = "the requests of a listener are in no library")]
pub(crate) fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    // SAFETY: an all-zero notification is valid and what the kernel asks for; the pointer is to a live local of the size that the request names.
    let (result, received) = unsafe {
        let mut received: libc::seccomp_notif = std::mem::zeroed();
        let result = libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &raw mut received);
        (result, received)
    };
    if result == 0 {
        let (id, call) = (received.id, i64::from(received.data.nr));
        return Ok(Some(Notification { id, thread: received.pid, call, arguments: received.data.args }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOENT) { Ok(None) } else { Err(error) }
}

/// Whether the caller still waits, so that its number is still its own.
#[expect(unsafe_code, reason = "the requests of a listener are in no library")]
pub(crate) fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads a live local of the size that the request names.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &raw const id) == 0 }
}

/// Lets a call return a value, or fail with an error number.
#[expect(unsafe_code, reason = "the requests of a listener are in no library")]
pub(crate) fn answer_notification(listener: BorrowedFd<'_>, id: u64, answer: Result<i64, i32>) -> io::Result<()> {
    let (val, error) = answer.map_or_else(|errno| (0, errno.saturating_neg()), |value| (value, 0));
    let answer = libc::seccomp_notif_resp { id, val, error, flags: 0 };
    // SAFETY: the kernel reads a live local of the size that the request names.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &raw const answer) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives a caller that still waits a copy of a descriptor, and returns its number there.
#[expect(unsafe_code, reason = "the requests of a listener are in no library")]
pub(crate) fn add_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: CloseOnExec,
) -> io::Result<i64> {
    let flags = match close_on_exec {
        CloseOnExec::Yes => libc::O_CLOEXEC,
        CloseOnExec::No => 0,
    };
    let added = libc::seccomp_notif_addfd {
        id,
        flags: 0,
        srcfd: u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?,
        newfd: 0,
        newfd_flags: u32::try_from(flags).map_err(io::Error::other)?,
    };
    // SAFETY: the kernel reads a live local of the size that the request names.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD as _, &raw const added) };
    if result >= 0 { Ok(result.into()) } else { Err(io::Error::last_os_error()) }
}

/// Whether nobody but the given descriptor has its file open or mapped, also not in a socket's queue. Descriptors that only name the file do not count.
///
/// The kernel answers by granting a lease, which is given back at once.
#[expect(unsafe_code, reason = "leases are in no library")]
pub(crate) fn is_the_only_opening(read_only: BorrowedFd<'_>) -> bool {
    // SAFETY: the requests take plain numbers.
    unsafe {
        let granted = libc::fcntl(read_only.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0;
        granted && libc::fcntl(read_only.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) == 0
    }
}
