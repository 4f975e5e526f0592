//! Numbers as people read them; the one place that decides on digits and units.

use crate::plan::expect::{Comparison, Unit};

/// A time: `0 s`, `850 us`, `12.3 ms`, `4.90 s`, `3m18s`, `2h05m`.
#[must_use]
pub fn time(microseconds: f64) -> String {
    let us = microseconds.max(0.0);
    match us {
        _ if us < 0.5 => "0 s".to_owned(),
        _ if us < 999.5 => format!("{us:.0} us"),
        _ if us < 9_995.0 => format!("{:.2} ms", us / 1e3),
        _ if us < 99_950.0 => format!("{:.1} ms", us / 1e3),
        _ if us < 999_500.0 => format!("{:.0} ms", us / 1e3),
        _ if us < 9_995_000.0 => format!("{:.2} s", us / 1e6),
        _ if us < 99_950_000.0 => format!("{:.1} s", us / 1e6),
        _ => {
            let seconds = (us / 1e6).round() as u64;
            if seconds < 3600 {
                format!("{}m{:02}s", seconds / 60, seconds % 60)
            } else {
                format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60)
            }
        }
    }
}

/// A time as a person writes a limit: without digits that say nothing (`2s`, `1m30s`, `20ms`).
#[must_use]
pub fn short_time(microseconds: f64) -> String {
    let us = microseconds.max(0.0).round() as u64;
    match us {
        0 => "0s".to_owned(),
        _ if us < 1_000 => format!("{us}us"),
        _ if us < 1_000_000 => format!("{}ms", trimmed(us as f64 / 1e3)),
        _ if us < 60_000_000 => format!("{}s", trimmed(us as f64 / 1e6)),
        _ => {
            let seconds = us / 1_000_000;
            match (seconds / 60, seconds % 60) {
                (minutes, 0) => format!("{minutes}m"),
                (minutes, rest) => format!("{minutes}m{rest:02}s"),
            }
        }
    }
}

/// A share of 0 to 1 in percent; never rounded to 100 % or 0 % when it isn't.
#[must_use]
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    for digits in 1..=4 {
        let text = format!("{percent:.digits$}");
        let whole: f64 = text.parse().unwrap_or(percent);
        let hides = (whole >= 100.0 && percent < 100.0) || (whole <= 0.0 && percent > 0.0);
        if !hides {
            return format!("{}%", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{percent}%")
}

/// A count or a plain number with thousands set apart: `1,080,000`, `6.3`.
#[must_use]
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let digits = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return if value < 0.0 {
            format!("-{text}")
        } else {
            text
        };
    }
    let digits = if value.abs() >= 100.0 { 1 } else { 2 };
    trimmed_to(value, digits)
}

/// A count.
#[must_use]
pub fn count(value: u64) -> String {
    number(value as f64)
}

/// A value in the base unit of its subject.
#[must_use]
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Share => share(value),
        Unit::Time => time(value),
        Unit::PerSecond => format!("{}/s", number(value)),
        Unit::Count => number(value),
        Unit::TimesBaseline | Unit::TimesLast => format!("{}x", number(value)),
    }
}

/// A limit with its comparison, as written: `<= 2s`.
#[must_use]
pub fn limit(comparison: Comparison, value: f64, unit: Unit) -> String {
    let limit = match unit {
        Unit::Time => short_time(value),
        Unit::TimesBaseline => format!("{}x baseline", number(value)),
        Unit::TimesLast => format!("{}x last", number(value)),
        _ => self::value(value, unit),
    };
    format!("{} {limit}", sign(comparison))
}

/// The sign of a comparison.
#[must_use]
pub fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Below => "<",
        Comparison::AtMost => "<=",
        Comparison::Equal => "==",
        Comparison::AtLeast => ">=",
        Comparison::Above => ">",
    }
}

/// Minutes and seconds from 0:00: `5:58`, `-0:03`, `1:02:03`.
#[must_use]
pub fn clock(seconds: i64) -> String {
    let (sign, seconds) = if seconds < 0 {
        ("-", seconds.unsigned_abs())
    } else {
        ("", seconds.unsigned_abs())
    };
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{sign}{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{sign}{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn trimmed(value: f64) -> String {
    trimmed_to(value, 3)
}

fn trimmed_to(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
