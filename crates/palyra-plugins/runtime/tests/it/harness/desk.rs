//! A host in memory: it answers, remembers what it was asked, and can take grants back in the middle of a call.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use palyra_plugins_runtime::{
    ChannelGrant, HostFailure, HostServices, HttpGrant, HttpRequest, HttpResponse, LogLevel, Revocation, SecretBytes,
    SecretGrant, StorageAnswer, StorageEntry, StorageGrant, StorageOutcome, StorageRequest,
};

/// See the top of this file.
#[derive(Default)]
pub(crate) struct Desk {
    /// Taken back by the first use of any grant.
    pub(crate) revoked_by_use: Option<Revocation>,
    /// Never answers requests.
    pub(crate) hangs: bool,
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) http: Mutex<Vec<(String, HttpRequest)>>,
    pub(crate) stored: Mutex<BTreeMap<(String, String), StorageEntry>>,
    pub(crate) messages: Mutex<Vec<(String, String)>>,
    pub(crate) lines: Mutex<Vec<(LogLevel, String)>>,
    pub(crate) reports: Mutex<Vec<(Option<u8>, String)>>,
}

impl Desk {
    fn used(&self) {
        if let Some(revocation) = &self.revoked_by_use {
            revocation.revoke();
        }
    }
}

#[async_trait]
impl HostServices for Desk {
    async fn http(&self, grant: &HttpGrant, request: HttpRequest) -> Result<HttpResponse, HostFailure> {
        self.used();
        self.http.lock().unwrap().push((grant.rule.clone(), request));
        if self.hangs {
            std::future::pending::<()>().await;
        }
        let headers = vec![("content-type".to_owned(), b"text/plain".to_vec())];
        Ok(HttpResponse { status: 200, headers, body: b"hello from afar".to_vec() })
    }

    async fn reveal(&self, secret: &SecretGrant) -> Result<SecretBytes, HostFailure> {
        self.used();
        Ok(SecretBytes::new(format!("value of {}", secret.name).into_bytes()))
    }

    async fn storage(&self, space: &StorageGrant, request: StorageRequest) -> Result<StorageAnswer, HostFailure> {
        self.used();
        let mut stored = self.stored.lock().unwrap();
        let version = stored.values().map(|entry| entry.version).max().unwrap_or(0) + 1;
        let place = |key: String| (space.name.clone(), key);
        Ok(match request {
            StorageRequest::Get { key } => StorageAnswer::Entry(stored.get(&place(key)).cloned()),
            StorageRequest::Set { key, value } => {
                stored.insert(place(key), StorageEntry { value, version });
                StorageAnswer::Done
            }
            StorageRequest::Delete { key } => {
                stored.remove(&place(key));
                StorageAnswer::Done
            }
            StorageRequest::Keys { prefix, after, limit } => StorageAnswer::Keys(
                stored
                    .keys()
                    .filter(|(name, key)| *name == space.name && key.starts_with(&prefix))
                    .map(|(_, key)| key.clone())
                    .filter(|key| after.as_ref().is_none_or(|after| key > after))
                    .take(limit as usize)
                    .collect(),
            ),
            StorageRequest::Apply { expectations, changes } => {
                for expectation in expectations {
                    let found = stored.get(&place(expectation.key.clone())).map(|entry| entry.version);
                    if found != expectation.version {
                        return Ok(StorageAnswer::Outcome(StorageOutcome::Conflict(expectation.key)));
                    }
                }
                for change in changes {
                    match change.value {
                        Some(value) => drop(stored.insert(place(change.key), StorageEntry { value, version })),
                        None => drop(stored.remove(&place(change.key))),
                    }
                }
                StorageAnswer::Outcome(StorageOutcome::Committed(version))
            }
        })
    }

    async fn channel_send(&self, channel: &ChannelGrant, text: String) -> Result<String, HostFailure> {
        self.used();
        self.messages.lock().unwrap().push((channel.name.clone(), text));
        Ok("message-1".to_owned())
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.lines.lock().unwrap().push((level, message.to_owned()));
    }

    fn progress(&self, percent: Option<u8>, message: &str) {
        self.reports.lock().unwrap().push((percent, message.to_owned()));
    }

    fn config(&self) -> &BTreeMap<String, String> {
        &self.config
    }
}
