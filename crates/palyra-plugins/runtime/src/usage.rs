//! What a call used, counted while it runs and reported however it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a call used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginUsage {
    /// Steps of guest code. The same for the same input in deterministic mode.
    pub fuel: u64,
    /// Linear memory at its largest.
    pub memory_bytes: u64,
    /// From start to end, time in host calls included, time in the queue not.
    pub wall: Duration,
    /// Size of what the guest gave back.
    pub output_bytes: u64,
    /// How often the guest called what, by name; only what was called.
    pub host_calls: BTreeMap<String, u32>,
    /// How many of these calls were refused for want of a grant.
    pub denials: u32,
}

/// Functions of the host, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostCall {
    Capabilities,
    HttpSend,
    WasiHttp,
    SecretReveal,
    StorageGet,
    StorageSet,
    StorageDelete,
    StorageKeys,
    StorageApply,
    ChannelSend,
    LogWrite,
    ProgressReport,
    ClockNow,
    ClockMonotonic,
    RandomBytes,
    ConfigGet,
    ConfigKeys,
}

impl HostCall {
    const ALL: [Self; 17] = [
        Self::Capabilities,
        Self::HttpSend,
        Self::WasiHttp,
        Self::SecretReveal,
        Self::StorageGet,
        Self::StorageSet,
        Self::StorageDelete,
        Self::StorageKeys,
        Self::StorageApply,
        Self::ChannelSend,
        Self::LogWrite,
        Self::ProgressReport,
        Self::ClockNow,
        Self::ClockMonotonic,
        Self::RandomBytes,
        Self::ConfigGet,
        Self::ConfigKeys,
    ];

    /// As it stands in [`PluginUsage::host_calls`] and in errors.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Capabilities => "capabilities",
            Self::HttpSend => "http.send",
            Self::WasiHttp => "wasi:http",
            Self::SecretReveal => "secret-reveal.reveal",
            Self::StorageGet => "storage.get",
            Self::StorageSet => "storage.set",
            Self::StorageDelete => "storage.delete",
            Self::StorageKeys => "storage.keys",
            Self::StorageApply => "storage.apply",
            Self::ChannelSend => "channel.send",
            Self::LogWrite => "log.write",
            Self::ProgressReport => "progress.report",
            Self::ClockNow => "clock.now",
            Self::ClockMonotonic => "clock.monotonic",
            Self::RandomBytes => "random.bytes",
            Self::ConfigGet => "config.get",
            Self::ConfigKeys => "config.keys",
        }
    }
}

/// Counters of one call. Atomic because requests through `wasi:http` are sent by tasks of their own.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    each: [AtomicU32; HostCall::ALL.len()],
    total: AtomicU32,
    denials: AtomicU32,
}

impl Counters {
    /// Counts one call and gives the number of calls in all, this one included.
    pub(crate) fn add(&self, call: HostCall) -> u32 {
        if let Some(counter) = self.each.get(call as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.total.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// How often these were called together.
    pub(crate) fn sum(&self, calls: &[HostCall]) -> u32 {
        calls
            .iter()
            .filter_map(|call| self.each.get(*call as usize))
            .fold(0, |sum, counter| sum.saturating_add(counter.load(Ordering::Relaxed)))
    }

    pub(crate) fn add_denial(&self) {
        self.denials.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn denials(&self) -> u32 {
        self.denials.load(Ordering::Relaxed)
    }

    /// The counts that are not zero.
    pub(crate) fn report(&self) -> BTreeMap<String, u32> {
        HostCall::ALL
            .iter()
            .zip(&self.each)
            .map(|(call, counter)| (call.name(), counter.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_counted_under_its_name() {
        let counters = Counters::default();
        for (index, call) in HostCall::ALL.into_iter().enumerate() {
            assert_eq!(call as usize, index);
            for _ in 0..=index {
                counters.add(call);
            }
        }
        let report = counters.report();
        assert_eq!(report.len(), HostCall::ALL.len(), "names are unique");
        assert_eq!(report["capabilities"], 1);
        assert_eq!(report["config.keys"], 17);
        assert_eq!(counters.sum(&[HostCall::HttpSend, HostCall::WasiHttp]), 5);
    }
}
