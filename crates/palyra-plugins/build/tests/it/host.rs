//! A host that pretends what a case says, and what the manifest of a skill is granted in a case: everything it asks for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;
use palyra_plugins_build::{Case, Sent};
use palyra_plugins_runtime::{
    CapabilityGrantSet, ChannelGrant, HostFailure, HostServices, HttpGrant, HttpRequest, HttpResponse, LogLevel,
    RuntimeLimits, SecretBytes, SecretGrant, SecretUse, StorageAnswer, StorageEntry, StorageGrant, StorageOutcome,
    StorageRequest,
};

/// Storage by space and key.
pub(crate) type Spaces = BTreeMap<String, BTreeMap<String, String>>;

/// What a case pretends.
pub(crate) struct CaseHost {
    case: Case,
    config: BTreeMap<String, String>,
    inner: Mutex<Inner>,
}

struct Inner {
    requests: usize,
    surprise: Option<String>,
    spaces: BTreeMap<String, BTreeMap<String, StorageEntry>>,
    change: u64,
}

impl CaseHost {
    pub(crate) fn new(case: &Case) -> Self {
        let entries = |values: &BTreeMap<String, String>| {
            values
                .iter()
                .map(|(key, value)| (key.clone(), StorageEntry { value: value.clone().into_bytes(), version: 1 }))
                .collect()
        };
        let spaces = case.storage.iter().map(|(space, values)| (space.clone(), entries(values))).collect();
        let inner = Inner { requests: 0, surprise: None, spaces, change: 1 };
        Self { config: case.config.clone(), case: case.clone(), inner: Mutex::new(inner) }
    }

    /// How many requests were made, and the first one that nobody expected.
    pub(crate) fn requests(&self) -> Result<usize, String> {
        let inner = self.inner.lock().unwrap();
        inner.surprise.clone().map_or(Ok(inner.requests), Err)
    }

    /// What is stored now.
    pub(crate) fn stored(&self) -> Spaces {
        let text = |entry: &StorageEntry| String::from_utf8(entry.value.clone()).unwrap();
        let inner = self.inner.lock().unwrap();
        let values = |space: &BTreeMap<String, StorageEntry>| {
            space.iter().map(|(key, entry)| (key.clone(), text(entry))).collect()
        };
        inner.spaces.iter().map(|(name, space)| (name.clone(), values(space))).collect()
    }
}

#[async_trait]
impl HostServices for CaseHost {
    async fn http(&self, _: &HttpGrant, request: HttpRequest) -> Result<HttpResponse, HostFailure> {
        let mut inner = self.inner.lock().unwrap();
        let sent = Sent {
            method: &request.method,
            url: &request.url,
            body: &request.body,
            secrets: request.credentials.iter().map(|credential| credential.secret.name.clone()).collect(),
        };
        let canned = match self.case.answer(inner.requests, &sent) {
            Ok(canned) => canned,
            Err(failure) => {
                inner.surprise.get_or_insert(failure.0.clone());
                return Err(HostFailure::Denied(failure.0));
            }
        };
        inner.requests += 1;
        if let Some(reason) = &canned.unreachable {
            return Err(HostFailure::Unreachable(reason.clone()));
        }
        let headers = canned.headers.iter().map(|(name, value)| (name.clone(), value.clone().into_bytes()));
        Ok(HttpResponse { status: canned.status, headers: headers.collect(), body: canned.body_bytes() })
    }

    async fn reveal(&self, secret: &SecretGrant) -> Result<SecretBytes, HostFailure> {
        Ok(SecretBytes::new(format!("value of {}", secret.name).into_bytes()))
    }

    async fn storage(&self, space: &StorageGrant, request: StorageRequest) -> Result<StorageAnswer, HostFailure> {
        let mut inner = self.inner.lock().unwrap();
        inner.change += 1;
        let change = inner.change;
        let space = inner.spaces.entry(space.name.clone()).or_default();
        Ok(match request {
            StorageRequest::Get { key } => StorageAnswer::Entry(space.get(&key).cloned()),
            StorageRequest::Set { key, value } => {
                space.insert(key, StorageEntry { value, version: change });
                StorageAnswer::Done
            }
            StorageRequest::Delete { key } => {
                space.remove(&key);
                StorageAnswer::Done
            }
            StorageRequest::Keys { prefix, after, limit } => {
                let fitting = space
                    .keys()
                    .filter(|key| key.starts_with(&prefix) && after.as_ref().is_none_or(|after| *key > after));
                StorageAnswer::Keys(fitting.take(limit as usize).cloned().collect())
            }
            StorageRequest::Apply { expectations, changes } => {
                let wrong = expectations
                    .iter()
                    .find(|expected| space.get(&expected.key).map(|entry| entry.version) != expected.version);
                if let Some(wrong) = wrong {
                    return Ok(StorageAnswer::Outcome(StorageOutcome::Conflict(wrong.key.clone())));
                }
                for one in changes {
                    match one.value {
                        Some(value) => space.insert(one.key, StorageEntry { value, version: change }),
                        None => space.remove(&one.key),
                    };
                }
                StorageAnswer::Outcome(StorageOutcome::Committed(change))
            }
        })
    }

    async fn channel_send(&self, _: &ChannelGrant, _: String) -> Result<String, HostFailure> {
        Ok("message".to_owned())
    }

    fn log(&self, level: LogLevel, message: &str) {
        eprintln!("  {level:?}: {message}");
    }

    fn progress(&self, percent: Option<u8>, message: &str) {
        eprintln!("  {percent:?} {message}");
    }

    fn config(&self) -> &BTreeMap<String, String> {
        &self.config
    }
}

/// Everything that a manifest asks for, and its limits.
pub(crate) fn asked_for(folder: &Path) -> (CapabilityGrantSet, RuntimeLimits) {
    let text = std::fs::read_to_string(folder.join("skill.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&text).unwrap();
    let none = toml::Table::new();
    let capabilities = manifest.get("capabilities").and_then(toml::Value::as_table).unwrap_or(&none);
    let list = |key: &str| capabilities.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let name = |entry: &toml::Value| entry["name"].as_str().unwrap().to_owned();
    let number = |entry: &toml::Value, key: &str| entry[key].as_integer().unwrap().unsigned_abs();
    let grants = CapabilityGrantSet {
        http: list("http_egress_allowlist")
            .iter()
            .map(|rule| HttpGrant { rule: rule.as_str().unwrap().to_owned() })
            .collect(),
        secrets: list("secrets")
            .iter()
            .map(|secret| SecretGrant {
                name: name(secret),
                usage: SecretUse::Bind,
                hosts: secret
                    .get("hosts")
                    .and_then(toml::Value::as_array)
                    .map(|hosts| hosts.iter().map(|host| host.as_str().unwrap().to_owned()).collect())
                    .unwrap_or_default(),
            })
            .collect(),
        storage: list("storage")
            .iter()
            .map(|space| StorageGrant {
                name: name(space),
                max_bytes: number(space, "max_bytes"),
                max_keys: u32::try_from(number(space, "max_keys")).unwrap(),
            })
            .collect(),
        channels: Vec::new(),
    };
    let mut limits = RuntimeLimits::default();
    if let Some(quotas) = capabilities.get("quotas") {
        limits.fuel_budget = number(quotas, "fuel_budget");
        limits.max_memory_bytes = number(quotas, "max_memory_bytes");
    }
    (grants, limits)
}
