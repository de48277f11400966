//! The few calls of the kernel that no library offers in a safe form.
//!
//! All `unsafe` of this crate is here, one block per function, each with its reason. Nothing here decides anything.

mod calls;
mod notification;

use std::ffi::{CStr, CString};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

pub(crate) use calls::number;
pub(crate) use notification::{
    CloseOnExec, Notification, add_descriptor, answer_notification, is_the_only_opening, receive_notification,
    seccomp_with_listener, still_waits,
};

/// Which side of a fork this is.
pub(crate) enum Forked {
    /// The one that asked, with the id of the new process.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks, with the new process in new namespaces as the flags say.
///
/// The process must have a single thread, which holds for the launcher and everything it forks; then the child may run any code.
#[expect(unsafe_code, reason = "no library offers fork in a safe form, because most processes have threads")]
pub(crate) fn fork(namespaces: u64) -> io::Result<Forked> {
    // SAFETY: an all-zero `clone_args` is valid. Without CLONE_VM the child gets a copy of the address space and continues after this call
    // like a forked process. No other thread exists that could hold a lock (see `single_threaded`, which the launcher checks at its start).
    let result = unsafe {
        let mut arguments: libc::clone_args = std::mem::zeroed();
        arguments.flags = namespaces;
        arguments.exit_signal = libc::SIGCHLD as u64;
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
    };
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .map(Forked::Parent)
            .ok_or_else(|| io::Error::other("the kernel returned an impossible process id")),
    }
}

/// Ends this process at once, without the exit handlers of the one it was forked from.
#[expect(unsafe_code, reason = "ending without exit handlers has no safe form")]
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: the process ends here; nothing is left that could observe skipped handlers.
    unsafe { libc::_exit(code) }
}

/// Executes a program with default signal handling; returns only the error.
#[expect(unsafe_code, reason = "the standard library hands files without a format to a shell, which nobody asked for")]
pub(crate) fn execute(path: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both lists end with a null pointer and point to strings that live through the call; resetting a signal and the mask touches
    // no memory but the set on the stack, which is initialised before use.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
    }
    io::Error::last_os_error()
}

/// Whether this process has exactly one thread.
pub(crate) fn single_threaded() -> io::Result<bool> {
    Ok(std::fs::read_dir("/proc/self/task")?.count() == 1)
}

/// What a finished process used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    /// Processor time, with that of the descendants it waited for.
    pub(crate) cpu: Duration,
    /// Largest resident size of one process, in bytes.
    pub(crate) largest: u64,
}

/// How a finished process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waited {
    /// Which process.
    pub(crate) pid: Pid,
    /// Its raw status.
    pub(crate) status: i32,
    /// What it used.
    pub(crate) used: Used,
}

/// Whether to wait for a process that still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Wait.
    Block,
    /// Return at once.
    Poll,
}

/// Reaps a child (any, if none is named); `None` if there is nothing to reap now.
#[expect(unsafe_code, reason = "waiting with resource usage has no safe form")]
pub(crate) fn wait4(child: Option<Pid>, patience: Patience) -> io::Result<Option<Waited>> {
    let options = match patience {
        Patience::Block => 0,
        Patience::Poll => libc::WNOHANG,
    };
    let wanted = child.map_or(-1, |pid| pid.as_raw_nonzero().get());
    let mut status = 0;
    // SAFETY: an all-zero `rusage` is valid; both pointers are to live locals.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let result = libc::wait4(wanted, &raw mut status, options, &raw mut usage);
        (result, usage)
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ECHILD) { Ok(None) } else { Err(error) };
    }
    let time = |value: libc::timeval| {
        Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(value.tv_usec).unwrap_or(0))
    };
    let used = Used {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        largest: u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
    };
    Ok(Pid::from_raw(result).map(|pid| Waited { pid, status, used }))
}

/// A descriptor that becomes readable when a child has ended; the signal itself is blocked from here on, and so is the one that would kill this process when
/// somebody opens a file for which it has a lease.
#[expect(unsafe_code, reason = "neither blocking a signal nor its descriptor has a safe form")]
pub(crate) fn child_events() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero set is valid and initialised before use, the pointers live through the calls, and the new descriptor has no other owner.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let mut blocked = set;
        libc::sigaddset(&raw mut blocked, libc::SIGIO);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const blocked, std::ptr::null_mut());
        match libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(OwnedFd::from_raw_fd(descriptor)),
        }
    }
}

/// Which mounts are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The mount alone.
    Top,
    /// The mount and those below it.
    Below,
}

