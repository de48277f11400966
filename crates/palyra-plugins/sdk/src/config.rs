//! What the operator set for this skill.

use crate::bindings::host::palyra::host::config as wit;

/// The value of a key, if the operator set one or the manifest has a default.
#[must_use]
pub fn get(key: &str) -> Option<String> {
    wit::get(key)
}

/// All keys that have a value.
#[must_use]
pub fn keys() -> Vec<String> {
    wit::keys()
}
