//! Numbers nobody can guess; from a seed when a call is replayed.

use crate::bindings::host::palyra::host::random as wit;

/// So many random bytes.
#[must_use]
pub fn bytes(length: u32) -> Vec<u8> {
    wit::bytes(length)
}
