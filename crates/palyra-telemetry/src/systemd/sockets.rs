//! Sockets that the service manager opened before the daemon started, by the name the unit gives them.
//!
//! Every descriptor is checked for what it is before it is used, and none of them is passed on to children. The `listenfd` crate does the one step that Rust calls
//! unsafe, turning a number into an owned descriptor; it accepts an environment that is meant for another process and any count, so both are checked here first.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process;

use listenfd::ListenFd;
use palyra_common::Environment;
use rustix::net::sockopt;

use crate::error::TelemetryError;

/// More descriptors than this is no unit of ours.
const MOST: usize = 64;

/// One socket from the service manager, not blocking.
#[derive(Debug)]
pub enum Socket {
    /// A listening Unix socket.
    Unix(UnixListener),
    /// A listening TCP socket.
    Tcp(TcpListener),
    /// A UDP socket.
    Udp(UdpSocket),
}

/// Everything that the service manager passed.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    sockets: Vec<(String, Socket)>,
}

impl InheritedSockets {
    /// Takes over what was passed to this process. Call it once, early, while there is one thread: the variables are taken out of the process's environment.
    ///
    /// # Errors
    /// If something was passed that is no socket of a known kind: a unit that says more than the daemon does is a mistake somebody should see.
    pub fn take(environment: &Environment) -> Result<Self, TelemetryError> {
        let Some(count) = announced(environment)? else { return Ok(Self::default()) };
        let mut passed = ListenFd::from_env();
        if passed.len() != count {
            return Err(invalid(format!("`LISTEN_FDS` announces {count}, but {} are open", passed.len())));
        }
        let names: Vec<&str> =
            environment.text("LISTEN_FDNAMES").map(|names| names.split(':').collect()).unwrap_or_default();
        if !names.is_empty() && names.len() != count {
            return Err(invalid(format!("there are {count} descriptors, but {} names", names.len())));
        }
        let mut sockets = Vec::with_capacity(count);
        for place in 0..count {
            let name = names.get(place).copied().unwrap_or("unknown");
            sockets.push((name.to_owned(), take_one(&mut passed, place, name)?));
        }
        Ok(Self { sockets })
    }

    /// The listening Unix socket of this name.
    pub fn unix(&mut self, name: &str) -> Option<UnixListener> {
        let place = self.place(name, |socket| matches!(socket, Socket::Unix(_)))?;
        match self.sockets.swap_remove(place).1 {
            Socket::Unix(listener) => Some(listener),
            Socket::Tcp(_) | Socket::Udp(_) => None,
        }
    }

    /// The listening TCP socket of this name.
    pub fn tcp(&mut self, name: &str) -> Option<TcpListener> {
        let place = self.place(name, |socket| matches!(socket, Socket::Tcp(_)))?;
        match self.sockets.swap_remove(place).1 {
            Socket::Tcp(listener) => Some(listener),
            Socket::Unix(_) | Socket::Udp(_) => None,
        }
    }

    /// The UDP socket of this name.
    pub fn udp(&mut self, name: &str) -> Option<UdpSocket> {
        let place = self.place(name, |socket| matches!(socket, Socket::Udp(_)))?;
        match self.sockets.swap_remove(place).1 {
            Socket::Udp(socket) => Some(socket),
            Socket::Unix(_) | Socket::Tcp(_) => None,
        }
    }

    /// Names of the sockets that nobody took.
    #[must_use]
    pub fn left(&self) -> Vec<&str> {
        self.sockets.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn place(&self, name: &str, fits: impl Fn(&Socket) -> bool) -> Option<usize> {
        self.sockets.iter().position(|(candidate, socket)| candidate == name && fits(socket))
    }
}

/// How many descriptors this process was given, if any.
fn announced(environment: &Environment) -> Result<Option<usize>, TelemetryError> {
    let (Some(pid), Some(count)) = (environment.text("LISTEN_PID"), environment.text("LISTEN_FDS")) else {
        return Ok(None);
    };
    if pid.parse() != Ok(process::id()) {
        return Ok(None);
    }
    match count.parse() {
        Ok(0) => Ok(None),
        Ok(count) if count <= MOST => Ok(Some(count)),
        _ => Err(invalid(format!("`LISTEN_FDS` is `{count}`, expected a number up to {MOST}"))),
    }
}

fn take_one(passed: &mut ListenFd, place: usize, name: &str) -> Result<Socket, TelemetryError> {
    let failed = |error: std::io::Error| invalid(format!("`{name}`: {error}"));
    let socket = if let Ok(Some(listener)) = passed.take_unix_listener(place) {
        listening(&listener, name)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Socket::Unix(listener)
    } else if let Ok(Some(listener)) = passed.take_tcp_listener(place) {
        listening(&listener, name)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Socket::Tcp(listener)
    } else if let Some(socket) = passed.take_udp_socket(place).map_err(failed)? {
        socket.set_nonblocking(true).map_err(failed)?;
        Socket::Udp(socket)
    } else {
        return Err(invalid(format!("`{name}` is missing")));
    };
    Ok(socket)
}

/// With `Accept=yes` a unit passes connections instead; serving those as listeners would fail at the first caller.
fn listening(socket: &impl AsFd, name: &str) -> Result<(), TelemetryError> {
    match sockopt::socket_acceptconn(socket) {
        Ok(true) => Ok(()),
        Ok(false) => Err(invalid(format!("`{name}` is not a listening socket; the unit needs `Accept=no`"))),
        Err(error) => Err(invalid(format!("`{name}`: {error}"))),
    }
}

fn invalid(reason: String) -> TelemetryError {
    TelemetryError::InheritedSocketInvalid { reason }
}
