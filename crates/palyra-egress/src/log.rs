//! The record of every connection: what was asked, what was decided, what went over it.
//!
//! A record is opened when a request is first understood and handed to the [`ConnectionLog`] exactly once, when the last byte has gone or the
//! request has failed, whichever way the code that served it ended. Records carry no header, no body, no query and no secret.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use palyra_common::{Clock, Timestamp, runtime_contract_enum};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::error::{EgressError, Refusal, RefusalReason};
use crate::host::Host;
use crate::target::Scheme;

runtime_contract_enum! {
    /// By which door a request came.
    pub enum Via("egress_via") {
        /// A request to the proxy with the whole address in its first line.
        HttpProxy = "http_proxy",
        /// A tunnel through the proxy.
        Connect = "connect",
        /// A SOCKS5 connection.
        Socks5 = "socks5",
        /// The client of this process.
        Client = "client",
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum ConnectionVerdict {
    /// It was allowed and went through.
    Allowed,
    /// It was refused.
    Refused {
        /// By which check.
        reason: RefusalReason,
        /// What was refused, for a person.
        message: String,
        /// The line that the grant would need.
        missing_line: Option<String>,
    },
    /// It was allowed and failed.
    Failed {
        /// Stable error code.
        code: &'static str,
        /// What failed, for a person.
        message: String,
    },
}

/// One connection or request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionRecord {
    /// The grant it was judged by.
    pub grant: String,
    /// By which door it came.
    pub via: Via,
    /// When it was understood.
    pub at: Timestamp,
    /// How the host was to be spoken to.
    pub scheme: Option<Scheme>,
    /// The host, in its canonical spelling; empty when it could not be read.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address that was connected to.
    pub address: Option<IpAddr>,
    /// The method, if it was visible.
    pub method: Option<String>,
    /// The path without the query, if it was visible.
    pub path: Option<String>,
    /// The status of the answer, if it was visible.
    pub status: Option<u16>,
    /// Whether TLS was opened by the proxy.
    pub inspected: bool,
    /// How many secrets were put into the request.
    pub credentials: usize,
    /// How often a secret was found in the answer and masked.
    pub masked: u64,
    /// Bytes to the host.
    pub bytes_up: u64,
    /// Bytes from the host.
    pub bytes_down: u64,
    /// How long it took.
    #[serde(rename = "duration_ms", serialize_with = "as_millis")]
    pub duration: Duration,
    /// How it ended.
    #[serde(flatten)]
    pub verdict: ConnectionVerdict,
}

fn as_millis<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Where records go. Called on the runtime: it must not block.
pub trait ConnectionLog: Send + Sync + 'static {
    /// Takes one record.
    fn record(&self, record: ConnectionRecord);
}

/// A log in memory.
#[derive(Debug, Default)]
pub struct MemoryLog(Mutex<Vec<ConnectionRecord>>);

impl MemoryLog {
    /// All records so far.
    #[must_use]
    pub fn records(&self) -> Vec<ConnectionRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ConnectionLog for MemoryLog {
    fn record(&self, record: ConnectionRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }
}

/// A log that forgets.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLog;

impl ConnectionLog for NoLog {
    fn record(&self, _: ConnectionRecord) {}
}

/// What is counted while bytes flow.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
    pub(crate) masked: AtomicU64,
}

/// A record that is still being written; dropping it hands it over.
pub(crate) struct OpenRecord {
    record: ConnectionRecord,
    began: Instant,
    meter: Arc<Meter>,
    log: Option<Arc<dyn ConnectionLog>>,
    /// Cancelled when the grant is withdrawn.
    grant_life: Option<CancellationToken>,
}

impl OpenRecord {
    pub(crate) fn open(log: &Arc<dyn ConnectionLog>, clock: &dyn Clock, grant: &str, via: Via) -> Self {
        let record = ConnectionRecord {
            grant: grant.to_owned(),
            via,
            at: clock.now(),
            scheme: None,
            host: String::new(),
            port: 0,
            address: None,
            method: None,
            path: None,
            status: None,
            inspected: false,
            credentials: 0,
            masked: 0,
            bytes_up: 0,
            bytes_down: 0,
            duration: Duration::ZERO,
            verdict: ConnectionVerdict::Allowed,
        };
        Self { record, began: Instant::now(), meter: Arc::default(), log: Some(Arc::clone(log)), grant_life: None }
    }

    /// Lets the record tell a transfer that was cut with its grant from one that ended.
    pub(crate) fn living_with(mut self, grant_life: CancellationToken) -> Self {
        self.grant_life = Some(grant_life);
        self
    }

    pub(crate) fn goes_to(&mut self, scheme: Option<Scheme>, host: &Host, port: u16) {
        self.record.scheme = scheme;
        self.record.host = host.to_string();
        self.record.port = port;
    }

    pub(crate) fn asks(&mut self, method: &str, path: &str) {
        self.record.method = Some(method.to_owned());
        self.record.path = Some(path.to_owned());
    }

    pub(crate) fn edit(&mut self) -> &mut ConnectionRecord {
        &mut self.record
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Drops the record unwritten, because others are written in its place.
    pub(crate) fn discard(&mut self) {
        self.log = None;
    }

    /// Notes how it ended, unless it failed before.
    pub(crate) fn ended(&mut self, error: &EgressError) {
        if self.record.verdict != ConnectionVerdict::Allowed {
            return;
        }
        self.record.verdict = match error {
            EgressError::Refused(refusal) => ConnectionVerdict::Refused {
                reason: refusal.reason,
                message: refusal.message.clone(),
                missing_line: refusal.missing_line(),
            },
            other => ConnectionVerdict::Failed { code: other.code(), message: other.to_string() },
        };
    }
}

impl Drop for OpenRecord {
    fn drop(&mut self) {
        let Some(log) = self.log.take() else { return };
        if self.grant_life.as_ref().is_some_and(CancellationToken::is_cancelled) {
            self.ended(
                &Refusal::new(
                    RefusalReason::Revoked,
                    "the transfer was cut off because its grant was withdrawn or replaced",
                )
                .into(),
            );
        }
        let mut record = self.record.clone();
        record.duration = self.began.elapsed();
        record.bytes_up = self.meter.up.load(Ordering::Relaxed);
        record.bytes_down = self.meter.down.load(Ordering::Relaxed);
        record.masked = self.meter.masked.load(Ordering::Relaxed);
        log.record(record);
    }
}
