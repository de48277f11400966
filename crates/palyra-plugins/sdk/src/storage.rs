//! Keys and values that stay between calls, for this skill alone.

use crate::HostFailure;
use crate::bindings::host::palyra::host::{capabilities, storage as wit};

/// One storage space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space(u64);

/// A value with the number of the change that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The bytes.
    pub value: Vec<u8>,
    /// Says whether it is still the same when it is changed later.
    pub version: u64,
}

/// What became of a [`Batch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was carried out, as change number so and so.
    Committed(u64),
    /// Nothing was carried out, because this key is not as expected.
    Conflict(String),
}

/// Changes that are carried out together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    expectations: Vec<wit::Expectation>,
    changes: Vec<wit::Change>,
}

impl Batch {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Only if the key still has this version.
    #[must_use]
    pub fn expect(mut self, key: impl Into<String>, version: u64) -> Self {
        self.expectations.push(wit::Expectation { key: key.into(), version: Some(version) });
        self
    }

    /// Only if there is no such key.
    #[must_use]
    pub fn expect_absent(mut self, key: impl Into<String>) -> Self {
        self.expectations.push(wit::Expectation { key: key.into(), version: None });
        self
    }

    /// Sets a key.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.changes.push(wit::Change { key: key.into(), value: Some(value.into()) });
        self
    }

    /// Removes a key.
    #[must_use]
    pub fn delete(mut self, key: impl Into<String>) -> Self {
        self.changes.push(wit::Change { key: key.into(), value: None });
        self
    }
}

impl Space {
    /// The space that the manifest calls so.
    pub fn named(name: &str) -> Result<Self, HostFailure> {
        (0..capabilities::storage_count())
            .filter_map(capabilities::storage_handle)
            .find(|handle| capabilities::storage_name(*handle).as_deref() == Some(name))
            .map(Self)
            .ok_or(HostFailure::NoGrant)
    }

    /// The value of a key.
    pub fn get(self, key: &str) -> Result<Option<Entry>, HostFailure> {
        let entry = wit::get(self.0, key)?;
        Ok(entry.map(|entry| Entry { value: entry.value, version: entry.version }))
    }

    /// Sets a key.
    pub fn set(self, key: &str, value: impl AsRef<[u8]>) -> Result<(), HostFailure> {
        Ok(wit::set(self.0, key, value.as_ref())?)
    }

    /// Removes a key, if it is there.
    pub fn delete(self, key: &str) -> Result<(), HostFailure> {
        Ok(wit::delete(self.0, key)?)
    }

    /// At most `limit` keys that begin with `prefix` and come after `after`, in order.
    pub fn keys(self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, HostFailure> {
        Ok(wit::keys(self.0, prefix, after, limit)?)
    }

    /// All of a batch or nothing of it.
    pub fn apply(self, batch: &Batch) -> Result<Outcome, HostFailure> {
        Ok(match wit::apply(self.0, &batch.expectations, &batch.changes)? {
            wit::Outcome::Committed(change) => Outcome::Committed(change),
            wit::Outcome::Conflict(key) => Outcome::Conflict(key),
        })
    }
}
