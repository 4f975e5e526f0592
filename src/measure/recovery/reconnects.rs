//! By how much reconnects multiplied.

use super::HubRows;
use crate::event::Offset;
use serde::Serialize;
use std::ops::Range;

/// The rate of reconnects over 60 seconds, against that of the quiet time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReconnectMultiplier {
    pub baseline_per_second: f64,
    /// True if the quiet time had fewer than one reconnect in an hour of the whole fleet, which then stands in for it.
    pub floored: bool,
    pub peak_per_second: f64,
    /// End of the peak's 60 seconds.
    pub peak_at: Offset,
    /// Peak over baseline.
    pub times: f64,
    /// Seconds in which the rate was above twice the baseline.
    pub above_double_seconds: u64,
    /// Reconnects beyond the baseline, for each hub of the fleet.
    pub extra_per_hub: f64,
}

const WINDOW_SECONDS: usize = 60;

/// One reconnect in an hour, whatever the size of the fleet: only there so that nothing is divided by zero.
const FLOOR_PER_SECOND: f64 = 1.0 / 3600.0;

/// The multiplier over the rows `effect`, against the rows `quiet`; `None` without hubs or without rows.
pub(super) fn multiplier(
    hubs: &HubRows,
    quiet: &Range<usize>,
    effect: Range<usize>,
    offset_of: impl Fn(usize) -> Offset,
) -> Option<ReconnectMultiplier> {
    let quiet_rows = hubs
        .reconnects
        .get(quiet.clone())
        .filter(|rows| !rows.is_empty())?;
    let effect_rows = hubs
        .reconnects
        .get(effect.clone())
        .filter(|rows| !rows.is_empty())?;
    let measured = quiet_rows.iter().sum::<f64>() / quiet_rows.len() as f64;
    let baseline = measured.max(FLOOR_PER_SECOND);
    let (mut peak, mut peak_row, mut above, mut in_window) = (0.0_f64, effect.start, 0, 0.0);
    for (number, reconnects) in effect_rows.iter().enumerate() {
        in_window += reconnects;
        if number >= WINDOW_SECONDS {
            in_window -= effect_rows[number - WINDOW_SECONDS];
        }
        // Before the window is full it reaches back into the quiet time, whose rate is known.
        let missing = WINDOW_SECONDS.saturating_sub(number + 1) as f64;
        let rate = (in_window + missing * measured) / WINDOW_SECONDS as f64;
        above += u64::from(rate > 2.0 * baseline);
        if rate > peak {
            (peak, peak_row) = (rate, effect.start + number);
        }
    }
    let extra = effect_rows.iter().sum::<f64>() - measured * effect_rows.len() as f64;
    Some(ReconnectMultiplier {
        baseline_per_second: measured,
        floored: measured < FLOOR_PER_SECOND,
        peak_per_second: peak,
        peak_at: offset_of(peak_row + 1),
        times: peak / baseline,
        above_double_seconds: above,
        extra_per_hub: if hubs.hubs == 0 {
            0.0
        } else {
            extra.max(0.0) / hubs.hubs as f64
        },
    })
}
