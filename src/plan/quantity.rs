//! How amounts are written, the same in files, problems and plans.

use std::time::Duration;

/// A duration as files write it, in the largest unit in which it is a whole number: `90s`, `2m`, `500ms`; `16.5s` where there
/// is none.
#[must_use]
pub fn duration(time: Duration) -> String {
    let micros = time.as_micros();
    let units = [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000)];
    let fraction = |whole: u128, rest: u128, digits: usize| {
        let rest = format!("{rest:0digits$}");
        format!("{whole}.{}", rest.trim_end_matches('0'))
    };
    match units.iter().find(|(_, each)| micros.is_multiple_of(*each)) {
        _ if micros == 0 => "0s".to_owned(),
        Some((unit, each)) => format!("{}{unit}", micros / each),
        None if micros >= 1_000_000 => {
            format!("{}s", fraction(micros / 1_000_000, micros % 1_000_000, 6))
        }
        None if micros.is_multiple_of(1_000) => format!("{}ms", micros / 1_000),
        None => format!("{}ms", fraction(micros / 1_000, micros % 1_000, 3)),
    }
}

/// A moment of a profile: `0:00`, `4:05`, `1:02:03`, with tenths of a second where there are any.
#[must_use]
pub fn moment(at: Duration) -> String {
    let seconds = at.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let tenths = at.subsec_millis() / 100;
    let fraction = if tenths > 0 {
        format!(".{tenths}")
    } else {
        String::new()
    };
    if hours > 0 {
        format!("{hours}:{minutes:02}:{rest:02}{fraction}")
    } else {
        format!("{minutes}:{rest:02}{fraction}")
    }
}

/// A count with its thousands apart: `10_000`.
#[must_use]
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (row, digit) in digits.chars().enumerate() {
        if row > 0 && (digits.len() - row).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// A share in per cent, with at most one decimal.
#[must_use]
pub fn share(share: f64) -> String {
    format!("{}%", (share * 1000.0).round() / 10.0)
}

/// A rate per second, with at most two decimals.
#[must_use]
pub fn rate(per_second: f64) -> String {
    format!("{}/s", (per_second * 100.0).round() / 100.0)
}

/// `64 B`, `10 kB`, `1.5 MB`: a kB is 1000 bytes.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] {
        let amount = bytes as f64 / size;
        if amount >= 1.0 {
            return format!("{} {unit}", (amount * 100.0).round() / 100.0);
        }
    }
    format!("{bytes} B")
}

/// A share of 0 to 1 as `38%`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{}%", (share * 1000.0).round() / 10.0)
}
