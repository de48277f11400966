//! Secrets by name. A plugin says where the host shall put one; it does not see the value.

use crate::HostFailure;
use crate::bindings::host::palyra::host::{capabilities, secret_reveal};

/// A secret that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Secret(u64);

impl Secret {
    /// The secret that the manifest calls so.
    pub fn named(name: &str) -> Result<Self, HostFailure> {
        (0..capabilities::secret_count())
            .filter_map(capabilities::secret_handle)
            .find(|handle| capabilities::secret_name(*handle).as_deref() == Some(name))
            .map(Self)
            .ok_or(HostFailure::NoGrant)
    }

    /// The value itself. Only for plugins whose manifest asks for `reveal` and whose operator agreed; using it is an import of its own.
    pub fn reveal(self) -> Result<Vec<u8>, HostFailure> {
        Ok(secret_reveal::reveal(self.0)?)
    }

    pub(crate) fn handle(self) -> u64 {
        self.0
    }
}
