//! Where a process reads from and writes to: nothing, a pipe, a descriptor of the caller's, or a terminal.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::setup::Standards;
use crate::grant::TerminalSize;

/// One standard stream.
#[derive(Debug, Default)]
pub enum Stream {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe whose other end the child gives out.
    Pipe,
    /// A descriptor of the caller's.
    Descriptor(OwnedFd),
}

/// The three standard streams. Ignored if the plan has a terminal, which is then all three.
#[derive(Debug, Default)]
pub struct Stdio {
    /// Standard input.
    pub stdin: Stream,
    /// Standard output.
    pub stdout: Stream,
    /// Standard error.
    pub stderr: Stream,
}

impl Stdio {
    /// Pipes for all three.
    #[must_use]
    pub fn pipes() -> Self {
        Self { stdin: Stream::Pipe, stdout: Stream::Pipe, stderr: Stream::Pipe }
    }
}

/// The guest's ends and ours.
pub(super) struct Ends {
    pub(super) guest: Standards,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) terminal: Option<OwnedFd>,
}

pub(super) fn open(stdio: Stdio, terminal: Option<TerminalSize>) -> io::Result<Ends> {
    if let Some(size) = terminal {
        return open_terminal(size);
    }
    let (input, stdin) = match stdio.stdin {
        Stream::Null => (null()?, None),
        Stream::Descriptor(descriptor) => (descriptor, None),
        Stream::Pipe => {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            (read, Some(write))
        }
    };
    let (output, stdout) = open_output(stdio.stdout)?;
    let (error, stderr) = open_output(stdio.stderr)?;
    Ok(Ends { guest: Standards { input, output, error }, stdin, stdout, stderr, terminal: None })
}

fn open_output(stream: Stream) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    Ok(match stream {
        Stream::Null => (null()?, None),
        Stream::Descriptor(descriptor) => (descriptor, None),
        Stream::Pipe => {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            (write, Some(read))
        }
    })
}

fn null() -> io::Result<OwnedFd> {
    Ok(OpenOptions::new().read(true).write(true).open("/dev/null")?.into())
}

fn open_terminal(size: TerminalSize) -> io::Result<Ends> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let input = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    resize(&master, size)?;
    let guest = Standards { output: input.try_clone()?, error: input.try_clone()?, input };
    Ok(Ends { guest, stdin: None, stdout: None, stderr: None, terminal: Some(master) })
}

pub(super) fn resize(master: &OwnedFd, size: TerminalSize) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(master.as_fd(), size)?)
}
