//! What all host functions of one call share: grants behind handles, counters, the port to the rest of Palyra.
//!
//! INVARIANT: a handle is a random number that was drawn for this call, stands for one grant of one kind, and is looked up nowhere else. After the call
//! nothing knows it any more.

use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use crate::error::PluginError;
use crate::grants::{CapabilityGrantSet, ChannelGrant, HttpGrant, SecretGrant, StorageGrant};
use crate::limits::HostCallLimits;
use crate::randomness::Randomness;
use crate::revocation::Revocation;
use crate::services::{HostFailure, HostServices};
use crate::usage::{Counters, HostCall};

/// Why a host function ends the call instead of answering.
#[derive(Debug, Clone, Error)]
pub(crate) enum Stop {
    #[error("the time is up")]
    Deadline,
    #[error("cancelled")]
    Cancelled,
    #[error("more than {limit} {what}")]
    Exhausted { what: &'static str, limit: u64 },
    #[error("{0}")]
    Defect(String),
}

/// The kinds of grants that have handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    Secret,
    Storage,
    Channel,
}

/// The last thing the host refused.
#[derive(Debug, Clone)]
pub(crate) struct Denial {
    pub(crate) call: &'static str,
    pub(crate) reason: String,
}

/// State of one call.
pub(crate) struct Shared {
    pub(crate) services: Arc<dyn HostServices>,
    pub(crate) limits: HostCallLimits,
    pub(crate) counters: Counters,
    grants: CapabilityGrantSet,
    handles: Vec<(u64, Kind, usize)>,
    revocation: Revocation,
    denial: Mutex<Option<Denial>>,
}

impl Shared {
    pub(crate) fn new(
        services: Arc<dyn HostServices>,
        grants: CapabilityGrantSet,
        revocation: Revocation,
        limits: HostCallLimits,
        randomness: &mut Randomness,
    ) -> Result<Self, PluginError> {
        let kinds = [
            (Kind::Http, grants.http.len()),
            (Kind::Secret, grants.secrets.len()),
            (Kind::Storage, grants.storage.len()),
            (Kind::Channel, grants.channels.len()),
        ];
        let mut handles = Vec::with_capacity(kinds.iter().map(|(_, count)| count).sum());
        for (kind, count) in kinds {
            for index in 0..count {
                let number = loop {
                    let number = randomness.number().map_err(|error| PluginError::Engine(error.to_string()))?;
                    if !handles.iter().any(|(taken, _, _)| *taken == number) {
                        break number;
                    }
                };
                handles.push((number, kind, index));
            }
        }
        Ok(Self {
            services,
            limits,
            counters: Counters::default(),
            grants,
            handles,
            revocation,
            denial: Mutex::new(None),
        })
    }

    /// Counts a call; too many in all end it.
    pub(crate) fn count(&self, call: HostCall) -> Result<(), Stop> {
        if self.counters.add(call) > self.limits.total {
            return Err(Stop::Exhausted { what: "calls to the host", limit: u64::from(self.limits.total) });
        }
        Ok(())
    }

    /// Refuses when these calls together were made more often than allowed. The guest is told and may go on with other things.
    pub(crate) fn within(&self, calls: &[HostCall], limit: u32, what: &str) -> Result<(), HostFailure> {
        if self.counters.sum(calls) > limit {
            return Err(HostFailure::Exhausted(format!("a call may make {limit} {what}")));
        }
        Ok(())
    }

    /// How many grants of a kind there are; none once they were taken back.
    pub(crate) fn granted(&self, kind: Kind) -> usize {
        if self.revocation.is_revoked() {
            return 0;
        }
        self.handles.iter().filter(|(_, own, _)| *own == kind).count()
    }

    /// The handle at a place.
    pub(crate) fn handle(&self, kind: Kind, index: u32) -> Option<u64> {
        if self.revocation.is_revoked() {
            return None;
        }
        let mut own = self.handles.iter().filter(|(_, own, _)| *own == kind);
        own.nth(usize::try_from(index).ok()?).map(|(number, _, _)| *number)
    }

    pub(crate) fn http(&self, handle: u64) -> Option<&HttpGrant> {
        self.grants.http.get(self.find(Kind::Http, handle)?)
    }

    pub(crate) fn secret(&self, handle: u64) -> Option<&SecretGrant> {
        self.grants.secrets.get(self.find(Kind::Secret, handle)?)
    }

    pub(crate) fn storage(&self, handle: u64) -> Option<&StorageGrant> {
        self.grants.storage.get(self.find(Kind::Storage, handle)?)
    }

    pub(crate) fn channel(&self, handle: u64) -> Option<&ChannelGrant> {
        self.grants.channels.get(self.find(Kind::Channel, handle)?)
    }

    /// All grants for requests, for guests that name an address and no handle.
    pub(crate) fn all_http(&self) -> &[HttpGrant] {
        if self.revocation.is_revoked() { &[] } else { &self.grants.http }
    }

    /// Notes a refusal, so that a failure that follows can be explained.
    pub(crate) fn note<T>(&self, call: HostCall, result: Result<T, HostFailure>) -> Result<T, HostFailure> {
        let reason = match &result {
            Err(HostFailure::NoGrant) => "it is not granted, or no longer".to_owned(),
            Err(HostFailure::Denied(reason)) => crate::text::one_line(reason),
            _ => return result,
        };
        self.counters.add_denial();
        *self.denial.lock().unwrap_or_else(PoisonError::into_inner) = Some(Denial { call: call.name(), reason });
        result
    }

    pub(crate) fn denial(&self) -> Option<Denial> {
        self.denial.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, kind: Kind, handle: u64) -> Option<usize> {
        if self.revocation.is_revoked() {
            return None;
        }
        let found = self.handles.iter().find(|(number, own, _)| *number == handle && *own == kind);
        found.map(|(_, _, index)| *index)
    }
}
