//! The host of one case: answers requests from the case's file, keeps storage in memory, reaches nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use palyra_plugins_build::{Case, CaseFailure, Sent};
use palyra_plugins_runtime::{
    ChannelGrant, HostFailure, HostServices, HttpGrant, HttpRequest, HttpResponse, LogLevel, SecretBytes, SecretGrant,
    StorageAnswer, StorageEntry, StorageGrant, StorageOutcome, StorageRequest,
};
use palyra_skills::SkillManifest;

/// Storage by space and key.
type Spaces = BTreeMap<String, BTreeMap<String, String>>;

/// The host of one case.
pub(super) struct CaseHost {
    case: Case,
    config: BTreeMap<String, String>,
    requests: AtomicUsize,
    stored: Mutex<Spaces>,
    complaint: Mutex<Option<CaseFailure>>,
}

impl CaseHost {
    pub(super) fn new(case: &Case, manifest: &SkillManifest) -> Self {
        let mut config: BTreeMap<String, String> = manifest
            .config
            .iter()
            .filter_map(|setting| Some((setting.key.clone(), setting.default.clone()?)))
            .collect();
        config.extend(case.config.clone());
        Self {
            config,
            requests: AtomicUsize::new(0),
            stored: Mutex::new(case.storage.clone()),
            complaint: Mutex::default(),
            case: case.clone(),
        }
    }

    /// How many requests were made.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// What is stored now; spaces without a key are as good as none.
    pub(super) fn stored(&self) -> Spaces {
        let mut stored = lock(&self.stored).clone();
        stored.retain(|_, keys| !keys.is_empty());
        stored
    }

    /// The first request that was not as the case has it.
    pub(super) fn complaint(&self) -> Option<CaseFailure> {
        lock(&self.complaint).clone()
    }
}

#[async_trait]
impl HostServices for CaseHost {
    async fn http(&self, _: &HttpGrant, request: HttpRequest) -> Result<HttpResponse, HostFailure> {
        let sent = Sent {
            method: &request.method,
            url: &request.url,
            body: &request.body,
            secrets: request.credentials.iter().map(|credential| credential.secret.name.clone()).collect(),
        };
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let canned = match self.case.answer(number, &sent) {
            Ok(canned) => canned,
            Err(failure) => {
                let told = failure.to_string();
                lock(&self.complaint).get_or_insert(failure);
                return Err(HostFailure::Unreachable(told));
            }
        };
        if let Some(why) = &canned.unreachable {
            return Err(HostFailure::Unreachable(why.clone()));
        }
        Ok(HttpResponse {
            status: canned.status,
            headers: canned.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes())).collect(),
            body: canned.body_bytes(),
        })
    }

    async fn reveal(&self, secret: &SecretGrant) -> Result<SecretBytes, HostFailure> {
        Ok(SecretBytes::new(format!("value-of-{}", secret.name).into_bytes()))
    }

    async fn storage(&self, space: &StorageGrant, request: StorageRequest) -> Result<StorageAnswer, HostFailure> {
        let mut stored = lock(&self.stored);
        let keys = stored.entry(space.name.clone()).or_default();
        Ok(match request {
            StorageRequest::Get { key } => StorageAnswer::Entry(
                keys.get(&key).map(|value| StorageEntry { value: value.clone().into_bytes(), version: 1 }),
            ),
            StorageRequest::Set { key, value } => {
                keys.insert(key, String::from_utf8_lossy(&value).into_owned());
                StorageAnswer::Done
            }
            StorageRequest::Delete { key } => {
                keys.remove(&key);
                StorageAnswer::Done
            }
            StorageRequest::Keys { prefix, after, limit } => StorageAnswer::Keys(
                keys.keys()
                    .filter(|key| key.starts_with(&prefix) && after.as_ref().is_none_or(|after| *key > after))
                    .take(limit as usize)
                    .cloned()
                    .collect(),
            ),
            StorageRequest::Apply { expectations, changes } => {
                // In a case every key that is there has version 1.
                let differs =
                    expectations.iter().find(|expected| expected.version != keys.get(&expected.key).map(|_| 1));
                if let Some(expected) = differs {
                    return Ok(StorageAnswer::Outcome(StorageOutcome::Conflict(expected.key.clone())));
                }
                for change in changes {
                    match change.value {
                        Some(value) => keys.insert(change.key, String::from_utf8_lossy(&value).into_owned()),
                        None => keys.remove(&change.key),
                    };
                }
                StorageAnswer::Outcome(StorageOutcome::Committed(1))
            }
        })
    }

    async fn channel_send(&self, _: &ChannelGrant, _: String) -> Result<String, HostFailure> {
        Ok("message-1".to_owned())
    }

    fn log(&self, _: LogLevel, _: &str) {}

    fn progress(&self, _: Option<u8>, _: &str) {}

    fn config(&self) -> &BTreeMap<String, String> {
        &self.config
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
