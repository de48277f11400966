//! How work grows with its size.

/// The exponent `k` of `value ≈ c · size^k`: the slope of the least-squares line through the logarithms.
///
/// 0 is flat, 1 is linear, 2 is quadratic. `None` unless both lists have the same length, at least two sizes differ, and
/// every number is finite and above zero.
#[must_use]
pub fn exponent(sizes: &[f64], values: &[f64]) -> Option<f64> {
    let usable = |number: &f64| number.is_finite() && *number > 0.0;
    if sizes.len() != values.len() || sizes.len() < 2 || !sizes.iter().chain(values).all(usable) {
        return None;
    }
    let points: Vec<(f64, f64)> = sizes.iter().zip(values).map(|(size, value)| (size.ln(), value.ln())).collect();
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (variance > f64::EPSILON).then(|| covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left - right).abs() < 1e-9)
    }

    #[test]
    fn known_curves_give_their_exponent() {
        let sizes = [1e4, 1e5, 1e6];
        for power in [0.0, 0.5, 1.0, 2.0] {
            let values: Vec<f64> = sizes.iter().map(|size: &f64| 3.0 * size.powf(power)).collect();
            assert!(close(exponent(&sizes, &values), power), "power {power}");
        }
    }

    #[test]
    fn a_single_outlier_tilts_but_does_not_decide() {
        let slope = exponent(&[1e4, 1e5, 1e6], &[1.0, 10.0, 150.0]).unwrap();
        assert!(slope > 1.0 && slope < 1.2, "{slope}");
    }

    #[test]
    fn unusable_points_give_nothing() {
        let table: [(&[f64], &[f64]); 6] = [
            (&[], &[]),
            (&[10.0], &[1.0]),
            (&[10.0, 100.0], &[1.0]),
            (&[10.0, 10.0], &[1.0, 2.0]),
            (&[10.0, 100.0], &[0.0, 2.0]),
            (&[10.0, f64::INFINITY], &[1.0, 2.0]),
        ];
        for (sizes, values) in table {
            assert_eq!(exponent(sizes, values), None, "{sizes:?} {values:?}");
        }
    }
}
