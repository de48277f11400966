//! Why the host did not do what was asked.

use std::fmt;

use crate::bindings::host::palyra::host::failures;

/// A refusal or a mishap of the host. The words in it are for the plugin's author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostFailure {
    /// There is no such grant, or it was taken back meanwhile.
    NoGrant,
    /// The grant does not cover this.
    Denied(String),
    /// What was asked makes no sense.
    Invalid(String),
    /// A limit of the call or of a quota is used up.
    Exhausted(String),
    /// The other side could not be reached or broke off.
    Unreachable(String),
    /// It took too long.
    TimedOut,
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGrant => f.write_str("not granted"),
            Self::Denied(why) => write!(f, "denied: {why}"),
            Self::Invalid(why) => write!(f, "invalid request: {why}"),
            Self::Exhausted(what) => write!(f, "limit exhausted: {what}"),
            Self::Unreachable(why) => write!(f, "unreachable: {why}"),
            Self::TimedOut => f.write_str("timed out"),
        }
    }
}

impl std::error::Error for HostFailure {}

impl From<failures::Failure> for HostFailure {
    fn from(failure: failures::Failure) -> Self {
        match failure {
            failures::Failure::NoGrant => Self::NoGrant,
            failures::Failure::Denied(why) => Self::Denied(why),
            failures::Failure::Invalid(why) => Self::Invalid(why),
            failures::Failure::Exhausted(what) => Self::Exhausted(what),
            failures::Failure::Unreachable(why) => Self::Unreachable(why),
            failures::Failure::TimedOut => Self::TimedOut,
        }
    }
}
