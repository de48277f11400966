//! `palyra:host/storage`: keys and values of one skill.

use wasmtime::Result;

use super::wit::failures::Failure;
use super::wit::storage::{self, Entry, Host, Outcome};
use crate::services::{Change, Expectation, HostFailure, StorageAnswer, StorageOutcome, StorageRequest};
use crate::shared::{Shared, Stop};
use crate::state::CallState;
use crate::usage::HostCall;

/// Bytes of a key.
const MAX_KEY_BYTES: usize = 512;
/// Bytes of a value.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// Expectations and changes of one batch.
const MAX_BATCH: usize = 256;
/// Keys of one listing.
const MAX_LISTED: u32 = 1000;

const CALLS: &[HostCall] = &[
    HostCall::StorageGet,
    HostCall::StorageSet,
    HostCall::StorageDelete,
    HostCall::StorageKeys,
    HostCall::StorageApply,
];

/// Counts, checks and asks; the outer error ends the call.
async fn ask(
    shared: &Shared,
    call: HostCall,
    space: u64,
    request: Result<StorageRequest, HostFailure>,
) -> Result<Result<StorageAnswer, Failure>> {
    shared.count(call)?;
    let grant = shared
        .storage(space)
        .ok_or(HostFailure::NoGrant)
        .and_then(|grant| shared.within(CALLS, shared.limits.storage, "storage operations").map(|()| grant));
    let result = match (grant, request) {
        (Ok(grant), Ok(request)) => shared.services.storage(grant, request).await,
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    };
    Ok(shared.note(call, result).map_err(Failure::from))
}

/// The port answered something else than it was asked.
fn mismatch() -> Stop {
    Stop::Defect("storage returned an unexpected answer".to_owned())
}

impl Host for CallState {
    async fn get(&mut self, space: u64, key: String) -> Result<Result<Option<Entry>, Failure>> {
        let request = check_key(&key).map(|()| StorageRequest::Get { key });
        match ask(&self.shared, HostCall::StorageGet, space, request).await? {
            Ok(StorageAnswer::Entry(entry)) => {
                Ok(Ok(entry.map(|entry| Entry { value: entry.value, version: entry.version })))
            }
            Ok(_) => Err(mismatch().into()),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn set(&mut self, space: u64, key: String, value: Vec<u8>) -> Result<Result<(), Failure>> {
        let request = check_key(&key).and_then(|()| check_value(&value)).map(|()| StorageRequest::Set { key, value });
        match ask(&self.shared, HostCall::StorageSet, space, request).await? {
            Ok(StorageAnswer::Done) => Ok(Ok(())),
            Ok(_) => Err(mismatch().into()),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn delete(&mut self, space: u64, key: String) -> Result<Result<(), Failure>> {
        let request = check_key(&key).map(|()| StorageRequest::Delete { key });
        match ask(&self.shared, HostCall::StorageDelete, space, request).await? {
            Ok(StorageAnswer::Done) => Ok(Ok(())),
            Ok(_) => Err(mismatch().into()),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn keys(
        &mut self,
        space: u64,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Result<Vec<String>, Failure>> {
        let checked = check_part(&prefix).and_then(|()| after.as_deref().map_or(Ok(()), check_part));
        let request = checked.map(|()| StorageRequest::Keys { prefix, after, limit: limit.min(MAX_LISTED) });
        match ask(&self.shared, HostCall::StorageKeys, space, request).await? {
            Ok(StorageAnswer::Keys(keys)) => Ok(Ok(keys)),
            Ok(_) => Err(mismatch().into()),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn apply(
        &mut self,
        space: u64,
        expectations: Vec<storage::Expectation>,
        changes: Vec<storage::Change>,
    ) -> Result<Result<Outcome, Failure>> {
        let request = batch(expectations, changes);
        match ask(&self.shared, HostCall::StorageApply, space, request).await? {
            Ok(StorageAnswer::Outcome(StorageOutcome::Committed(number))) => Ok(Ok(Outcome::Committed(number))),
            Ok(StorageAnswer::Outcome(StorageOutcome::Conflict(key))) => Ok(Ok(Outcome::Conflict(key))),
            Ok(_) => Err(mismatch().into()),
            Err(failure) => Ok(Err(failure)),
        }
    }
}

fn batch(
    expectations: Vec<storage::Expectation>,
    changes: Vec<storage::Change>,
) -> Result<StorageRequest, HostFailure> {
    if expectations.len() > MAX_BATCH || changes.len() > MAX_BATCH {
        return Err(HostFailure::Invalid(format!(
            "a batch may have at most {MAX_BATCH} changes and as many expectations"
        )));
    }
    for expectation in &expectations {
        check_key(&expectation.key)?;
    }
    for (index, change) in changes.iter().enumerate() {
        check_key(&change.key)?;
        if let Some(value) = &change.value {
            check_value(value)?;
        }
        // Two changes of one key would make the outcome depend on their order.
        if changes.iter().take(index).any(|earlier| earlier.key == change.key) {
            return Err(HostFailure::Invalid(format!("the key `{}` is changed twice in one batch", change.key)));
        }
    }
    Ok(StorageRequest::Apply {
        expectations: expectations
            .into_iter()
            .map(|expectation| Expectation { key: expectation.key, version: expectation.version })
            .collect(),
        changes: changes.into_iter().map(|change| Change { key: change.key, value: change.value }).collect(),
    })
}

fn check_key(key: &str) -> Result<(), HostFailure> {
    if key.is_empty() {
        return Err(HostFailure::Invalid("a key may not be empty".to_owned()));
    }
    check_part(key)
}

/// A key or the beginning of one.
fn check_part(text: &str) -> Result<(), HostFailure> {
    if text.len() > MAX_KEY_BYTES {
        return Err(HostFailure::Invalid(format!("a key may have at most {MAX_KEY_BYTES} bytes")));
    }
    if text.chars().any(char::is_control) {
        return Err(HostFailure::Invalid("a key may not contain control characters".to_owned()));
    }
    Ok(())
}

fn check_value(value: &[u8]) -> Result<(), HostFailure> {
    if value.len() > MAX_VALUE_BYTES {
        return Err(HostFailure::Invalid(format!("a value may have at most {MAX_VALUE_BYTES} bytes")));
    }
    Ok(())
}
