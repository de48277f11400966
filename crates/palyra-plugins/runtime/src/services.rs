//! The port through which the host interfaces reach the rest of Palyra.
//!
//! The runtime checks handles, counts calls and refuses what makes no sense; whoever implements [`HostServices`] sends, stores and resolves, and checks the
//! grant once more by its own rules. A method gets the grant itself, never a name that the guest chose.

use std::collections::BTreeMap;

use async_trait::async_trait;
use palyra_common::Secret;

use crate::grants::{ChannelGrant, HttpGrant, SecretGrant, StorageGrant};

/// What one call reaches of the host.
#[async_trait]
pub trait HostServices: Send + Sync {
    /// Sends a request and waits for the whole answer. Credentials are put in here.
    async fn http(&self, grant: &HttpGrant, request: HttpRequest) -> Result<HttpResponse, HostFailure>;

    /// The value of a secret that may be read.
    async fn reveal(&self, secret: &SecretGrant) -> Result<SecretBytes, HostFailure>;

    /// One operation on a storage space.
    async fn storage(&self, space: &StorageGrant, request: StorageRequest) -> Result<StorageAnswer, HostFailure>;

    /// Sends a message and gives back its id.
    async fn channel_send(&self, channel: &ChannelGrant, text: String) -> Result<String, HostFailure>;

    /// A line for the log; already cut to size, without control characters.
    fn log(&self, level: LogLevel, message: &str);

    /// How far the call has got.
    fn progress(&self, percent: Option<u8>, message: &str);

    /// What the operator set for this skill.
    fn config(&self) -> &BTreeMap<String, String>;
}

/// Bytes that are overwritten when they are dropped and never shown.
pub type SecretBytes = Secret<Vec<u8>>;

/// A request of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// In capitals.
    pub method: String,
    /// Under the grant's rule as far as the runtime can tell.
    pub url: String,
    /// Names are tokens, values hold no line breaks; none of them frames the message or names a host.
    pub headers: Vec<(String, Vec<u8>)>,
    /// May be empty.
    pub body: Vec<u8>,
    /// Secrets to put in.
    pub credentials: Vec<Credential>,
}

/// A secret for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Which one.
    pub secret: SecretGrant,
    /// Where it goes.
    pub placement: Placement,
}

/// Where a secret goes in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// `Authorization: Bearer <secret>`
    Bearer,
    /// `Authorization: Basic <name:secret>`
    Basic(String),
    /// A header of this name.
    Header(String),
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// Such as 200.
    pub status: u16,
    /// In the order they came.
    pub headers: Vec<(String, Vec<u8>)>,
    /// All of it.
    pub body: Vec<u8>,
}

/// One operation on a storage space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageRequest {
    /// Reads a key; answered by [`StorageAnswer::Entry`].
    Get {
        /// The key.
        key: String,
    },
    /// Writes a key; answered by [`StorageAnswer::Done`].
    Set {
        /// The key.
        key: String,
        /// Its new value.
        value: Vec<u8>,
    },
    /// Removes a key, present or not; answered by [`StorageAnswer::Done`].
    Delete {
        /// The key.
        key: String,
    },
    /// Lists keys in order; answered by [`StorageAnswer::Keys`].
    Keys {
        /// What they begin with.
        prefix: String,
        /// Only keys after this one.
        after: Option<String>,
        /// At most so many.
        limit: u32,
    },
    /// Changes all or nothing; answered by [`StorageAnswer::Outcome`].
    Apply {
        /// What has to hold.
        expectations: Vec<Expectation>,
        /// What is to change.
        changes: Vec<Change>,
    },
}

/// A key has this version, or is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The key.
    pub key: String,
    /// `None` means absent.
    pub version: Option<u64>,
}

/// A new value for a key, or none to remove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: String,
    /// `None` removes it.
    pub value: Option<Vec<u8>>,
}

/// What a storage operation gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageAnswer {
    /// The entry, if there is one.
    Entry(Option<StorageEntry>),
    /// It was done.
    Done,
    /// These keys.
    Keys(Vec<String>),
    /// What became of a batch.
    Outcome(StorageOutcome),
}

/// A value with the number of the change that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEntry {
    /// The value.
    pub value: Vec<u8>,
    /// The number.
    pub version: u64,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageOutcome {
    /// All of it was carried out, as this change.
    Committed(u64),
    /// Nothing was, because of this key.
    Conflict(String),
}

/// How important a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// For the author.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

/// Why the host did not do what was asked; what the guest is told. The words never hold a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostFailure {
    /// There is no such grant, or no longer.
    NoGrant,
    /// The grant does not cover this.
    Denied(String),
    /// What was asked makes no sense.
    Invalid(String),
    /// A limit or a quota is used up.
    Exhausted(String),
    /// The other side could not be reached or broke off.
    Unreachable(String),
    /// It took too long.
    TimedOut,
}

/// Services that refuse everything; for plugins that need nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

/// The settings of [`NoServices`].
static NO_CONFIG: BTreeMap<String, String> = BTreeMap::new();

#[async_trait]
impl HostServices for NoServices {
    async fn http(&self, _: &HttpGrant, _: HttpRequest) -> Result<HttpResponse, HostFailure> {
        Err(HostFailure::NoGrant)
    }

    async fn reveal(&self, _: &SecretGrant) -> Result<SecretBytes, HostFailure> {
        Err(HostFailure::NoGrant)
    }

    async fn storage(&self, _: &StorageGrant, _: StorageRequest) -> Result<StorageAnswer, HostFailure> {
        Err(HostFailure::NoGrant)
    }

    async fn channel_send(&self, _: &ChannelGrant, _: String) -> Result<String, HostFailure> {
        Err(HostFailure::NoGrant)
    }

    fn log(&self, _: LogLevel, _: &str) {}

    fn progress(&self, _: Option<u8>, _: &str) {}

    fn config(&self) -> &BTreeMap<String, String> {
        &NO_CONFIG
    }
}
