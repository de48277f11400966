//! Hostile guests. Each does one bad thing and ends in its own error, and after each of them the same runtime serves an honest call.

mod code;
mod handles;
mod loading;
mod requests;
mod values;

use std::sync::Arc;
use std::time::Duration;

use palyra_common::ToStableError;
use palyra_plugins_runtime::{CallOptions, CapabilityGrantSet, HostCallLimits, RuntimeLimits};

use crate::harness::{Desk, RUNTIME, all_grants, call_with, options, prepare, tool};

/// One bad guest.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) wasm: Vec<u8>,
    pub(crate) limits: RuntimeLimits,
    pub(crate) grants: CapabilityGrantSet,
    /// The stable code of the error, or `=` and the output of a guest that was contained without ending.
    pub(crate) ends: &'static str,
}

/// A guest under the usual limits with one grant of every kind.
pub(crate) fn hostile(name: &'static str, wasm: Vec<u8>, ends: &'static str) -> Hostile {
    Hostile { name, wasm, limits: RuntimeLimits::default(), grants: all_grants(), ends }
}

/// The same with other limits.
pub(crate) fn limited(name: &'static str, wasm: Vec<u8>, limits: RuntimeLimits, ends: &'static str) -> Hostile {
    Hostile { limits, ..hostile(name, wasm, ends) }
}

/// Enough fuel for anything, so that another limit has to hold.
pub(crate) fn endless() -> RuntimeLimits {
    RuntimeLimits { fuel_budget: u64::MAX, wall_clock: Duration::from_millis(200), ..RuntimeLimits::default() }
}

/// Few calls to the host.
pub(crate) fn few_calls() -> RuntimeLimits {
    RuntimeLimits { host_calls: HostCallLimits { total: 100, ..HostCallLimits::default() }, ..RuntimeLimits::default() }
}

/// Runs all of them, each followed by an honest call; gives how many there were.
pub(crate) async fn all_end_as_they_should(guests: Vec<Hostile>) {
    let honest = prepare(&tool("", "(call $answer (local.get $input) (local.get $input_len))"));
    let count = guests.len();
    for guest in guests {
        let desk = Arc::new(Desk::default());
        let ended = match RUNTIME.prepare(&guest.wasm) {
            Err(error) => error.to_stable().code,
            Ok(plugin) => {
                let options = CallOptions { limits: guest.limits, ..options(&desk, guest.grants) };
                match call_with(&plugin, "{}", options).await {
                    Ok(done) => format!("={}", done.value),
                    Err(failed) => {
                        let stable = failed.to_stable();
                        assert!(stable.message.len() < 1500 && !stable.message.contains('\n'), "{}", guest.name);
                        if stable.code == guest.ends { stable.code } else { format!("{stable}") }
                    }
                }
            }
        };
        assert_eq!(ended, guest.ends, "{}", guest.name);
        let served = call_with(&honest, "still here", CallOptions::default()).await;
        assert_eq!(served.unwrap().value, "still here", "after {}", guest.name);
    }
    let resident = resident_bytes();
    assert!(resident < 768 << 20, "{count} guests left {resident} bytes behind");
}

/// Memory of this process.
pub(crate) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}