/// Sets attributes of a mount; owners are mapped as in the given user namespace.
#[expect(unsafe_code, reason = "mount_setattr is in no library")]
pub(crate) fn mount_setattr(
    mount: BorrowedFd<'_>,
    attributes: u64,
    owners: Option<BorrowedFd<'_>>,
    reach: Reach,
) -> io::Result<()> {
    let flags = match reach {
        Reach::Top => libc::AT_EMPTY_PATH,
        Reach::Below => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    // SAFETY: an all-zero `mount_attr` is valid; the path is a static C string and the pointers live through the call.
    let result = unsafe {
        let mut attr: libc::mount_attr = std::mem::zeroed();
        attr.attr_set = attributes;
        if let Some(owners) = owners {
            attr.attr_set |= libc::MOUNT_ATTR_IDMAP;
            attr.userns_fd = u64::try_from(owners.as_raw_fd()).unwrap_or(u64::MAX);
        }
        let size = size_of::<libc::mount_attr>();
        libc::syscall(libc::SYS_mount_setattr, mount.as_raw_fd(), c"".as_ptr(), flags, &raw const attr, size)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes every descriptor from `first` on.
#[expect(unsafe_code, reason = "closing descriptors by number can pull them from under their owners")]
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: called only at the start of the launcher, when nothing but standard input is owned, and right before a guest's program or
    // checks replace this one, when no owner of a descriptor runs again.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Marks every descriptor from `first` on to be closed when a program is executed.
///
/// # Errors
/// When the kernel refuses.
#[expect(unsafe_code, reason = "close_range is in no library")]
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: sets a flag on descriptors and touches no memory.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the loopback of this network namespace up; the socket is any internet socket of the namespace.
#[expect(unsafe_code, reason = "the request to set interface flags is in no library")]
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: an all-zero `ifreq` is valid, the name fits with its final zero, and the pointer lives through the calls.
    let result = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Limits the bytes this user may hold in message queues, never above what was the limit before.
#[expect(unsafe_code, reason = "rustix has no name for this resource")]
pub(crate) fn limit_queues(bytes: u64) -> io::Result<()> {
    // SAFETY: an all-zero `rlimit` is valid, the pointers are to live locals.
    let result = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        let read = libc::getrlimit(libc::RLIMIT_MSGQUEUE, &raw mut limit);
        let value = bytes.min(limit.rlim_max);
        let new = libc::rlimit { rlim_cur: value, rlim_max: value };
        if read == 0 { libc::setrlimit(libc::RLIMIT_MSGQUEUE, &raw const new) } else { read }
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One instruction of a filter: code, jumps if true and if false, value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) if_true: u8,
    pub(crate) if_false: u8,
    pub(crate) value: u32,
}

fn kernel_program(program: &[Instruction]) -> Vec<libc::sock_filter> {
    let instruction =
        |one: &Instruction| libc::sock_filter { code: one.code, jt: one.if_true, jf: one.if_false, k: one.value };
    program.iter().map(instruction).collect()
}

/// Restricts the system calls of this process and its descendants.
#[expect(unsafe_code, reason = "installing a filter passes a pointer to it")]
pub(crate) fn seccomp(program: &[Instruction]) -> io::Result<()> {
    let mut filter = kernel_program(program);
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::other("the filter is too long"))?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    // SAFETY: the program points to `length` instructions that live through the call; the kernel copies and checks them.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The version of Landlock, 0 if the kernel has none.
#[expect(unsafe_code, reason = "the library does not tell the version")]
pub(crate) fn landlock_version() -> u32 {
    const CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no memory from us and returns a number.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, CREATE_RULESET_VERSION)
    };
    u32::try_from(result).unwrap_or(0)
}

/// Sends a signal to everything this user may signal.
#[expect(unsafe_code, reason = "signalling everyone has no safe form")]
pub(crate) fn kill_everyone() {
    // SAFETY: touches no memory. Called only in a process that has just become a sandbox's private user, so that it reaches that
    // sandbox alone.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Makes one system call with plain numbers and returns the error it failed with, if it did. For the checks from inside a sandbox.
#[expect(unsafe_code, reason = "the checks make calls that no library offers, because nothing should make them")]
pub(crate) fn attempt(number: i64, arguments: [usize; 6]) -> Result<i64, i32> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: callers pass null pointers, or pointers to live buffers that the kernel only reads or that are large enough for what the
    // named call writes.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { Ok(result) }
}
