//! Token counts of chat completions, in the spellings of the field.

use serde_json::Value;

use crate::event::Usage;
use crate::wire::Counts;

/// Micro-USD in a dollar.
const MICRO: f64 = 1_000_000.0;

/// Most that one call can have cost: ten thousand dollars, far above the largest request to the dearest model.
const MAX_CALL_MICRO_USD: u64 = 10_000_000_000;

/// Reads a `usage` object; nothing if its counts cannot be read.
pub(super) fn read(usage: &Value) -> Option<Usage> {
    let mut counts = Counts::of(usage);
    let read = Usage {
        input_tokens: counts.at(&["/prompt_tokens"]),
        output_tokens: counts.at(&["/completion_tokens"]),
        cached_tokens: counts.at(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]),
        cache_write_tokens: counts.at(&["/prompt_tokens_details/cache_write_tokens"]),
        reasoning_tokens: counts.at(&["/completion_tokens_details/reasoning_tokens"]),
        cost_micro_usd: usage
            .get("cost")
            .and_then(Value::as_f64)
            .and_then(micro_usd)
            .filter(|cost| *cost <= MAX_CALL_MICRO_USD),
    };
    counts.finish(read)
}

/// Dollars as servers write them, rounded up to whole micro-dollars; none for nonsense.
pub(crate) fn micro_usd(dollars: f64) -> Option<u64> {
    let micro = (dollars * MICRO).ceil();
    // What a call or a million tokens can cost lies far below 2⁵³, up to where such numbers are exact.
    let sane = micro.is_finite() && (0.0..9.0e15).contains(&micro);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked just above")]
    sane.then_some(micro as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_are_found_wherever_servers_put_them() {
        let full = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "cost": 0.001_234_5,
            "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 12}});
        let expected = Usage {
            cached_tokens: 64,
            cache_write_tokens: 8,
            reasoning_tokens: 12,
            cost_micro_usd: Some(1235),
            ..Usage::plain(100, 20)
        };
        assert_eq!(read(&full), Some(expected));
        let other = json!({"prompt_tokens": 7, "completion_tokens": 1, "prompt_cache_hit_tokens": 5, "cost": "free",
            "prompt_tokens_details": null});
        assert_eq!(read(&other), Some(Usage { cached_tokens: 5, ..Usage::plain(7, 1) }));
        for unreadable in [json!(-1), json!(1.5), json!("12"), json!(1_000_000_000_000_000_000_u64)] {
            assert_eq!(read(&json!({"prompt_tokens": 3, "completion_tokens": unreadable})), None);
        }
        let dear = read(&json!({"prompt_tokens": 3, "cost": 1e9})).unwrap();
        assert_eq!(dear.cost_micro_usd, None, "no call costs a billion dollars");
    }

    #[test]
    fn nonsense_costs_nothing_that_can_be_believed() {
        for dollars in [f64::NAN, f64::INFINITY, -0.1, 1e12] {
            assert_eq!(micro_usd(dollars), None);
        }
        assert_eq!((micro_usd(0.0), micro_usd(0.000_000_1), micro_usd(2.5)), (Some(0), Some(1), Some(2_500_000)));
    }
}
