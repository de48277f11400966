//! Repeated measurements and what is said about them.
//!
//! Machines are noisy: a measurement warms up, repeats, and reports the median with its spread. Two things that are
//! compared are measured in turns ([`measure_against`]), so that a slow moment of the machine hits both.

use std::convert::Infallible;
use std::time::Instant;

/// One or more finite measurements of the same thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    // INVARIANT: not empty, all finite, ascending.
    sorted: Vec<f64>,
}

impl Samples {
    /// Samples from values measured elsewhere; `None` if there are none or one is not finite.
    #[must_use]
    pub fn from_values(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self { sorted: values })
    }

    /// How many measurements there are.
    #[must_use]
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// The smallest.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.quantile(0.0)
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// The middle one, or the mean of the two middle ones.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The same as the median.
    #[must_use]
    pub fn p50(&self) -> f64 {
        self.median()
    }

    /// The value that 99 of 100 measurements stay at or below.
    #[must_use]
    pub fn p99(&self) -> f64 {
        self.quantile(0.99)
    }

    /// The value at a quantile between 0 and 1, interpolated between neighbours.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        let position = quantile.clamp(0.0, 1.0) * last as f64;
        let below = position.floor() as usize;
        let low = self.sorted.get(below).copied().unwrap_or_default();
        let high = self.sorted.get(below + 1).copied().unwrap_or(low);
        low + (high - low) * (position - below as f64)
    }

    /// Width of the middle half as a share of the median: 0.1 means that half of all measurements lie within ±5 %.
    /// Zero when the median is zero.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let median = self.median();
        if median == 0.0 { 0.0 } else { (self.quantile(0.75) - self.quantile(0.25)) / median.abs() }
    }
}

/// Runs `work` `warmup` times unmeasured and then `repeats` times (at least once); the samples are seconds per call.
pub fn measure(warmup: u32, repeats: u32, mut work: impl FnMut()) -> Samples {
    let measured: Result<Samples, Infallible> = try_measure(warmup, repeats, || {
        work();
        Ok(())
    });
    match measured {
        Ok(samples) => samples,
        Err(never) => match never {},
    }
}

/// Like [`measure`] for work that can fail; the first failure ends the measurement.
///
/// # Errors
/// Whatever `work` returned.
pub fn try_measure<E>(warmup: u32, repeats: u32, mut work: impl FnMut() -> Result<(), E>) -> Result<Samples, E> {
    for _ in 0..warmup {
        work()?;
    }
    let mut seconds = Vec::new();
    for _ in 0..repeats.max(1) {
        seconds.push(timed(&mut work)?);
    }
    Ok(sorted(seconds))
}

/// Measures two things in turns and returns their samples in the order given: the subject and its reference.
///
/// # Errors
/// Whatever the first failing one returned.
pub fn measure_against<E>(
    warmup: u32,
    repeats: u32,
    mut subject: impl FnMut() -> Result<(), E>,
    mut reference: impl FnMut() -> Result<(), E>,
) -> Result<(Samples, Samples), E> {
    for _ in 0..warmup {
        subject()?;
        reference()?;
    }
    let (mut of_subject, mut of_reference) = (Vec::new(), Vec::new());
    for round in 0..repeats.max(1) {
        // The order alternates, so that neither side always inherits the caches the other one left.
        if round % 2 == 0 {
            of_subject.push(timed(&mut subject)?);
            of_reference.push(timed(&mut reference)?);
        } else {
            of_reference.push(timed(&mut reference)?);
            of_subject.push(timed(&mut subject)?);
        }
    }
    Ok((sorted(of_subject), sorted(of_reference)))
}

fn timed<E>(work: &mut impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

/// Elapsed times are finite and there is at least one, so the invariant holds without a check.
fn sorted(mut seconds: Vec<f64>) -> Samples {
    seconds.sort_by(f64::total_cmp);
    Samples { sorted: seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let samples = Samples::from_values(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((samples.min(), samples.median(), samples.max(), samples.n()), (1.0, 2.5, 4.0, 4));
        assert!((samples.p99() - 3.97).abs() < 1e-9);
        assert!((samples.spread() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn one_sample_is_its_own_everything() {
        let samples = Samples::from_values(vec![7.0]).unwrap();
        assert_eq!((samples.p50(), samples.p99(), samples.spread()), (7.0, 7.0, 0.0));
    }

    #[test]
    fn nothing_and_not_a_number_are_refused() {
        assert_eq!(Samples::from_values(Vec::new()), None);
        assert_eq!(Samples::from_values(vec![1.0, f64::NAN]), None);
        assert_eq!(Samples::from_values(vec![f64::INFINITY]), None);
    }

    #[test]
    fn warm_up_runs_but_does_not_count() {
        let mut calls = 0;
        assert_eq!(measure(3, 5, || calls += 1).n(), 5);
        assert_eq!(calls, 8);
        assert_eq!(measure(0, 0, || ()).n(), 1);
    }

    #[test]
    fn both_sides_are_measured_equally_often() {
        let order = std::cell::RefCell::new(String::new());
        let note = |letter| {
            order.borrow_mut().push(letter);
            Ok::<(), Infallible>(())
        };
        let (subject, reference) = measure_against(1, 2, || note('s'), || note('r')).unwrap();
        assert_eq!((subject.n(), reference.n()), (2, 2));
        assert_eq!(order.into_inner(), "srsrrs");
    }

    #[test]
    fn a_failure_ends_the_measurement() {
        let mut calls = 0;
        let result = try_measure(0, 10, || {
            calls += 1;
            if calls == 3 { Err("third") } else { Ok(()) }
        });
        assert_eq!((result, calls), (Err("third"), 3));
    }
}
