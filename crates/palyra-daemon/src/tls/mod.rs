//! Certificates and what is done with them: the daemon's own, the operator's, and those that callers show.
//!
//! `identity` opens the authority of this installation, late and once, and keeps its certificates fresh; `own` is a certificate that the operator brought;
//! `device` is a caller who showed one; `listener` is HTTP over TLS; `plain` answers whoever speaks HTTP there without it.

mod device;
mod identity;
mod listener;
mod own;
mod plain;

pub(crate) use device::Device;
pub(crate) use identity::Identity;
pub(crate) use listener::{TlsListener, TlsSetup};
