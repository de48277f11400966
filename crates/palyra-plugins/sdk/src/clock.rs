//! What time it is. Fixed when a call is replayed.

use std::time::Duration;

use crate::bindings::host::palyra::host::clock as wit;

/// Since 1970.
#[must_use]
pub fn now() -> Duration {
    let instant = wit::now();
    Duration::new(instant.seconds, instant.nanoseconds)
}

/// Since some moment before the call began.
#[must_use]
pub fn monotonic() -> Duration {
    Duration::from_nanos(wit::monotonic())
}
