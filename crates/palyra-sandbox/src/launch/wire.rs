//! Messages between daemon, launcher and supervisors: small JSON texts with descriptors attached, over sequenced packet sockets.
//!
//! A plan can be larger than a packet, so it travels in a memory file whose descriptor is attached.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Seek as _, SeekFrom, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::setup::Failure;
use crate::report::{EndCause, HiddenSockets};

/// Longest message; failures carry a path and a reason.
const LONGEST: usize = 64 * 1024;
/// Most descriptors in one message.
const MOST_DESCRIPTORS: usize = 64;

/// From a supervisor to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// The program was executed; the proxy's listeners are attached.
    Started {
        /// The guest's process, as the host numbers it.
        pid: i32,
        /// Sockets of the host that are out of its reach.
        hidden: HiddenSockets,
    },
    /// Nothing was executed.
    Failed(Failure),
    /// The whole tree is gone.
    Ended(Ending),
}

/// How a tree ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// Raw status of the guest's first process; `None` if it was not learnt.
    pub(crate) status: Option<i32>,
    /// Why it ended.
    pub(crate) cause: EndCause,
    /// Processor time of the tree.
    pub(crate) cpu: Duration,
    /// Largest memory use.
    pub(crate) memory_bytes: u64,
    /// Most processes seen at one time.
    pub(crate) processes: u32,
    /// Bytes written to disk.
    pub(crate) written_bytes: u64,
}

/// A pair of connected sockets that keep message boundaries.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Puts a value into a memory file.
pub(crate) fn to_memory<T: Serialize>(value: &T) -> io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("palyra-plan", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(value)?)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Takes a value out of a memory file.
pub(crate) fn from_memory<T: DeserializeOwned>(memory: OwnedFd) -> io::Result<T> {
    let mut bytes = Vec::new();
    File::from(memory).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Sends a message with descriptors.
pub(crate) fn send<T: Serialize>(socket: BorrowedFd<'_>, message: &T, attached: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !attached.is_empty() && !control.push(SendAncillaryMessage::ScmRights(attached)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

/// A message that arrived.
#[derive(Debug)]
pub(crate) struct Received<T> {
    /// The message.
    pub(crate) message: T,
    /// Its descriptors.
    pub(crate) attached: Vec<OwnedFd>,
}

/// Receives a message; `None` if the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(socket: BorrowedFd<'_>) -> io::Result<Option<Received<T>>> {
    let mut bytes = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let result = loop {
        let mut slices = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(socket, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            result => break result?,
        }
    };
    let mut attached = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            attached.extend(descriptors);
        }
    }
    if result.bytes == 0 && attached.is_empty() {
        return Ok(None);
    }
    let text = bytes.get(..result.bytes).unwrap_or_default();
    Ok(Some(Received { message: serde_json::from_slice(text)?, attached }))
}
