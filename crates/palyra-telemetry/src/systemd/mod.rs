//! The service manager: telling it how the daemon is, and taking over sockets that it opened. Both are protocols of systemd that others speak too; a daemon that
//! was started by nobody of the kind finds nothing in its environment and does nothing.

mod notify;
mod sockets;

pub use notify::Notify;
pub use sockets::{InheritedSockets, Socket};
