//! The parts of TLS that servers and clients share: ring and nothing else, time from the injected clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{Clock, Timestamp};
use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, ring};
use rustls::time_provider::TimeProvider;
use rustls::version::{TLS12, TLS13};
use rustls_pki_types::UnixTime;

/// Whether clients show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// They are not asked.
    None,
    /// They may; one that is shown must be good.
    Optional,
    /// They must.
    Required,
}

/// Which versions of TLS are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersions {
    /// TLS 1.3 alone, as QUIC wants it.
    Tls13Only,
    /// TLS 1.2 too, for older clients over TCP.
    Tls12AndLater,
}

static NEWEST: [&SupportedProtocolVersion; 1] = [&TLS13];
static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

impl TlsVersions {
    pub(crate) fn list(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls13Only => &NEWEST,
            Self::Tls12AndLater => &BOTH,
        }
    }
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

pub(crate) fn protocols(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|protocol| protocol.to_vec()).collect()
}

pub(crate) fn unix_time(at: Timestamp) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(at.0).unwrap_or(0)))
}

/// The injected clock, for rustls: what issues certificates also says whether they are over.
pub(crate) struct ClockTime(pub(crate) Arc<dyn Clock>);

impl fmt::Debug for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClockTime")
    }
}

impl TimeProvider for ClockTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(unix_time(self.0.now()))
    }
}
