//! Numbers with their units, as every file and every expectation writes them.
//!
//! Decides what is a duration, a rate, a share, a count. Nothing is guessed: whatever could be read in two ways is refused
//! with the form to write.

use std::time::Duration;

/// Why a text is no quantity, and what to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub message: String,
    pub help: Option<String>,
}

impl Wrong {
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Wrong {
        Wrong {
            message: message.into(),
            help: Some(help.into()),
        }
    }
}

/// A non-negative decimal number, exact: `digits` × 10^-`decimals`.
struct Number {
    digits: u128,
    decimals: u32,
}

impl Number {
    fn value(&self) -> f64 {
        // Both are at most 10^15 and so exact in a double; the division rounds once.
        self.digits as f64 / 10f64.powi(i32::try_from(self.decimals).unwrap_or(0))
    }
}

const LONGEST_HOURS: u64 = 24 * 366;
const MICROSECONDS: [(&str, u128); 4] = [
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
];
/// What people write for a unit, and the unit.
const ALIASES: [(&[&str], &str); 4] = [
    (
        &["msec", "msecs", "millis", "millisecond", "milliseconds"],
        "ms",
    ),
    (&["sec", "secs", "second", "seconds"], "s"),
    (&["min", "mins", "minute", "minutes"], "m"),
    (&["hr", "hrs", "hour", "hours"], "h"),
];

/// `5s`, `500ms`, `1.5m`, `2h`: to the microsecond, at most 366 days.
pub(super) fn duration(text: &str) -> Result<Duration, Wrong> {
    let example = "write a number with its unit: `500ms`, `5s`, `1.5m` or `2h`";
    let (amount, unit) = split_number(text);
    common_slips(text, amount, "duration", example)?;
    if unit.is_empty() {
        return Err(Wrong::new(
            format!("`{text}` lacks its unit"),
            format!("write `{text}s`, if seconds are meant; also `ms`, `m`, `h`"),
        ));
    }
    let number = number(amount, example)?;
    let Some((_, each)) = MICROSECONDS.iter().find(|(name, _)| *name == unit) else {
        return Err(unknown_time_unit(text, amount, unit, example));
    };
    let scale = 10u128.pow(number.decimals);
    let scaled = number.digits * each;
    if scaled % scale != 0 {
        return Err(Wrong::new(
            format!("`{text}` is finer than a microsecond"),
            example,
        ));
    }
    match u64::try_from(scaled / scale) {
        Ok(micros) if micros <= LONGEST_HOURS * 3_600_000_000 => Ok(Duration::from_micros(micros)),
        _ => Err(Wrong::new(
            format!("`{text}` is longer than 366 days"),
            "write a shorter time",
        )),
    }
}

fn unknown_time_unit(text: &str, amount: &str, unit: &str, example: &str) -> Wrong {
    let plain = unit.trim().to_lowercase();
    let named = MICROSECONDS
        .iter()
        .map(|(name, _)| *name)
        .find(|name| *name == plain);
    let alias = ALIASES
        .iter()
        .find(|(names, _)| names.contains(&plain.as_str()))
        .map(|(_, name)| *name);
    let help = match named.or(alias) {
        Some(unit) => format!("write `{amount}{unit}`"),
        None if plain.starts_with(|c: char| c.is_ascii_alphabetic())
            && plain.contains(|c: char| c.is_ascii_digit()) =>
        {
            "use one number and one unit: `90m` in place of `1h30m`".to_owned()
        }
        None if matches!(plain.as_str(), "d" | "day" | "days") => {
            "write days in hours: `24h`".to_owned()
        }
        None => example.to_owned(),
    };
    Wrong {
        message: format!("`{text}` is not a duration"),
        help: Some(help),
    }
}

/// `20/s`, `0.5/s`, `30/min`, `1_000/h`, as a rate per second of at most a million.
pub(super) fn rate(text: &str) -> Result<f64, Wrong> {
    let example = "write a number per unit of time: `20/s`, `30/min` or `1_000/h`";
    let (amount, unit) = split_number(text);
    common_slips(text, amount, "rate", example)?;
    let number = number(amount, example)?;
    let seconds = match unit {
        "/s" => 1.0,
        "/min" => 60.0,
        "/h" => 3600.0,
        _ => {
            let help = match unit.trim().to_lowercase().replace(' ', "").as_str() {
                "" | "/sec" | "/second" | "ps" | "rps" | "hz" | "/s" => {
                    format!("write `{amount}/s`")
                }
                "/m" | "/minute" | "/min" => format!("write `{amount}/min`"),
                "/hour" | "/hr" | "/h" => format!("write `{amount}/h`"),
                _ => example.to_owned(),
            };
            return Err(Wrong {
                message: format!("`{text}` is not a rate"),
                help: Some(help),
            });
        }
    };
    let per_second = number.value() / seconds;
    if per_second > 1e6 {
        return Err(Wrong::new(
            format!("`{text}` is above 1_000_000/s"),
            "write a lower rate",
        ));
    }
    Ok(per_second)
}

