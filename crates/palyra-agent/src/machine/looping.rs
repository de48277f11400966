//! Loop detection: the same call with the same arguments and the same result, time and again.
//!
//! A model that is stuck repeats itself. Repetition is only futile while nothing changes, so a call that may change something and was
//! never made before forgives all earlier repetitions; two writes that alternate for ever are still caught, because both were made before.

use palyra_common::Digest;
use palyra_tools::Concurrency;

use super::state::SeenCalls;
use crate::canonical::canonical_json;

/// One finished call, as loop detection sees it.
pub(super) struct FinishedCall<'a> {
    pub tool: &'a str,
    pub arguments: &'a serde_json::Value,
    pub content: &'a str,
    pub concurrency: Concurrency,
}

/// Notes a finished call and returns how often exactly this has now been seen.
pub(super) fn note(seen: &mut SeenCalls, call: &FinishedCall<'_>) -> u32 {
    let key =
        Digest::of_parts(&[call.tool.as_bytes(), canonical_json(call.arguments).as_bytes(), call.content.as_bytes()]);
    if call.concurrency == Concurrency::Exclusive && !seen.contains_key(&key) {
        for count in seen.values_mut() {
            *count = 0;
        }
    }
    let count = seen.entry(key).or_insert(0);
    *count += 1;
    *count
}
