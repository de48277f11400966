//! The interfaces of `palyra:host` as a guest sees them, one file each.
//!
//! A function here does four things in this order: it counts itself, finds the grant behind the handle, refuses what makes no sense, and asks the port.
//! It never decides whether a grant should exist.

mod capabilities;
mod channel;
mod http;
mod quiet;
mod secret_reveal;
mod storage;

use wasmtime::component::{HasSelf, Linker};

use crate::bindings::palyra::host as wit;
use crate::services::HostFailure;
use crate::state::CallState;

pub(crate) use http::{check_headers, check_method, find_grant};

/// Links all interfaces of `palyra:host`. What a guest does not import costs it nothing.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wit::capabilities::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::failures::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::http::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::secret_reveal::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::storage::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::channel::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::log::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::progress::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::clock::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::random::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)?;
    wit::config::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

impl wit::failures::Host for CallState {}

impl From<HostFailure> for wit::failures::Failure {
    fn from(failure: HostFailure) -> Self {
        match failure {
            HostFailure::NoGrant => Self::NoGrant,
            HostFailure::Denied(reason) => Self::Denied(reason),
            HostFailure::Invalid(reason) => Self::Invalid(reason),
            HostFailure::Exhausted(reason) => Self::Exhausted(reason),
            HostFailure::Unreachable(reason) => Self::Unreachable(reason),
            HostFailure::TimedOut => Self::TimedOut,
        }
    }
}