/// `64B`, `10kB`, `1.5MB`, `1GB`, in bytes: a kB is 1000 bytes.
pub(super) fn size(text: &str) -> Result<u64, Wrong> {
    let example = "write a size: `64B`, `10kB` or `1MB`";
    let (amount, unit) = split_number(text);
    common_slips(text, amount, "size", example)?;
    let number = number(amount, example)?;
    let factor = match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        _ => {
            let message = format!("`{text}` is not a size");
            return Err(Wrong::new(message, example));
        }
    };
    Ok((number.value() * factor).round() as u64)
}

/// `100kB/s`, in bytes per second.
pub(super) fn byte_rate(text: &str) -> Result<u64, Wrong> {
    let example = "write a size per second: `100kB/s`";
    match text.strip_suffix("/s") {
        Some(size) => self::size(size).map_err(|wrong| Wrong::new(wrong.message, example)),
        None => Err(Wrong::new(format!("`{text}` is no rate of bytes"), example)),
    }
}

/// `38%`, `0.5%`: 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, Wrong> {
    let example = "write a share as a percentage: `38%`";
    let (amount, unit) = split_number(text);
    common_slips(text, amount, "share", example)?;
    let number = number(amount, example)?;
    if unit != "%" {
        return Err(Wrong::new(format!("`{text}` is not a share"), example));
    }
    let share = number.value() / 100.0;
    if share > 1.0 {
        return Err(Wrong::new(
            format!("`{text}` is more than the whole"),
            "write at most `100%`",
        ));
    }
    Ok(share)
}

/// `400`, `8_000`: a whole number.
pub(super) fn count(text: &str) -> Result<u64, Wrong> {
    let example = "write a whole number: `400` or `8_000`";
    let (amount, unit) = split_number(text);
    common_slips(text, amount, "whole number", example)?;
    let number = number(amount, example)?;
    if !unit.is_empty() || number.decimals > 0 {
        return Err(Wrong::new(
            format!("`{text}` is not a whole number"),
            example,
        ));
    }
    u64::try_from(number.digits).map_err(|_| Wrong::new(format!("`{text}` is too large"), example))
}

/// `2`, `1.5`: a number without unit.
pub(super) fn plain_number(text: &str) -> Result<f64, Wrong> {
    let example = "write a number: `2` or `1.5`";
    let (amount, unit) = split_number(text);
    common_slips(text, amount, "number", example)?;
    let number = number(amount, example)?;
    if unit.is_empty() {
        Ok(number.value())
    } else {
        Err(Wrong::new(format!("`{text}` is not a number"), example))
    }
}

/// The number at the start of a text, and what follows it.
pub(super) fn split_number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    text.split_at(end)
}

/// What is wrong more often than anything else, each with its own remedy.
fn common_slips(text: &str, amount: &str, what: &str, example: &str) -> Result<(), Wrong> {
    let lower = text.to_lowercase();
    if text.starts_with(['-', '+']) {
        let rest = text[1..].trim();
        return Err(if text.starts_with('-') && !rest.starts_with('.') {
            Wrong::new(format!("`{text}` is negative; a {what} can't be"), example)
        } else {
            Wrong::new(format!("`{text}` is not a {what}"), example)
        });
    }
    if matches!(lower.as_str(), ".inf" | "inf" | "infinity" | ".nan" | "nan") {
        return Err(Wrong::new(format!("`{text}` is no finite number"), example));
    }
    if amount.is_empty() || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Wrong::new(format!("`{text}` is not a {what}"), example));
    }
    if text[amount.len()..].starts_with(':') {
        let help =
            format!("{example}; some readers of YAML take `{text}` for a number to the base 60");
        return Err(Wrong::new(format!("`{text}` is not a {what}"), help));
    }
    if text[amount.len()..].starts_with(char::is_whitespace) {
        return Err(Wrong::new(
            format!("`{text}` has a blank between number and unit"),
            format!("write `{}`", text.replace(' ', "")),
        ));
    }
    if amount.len() > 1 && amount.starts_with('0') && !amount.starts_with("0.") {
        let bare = text.trim_start_matches(['0', '_']);
        let help = match (bare, what) {
            ("", _) => example.to_owned(),
            (bare, "whole number" | "number") => format!("write `{bare}`"),
            (bare, _) => format!("write `{bare}` with its unit, without the 0"),
        };
        return Err(Wrong::new(
            format!("`{text}` starts with 0: some readers of YAML take that for base 8"),
            help,
        ));
    }
    Ok(())
}

fn number(amount: &str, example: &str) -> Result<Number, Wrong> {
    let bad = || Wrong::new(format!("`{amount}` is not a number"), example);
    let (whole, decimals) = amount.split_once('.').unwrap_or((amount, ""));
    let tidy = |part: &str| !part.starts_with('_') && !part.ends_with('_') && !part.contains("__");
    if whole.is_empty()
        || !tidy(whole)
        || decimals.contains(['.', '_'])
        || (decimals.is_empty() && amount.contains('.'))
    {
        return Err(bad());
    }
    let digits: String = whole
        .chars()
        .filter(char::is_ascii_digit)
        .chain(decimals.chars())
        .collect();
    if digits.len() > 15 {
        return Err(Wrong::new(
            format!("`{amount}` has more than 15 digits"),
            example,
        ));
    }
    let value = digits.parse().map_err(|_| bad())?;
    Ok(Number {
        digits: value,
        decimals: u32::try_from(decimals.len()).unwrap_or(0),
    })
}
