//! Whether the generator itself is well enough to trust its numbers.

use super::{Page, Seen};
use crate::measure::Histogram;

/// What the process uses, as its operator saw it last.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Health {
    /// Processor time since the start over time since the start: 1 for one core.
    pub cpu_ratio: Option<f64>,
    pub resident_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub open_files_limit: Option<u64>,
}

/// The generator's own figures.
pub(super) fn generator(seen: &Seen<'_>, page: &mut Page) {
    let totals = seen.collector.totals();
    let lag = Histogram::sum(totals.operations.iter().map(|row| &row.lag));
    page.histograms("rushhour_generator_lag_seconds", [(Vec::new(), &lag)]);
    let health = seen.health;
    let gauges = [
        ("rushhour_generator_cpu_ratio", health.cpu_ratio),
        (
            "rushhour_generator_resident_bytes",
            health.resident_bytes.map(|bytes| bytes as f64),
        ),
        (
            "rushhour_generator_open_files",
            health.open_files.map(|files| files as f64),
        ),
        (
            "rushhour_generator_open_files_limit",
            health.open_files_limit.map(|files| files as f64),
        ),
    ];
    for (name, value) in gauges {
        page.family(name, value.map(|value| (Vec::new(), value)));
    }
    page.family(
        "rushhour_generator_lost_steps_total",
        [(Vec::new(), totals.lost_steps as f64)],
    );
}
