//! How far a long call has got, for the person who waits.

use crate::bindings::host::palyra::host::progress as wit;

/// Says what is being done.
pub fn note(message: &str) {
    wit::report(None, message);
}

/// Says what is being done and how much of all is done, from 0 to 100.
pub fn percent(percent: u8, message: &str) {
    wit::report(Some(percent), message);
}
