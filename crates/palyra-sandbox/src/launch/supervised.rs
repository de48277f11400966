//! The calls that the sandbox's first process makes for the guest.
//!
//! The guest's filter hands them over, and the guest waits until they are answered. There is no thread for this: the first process waits for them along with
//! everything else. When it ends, so does the guest, and no call stays without an answer.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;

use super::memory_files::MemoryFiles;
use super::mode;
use super::wire;
use crate::sys::{self, CloseOnExec, Notification};

/// Where calls come from.
#[derive(Debug)]
enum Source {
    /// The socket over which the guest sends the listener of its filter.
    Promised(OwnedFd),
    Listener(OwnedFd),
    /// No process has the filter any more, or it was never installed.
    Closed,
}

/// The calls of one sandbox, and what they made.
#[derive(Debug)]
pub(super) struct SupervisedCalls {
    source: Source,
    pub(super) memory_files: MemoryFiles,
}

impl SupervisedCalls {
    pub(super) fn promised(socket: OwnedFd) -> Self {
        Self { source: Source::Promised(socket), memory_files: MemoryFiles::default() }
    }

    /// What becomes readable when there is something to do.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Promised(fd) | Source::Listener(fd) => Some(fd.as_fd()),
            Source::Closed => None,
        }
    }

    /// Does what there is to do, given what the descriptor is ready for.
    pub(super) fn serve(&mut self, ready: PollFlags) {
        match &self.source {
            Source::Promised(socket) if !ready.is_empty() => {
                let received = wire::receive::<()>(socket.as_fd()).ok().flatten();
                let listener = received.and_then(|received| received.attached.into_iter().next());
                self.source = listener.map_or(Source::Closed, Source::Listener);
            }
            Source::Listener(listener) if ready.contains(PollFlags::IN) => {
                // A caller that was killed meanwhile wants no answer.
                if let Ok(Some(call)) = sys::receive_notification(listener.as_fd()) {
                    let _ = answer(listener.as_fd(), call, &mut self.memory_files);
                }
            }
            Source::Listener(_) if !ready.is_empty() => self.source = Source::Closed,
            _ => {}
        }
    }
}

fn answer(listener: BorrowedFd<'_>, call: Notification, memory_files: &mut MemoryFiles) -> io::Result<()> {
    let made = if sys::number("memfd_create") == Some(call.call) {
        create_memory_file(listener, call, memory_files)
    } else {
        mode::change(listener, call).map(|()| 0)
    };
    let answer = made.map_err(|error| error.raw_os_error().unwrap_or(Errno::NOSYS.raw_os_error()));
    sys::answer_notification(listener, call.id, answer)
}

/// Our own descriptor is closed before the guest goes on: it would find the file open for writing and could not execute it.
fn create_memory_file(listener: BorrowedFd<'_>, call: Notification, memory_files: &mut MemoryFiles) -> io::Result<i64> {
    let [_, flags, ..] = call.arguments;
    // The kernel reads the low half alone.
    let flags = u32::try_from(flags & u64::from(u32::MAX)).map_err(io::Error::other)?;
    let file = memory_files.create(flags)?;
    let close_on_exec = if flags & MemfdFlags::CLOEXEC.bits() == 0 { CloseOnExec::No } else { CloseOnExec::Yes };
    sys::add_descriptor(listener, call.id, file.as_fd(), close_on_exec)
}
