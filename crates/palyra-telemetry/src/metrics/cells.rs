//! The numbers themselves: atomics, so that counting never waits for anybody.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Takes over a count that is kept elsewhere; a smaller one is stale and ignored.
    pub(crate) fn raise_to(&self, total: u64) {
        self.0.fetch_max(total, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicI64);

impl Gauge {
    pub(crate) fn add(&self, amount: i64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(i64::try_from(value).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds for what a daemon answers by itself, in microseconds: from what a cache answers to what a person notices.
pub(crate) const QUICK: &[u64] =
    &[100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];
/// Upper bounds for models and tools, in microseconds: those the GenAI conventions advise.
pub(crate) const SLOW: &[u64] = &[
    10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 1_280_000, 2_560_000, 5_120_000, 10_240_000, 20_480_000,
    40_960_000, 81_920_000,
];

/// How long things took: a count per range of durations.
#[derive(Debug)]
pub(crate) struct Histogram {
    bounds: &'static [u64],
    /// One count per bound and one for everything longer.
    counts: Box<[AtomicU64]>,
    sum_micros: AtomicU64,
}

/// What a histogram held at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistogramValue {
    pub(crate) bounds: &'static [u64],
    /// Counts up to and including each bound, then the count of all.
    pub(crate) cumulative: Vec<u64>,
    pub(crate) sum_micros: u64,
}

impl HistogramValue {
    pub(crate) fn count(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or_default()
    }
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::default()).collect();
        Self { bounds, counts, sum_micros: AtomicU64::default() }
    }

    pub(crate) fn observe(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let place = self.bounds.partition_point(|bound| *bound < micros);
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
            self.sum_micros.fetch_add(micros, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> HistogramValue {
        let mut total = 0;
        let cumulative = self
            .counts
            .iter()
            .map(|count| {
                total += count.load(Ordering::Relaxed);
                total
            })
            .collect();
        HistogramValue { bounds: self.bounds, cumulative, sum_micros: self.sum_micros.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_up_to_its_bound() {
        let histogram = Histogram::new(QUICK);
        for micros in [0, 100, 101, 5_000_000, 5_000_001] {
            histogram.observe(Duration::from_micros(micros));
        }
        let value = histogram.get();
        assert_eq!(value.cumulative[0], 2, "0 and 100 are at most 100");
        assert_eq!(value.cumulative[1], 3);
        assert_eq!(value.cumulative[QUICK.len() - 1], 4);
        assert_eq!(value.count(), 5);
        assert_eq!(value.sum_micros, 10_000_202);
    }

    #[test]
    fn a_stale_count_is_ignored() {
        let counter = Counter::default();
        counter.raise_to(7);
        counter.raise_to(3);
        assert_eq!(counter.get(), 7);
    }
}
