//! What lives in a store beside the guest: one value per call.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use palyra_common::Timestamp;

use crate::call::ExecutionMode;
use crate::meter::Meter;
use crate::randomness::Randomness;
use crate::shared::Shared;
use crate::wasi_http::WasiState;

/// The data of a store.
pub(crate) struct CallState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) meter: Meter,
    pub(crate) clock: CallClock,
    pub(crate) randomness: Randomness,
    pub(crate) random_bytes: u64,
    pub(crate) log_bytes: u64,
    /// Made when a guest that uses `wasi:http` first asks for it.
    pub(crate) wasi: Option<Box<WasiState>>,
}

/// What time the guest sees.
#[derive(Debug, Clone)]
pub(crate) enum CallClock {
    /// The machine's.
    Live { started: Instant },
    /// The same for ever; the monotonic clock moves by a microsecond each time it is read, so that a guest that waits for it gets on.
    Fixed { now: Timestamp, readings: u64 },
}

/// What a fixed monotonic clock moves by.
const STEP_NANOSECONDS: u64 = 1000;

impl CallClock {
    pub(crate) fn new(mode: &ExecutionMode) -> Self {
        match mode {
            ExecutionMode::Live => Self::Live { started: Instant::now() },
            ExecutionMode::Deterministic { now, .. } => Self::Fixed { now: *now, readings: 0 },
        }
    }

    /// Seconds and nanoseconds since 1970.
    pub(crate) fn wall(&self) -> (u64, u32) {
        match self {
            Self::Live { .. } => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                (since.as_secs(), since.subsec_nanos())
            }
            Self::Fixed { now, .. } => {
                let milliseconds = u64::try_from(now.0).unwrap_or(0);
                let rest = u32::try_from(milliseconds % 1000).unwrap_or(0);
                (milliseconds / 1000, rest * 1_000_000)
            }
        }
    }

    /// Nanoseconds since the call began.
    pub(crate) fn monotonic(&mut self) -> u64 {
        match self {
            Self::Live { started } => u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Self::Fixed { readings, .. } => {
                *readings = readings.saturating_add(1);
                readings.saturating_mul(STEP_NANOSECONDS)
            }
        }
    }
}
