//! Answers that may be kept, and the small store that keeps them.
//!
//! Kept is a complete `200` answer to a `GET` that names no credential, whose headers allow a shared cache to keep it, and that either says how
//! long it is fresh or carries a validator to ask again with. Answers of hosts that secrets are bound to are never kept. Looking into the cache comes after
//! the rules, and what a grant may reach is part of the key: a grant does not see what another one fetched from where it may not go itself.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use http::header::{AUTHORIZATION, COOKIE, IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE};
use palyra_common::Timestamp;

use super::fetch::{FetchResponse, Served, Step};
use crate::rules::EgressGrant;
use crate::target::Target;

/// Longest time that an answer is taken for fresh, whatever it says itself.
const FRESH_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
const ENTRY_LIMIT: usize = 256;
const BYTE_LIMIT: usize = 32 << 20;

/// A place for answers. A store that loses them costs time only; one that fails should forget.
#[async_trait]
pub trait CacheStore: Send + Sync + 'static {
    /// The answer kept under a key.
    async fn get(&self, key: &str) -> Option<CachedAnswer>;
    /// Keeps an answer.
    async fn put(&self, key: &str, answer: CachedAnswer);
    /// Forgets an answer.
    async fn remove(&self, key: &str);
}

/// An answer that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedAnswer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The decoded body.
    pub body: Bytes,
    /// The validator by content.
    pub etag: Option<String>,
    /// The validator by date.
    pub last_modified: Option<String>,
    /// Until when it needs no asking.
    pub fresh_until: Timestamp,
}

/// Whether an answer may be kept.
pub(super) enum Storable {
    Yes(CachedAnswer),
    No,
}

impl CachedAnswer {
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.fresh_until
    }

    /// Judges an answer from the network.
    pub(super) fn judge(answer: &FetchResponse, now: Timestamp) -> Storable {
        let control = Control::read(answer);
        let varies = answer.header("vary").is_some_and(|vary| {
            vary.split(',')
                .any(|name| !matches!(name.trim().to_ascii_lowercase().as_str(), "accept-encoding" | "accept" | ""))
        });
        let etag = answer.header("etag").map(str::to_owned);
        let last_modified = answer.header("last-modified").map(str::to_owned);
        let useful = !control.fresh.is_zero() || etag.is_some() || last_modified.is_some();
        if answer.status != 200
            || control.forbidden
            || varies
            || !useful
            || answer.headers.iter().any(|(name, _)| name == "set-cookie")
        {
            return Storable::No;
        }
        Storable::Yes(Self {
            status: answer.status,
            headers: answer.headers.clone(),
            body: answer.body.clone(),
            etag,
            last_modified,
            fresh_until: now.plus(control.fresh),
        })
    }

    /// The same answer after the host said that it is still current.
    pub(super) fn renewed(mut self, not_modified: &FetchResponse, now: Timestamp) -> Self {
        self.fresh_until = now.plus(Control::read(not_modified).fresh);
        self
    }

    pub(super) fn to_response(
        &self,
        target: &Target,
        served: Served,
        address: Option<std::net::IpAddr>,
    ) -> FetchResponse {
        FetchResponse {
            status: self.status,
            url: target.url(),
            redirects: Vec::new(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            served,
            address,
        }
    }

    fn weight(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.body.len() + headers + 256
    }
}

/// What an answer says about keeping it.
struct Control {
    forbidden: bool,
    fresh: Duration,
}

impl Control {
    fn read(answer: &FetchResponse) -> Self {
        let mut control = Self { forbidden: false, fresh: Duration::ZERO };
        let mut shared = None;
        let mut age = None;
        let mut ask_first = false;
        for (name, value) in &answer.headers {
            if name != "cache-control" {
                continue;
            }
            for directive in value.to_ascii_lowercase().split(',') {
                let (key, number) = directive.trim().split_once('=').unwrap_or((directive.trim(), ""));
                match key {
                    "no-store" | "private" => control.forbidden = true,
                    "no-cache" => ask_first = true,
                    "s-maxage" => shared = number.trim_matches('"').parse().ok(),
                    "max-age" => age = number.trim_matches('"').parse().ok(),
                    _ => {}
                }
            }
        }
        let spent: u64 = answer.header("age").and_then(|age| age.parse().ok()).unwrap_or(0);
        let seconds: u64 = if ask_first { 0 } else { shared.or(age).unwrap_or(0) };
        control.fresh = Duration::from_secs(seconds.saturating_sub(spent)).min(FRESH_LIMIT);
        control
    }
}

/// What an answer is kept under.
pub(super) struct CacheKey(String);

impl CacheKey {
    /// `None` for requests whose answer is nobody else's, or not a whole one.
    pub(super) fn of(step: &Step, grant: &EgressGrant) -> Option<Self> {
        let personal = [AUTHORIZATION, COOKIE, RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE]
            .iter()
            .any(|name| step.headers.contains_key(name));
        let bound = grant.credentials.iter().any(|credential| credential.host == step.target.host);
        // Headers that the caller chose itself may identify it or change the answer; only `Accept` is part of the key.
        let unknown = step.headers.keys().any(|name| !matches!(name.as_str(), "accept" | "user-agent"));
        if step.method != Method::GET || personal || bound || unknown || !step.body.is_empty() {
            return None;
        }
        let accept = step.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
        // A grant that may not reach the address behind the name does not see what one that may has fetched from there.
        let reach: Vec<String> =
            grant.private_hosts.iter().filter(|line| line.host == step.target.host).map(ToString::to_string).collect();
        Some(Self(format!("{}\n{accept}\n{}", step.target.url(), reach.join(","))))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A bounded cache in memory: the entry that was not used for longest goes first.
#[derive(Debug, Default)]
pub struct MemoryCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<String, CachedAnswer>,
    /// Keys from the longest unused to the latest.
    order: VecDeque<String>,
    bytes: usize,
}

impl Entries {
    fn touch(&mut self, key: &str) {
        self.order.retain(|other| other != key);
        self.order.push_back(key.to_owned());
    }

    fn remove(&mut self, key: &str) {
        if let Some(answer) = self.by_key.remove(key) {
            self.bytes = self.bytes.saturating_sub(answer.weight() + key.len());
            self.order.retain(|other| other != key);
        }
    }
}

#[async_trait]
impl CacheStore for MemoryCache {
    async fn get(&self, key: &str) -> Option<CachedAnswer> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.by_key.get(key).cloned()?;
        entries.touch(key);
        Some(found)
    }

    async fn put(&self, key: &str, answer: CachedAnswer) {
        let weight = answer.weight() + key.len();
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(key);
        if weight > BYTE_LIMIT / 4 {
            return;
        }
        while entries.bytes + weight > BYTE_LIMIT || entries.by_key.len() >= ENTRY_LIMIT {
            let Some(oldest) = entries.order.front().cloned() else { break };
            entries.remove(&oldest);
        }
        entries.bytes += weight;
        entries.by_key.insert(key.to_owned(), answer);
        entries.touch(key);
    }

    async fn remove(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
