//! Whether a column goes up or down.

/// Rows that a slope is made of at most: all pairs are many.
const MOST_POINTS: usize = 120;

/// A line through some seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    /// Per second (Theil–Sen: the middle of the slopes of all pairs).
    pub slope: f64,
    /// Change from the first to the last second.
    pub moved: f64,
    /// Standard error of that change, by the residuals' median absolute deviation.
    pub error: f64,
}

/// The trend of points (second, value) in the order of their seconds; `None` with fewer than three.
pub(super) fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    if points.len() < 3 {
        return None;
    }
    let step = points.len().div_ceil(MOST_POINTS);
    let points: Vec<(f64, f64)> = points.iter().copied().step_by(step).collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (number, (x, y)) in points.iter().enumerate() {
        let later = points[number + 1..].iter();
        slopes.extend(later.map(|(later, value)| (value - y) / (later - x)));
    }
    let slope = median_of(&mut slopes)?;
    let moved = slope * (points.last()?.0 - points.first()?.0);
    let mut residuals: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    let middle = median_of(&mut residuals)?;
    for residual in &mut residuals {
        *residual = (*residual - middle).abs();
    }
    let deviation = 1.4826 * median_of(&mut residuals)?;
    // The standard error of a slope times the length: σ √(12 ÷ n).
    let error = deviation * (12.0 / points.len() as f64).sqrt();
    Some(Trend {
        slope,
        moved,
        error,
    })
}

/// The middle of the values, the mean of the two in the middle for an even number; changes their order.
pub(super) fn median_of(values: &mut [f64]) -> Option<f64> {
    let half = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let is_even = values.len().is_multiple_of(2);
    let (below, middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let middle = *middle;
    if !is_even {
        return Some(middle);
    }
    let below = below.iter().copied().max_by(f64::total_cmp)?;
    Some(f64::midpoint(below, middle))
}
