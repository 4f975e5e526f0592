//! Arrivals that were recorded: a column of counts in a CSV file, one row for each bin of time.

use super::fields::Fields;
use super::reader::At;
use super::target::beside;
use super::units::{self, Wrong};
use super::words;
use crate::arrivals::Schedule;
use crate::plan::quantity;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Ten weeks of minutes.
const MOST_ROWS: usize = 100_000;
const LARGEST_BYTES: u64 = 16 * 1024 * 1024;
/// No row holds more than this, so that sums stay exact.
const MOST_ARRIVALS: u64 = 1_000_000_000;
/// What is wrong in a file with the same mistake in every row is told this often.
const MOST_PROBLEMS: usize = 5;

/// Which part of a recording is played, and how.
struct Playing {
    per: Duration,
    /// From the first row, which is 0:00 of the recording.
    from: Duration,
    to: Option<Duration>,
    times: f64,
    speed: f64,
}

/// `recorded: { csv: …, column: …, per: 1m, from: "06:30", to: "10:30", times: 3, speed: 2x }`
pub(super) fn recorded(at: &At<'_>, profile: &Path, seed: u64) -> Option<Schedule> {
    let mut fields = at.fields()?;
    let csv = fields.need("csv");
    let column = fields.need("column");
    let playing = playing(&mut fields);
    fields.finish(&[]);
    let (csv, column, playing) = (csv?, column?, playing?);
    let path = beside(profile, csv.text()?);
    let counts = counts(&csv, &column, &path)?;
    let counts = part(at, &counts, &playing)?;
    let bin = playing.per.div_f64(playing.speed);
    if bin.is_zero() {
        at.find(&["speed"]).wrong(
            "nothing is left of a bin at this speed",
            "write a lower speed",
        );
        return None;
    }
    Some(Schedule::recorded(
        seed,
        bin,
        &scaled(&counts, playing.times),
    ))
}

fn playing(fields: &mut Fields<'_>) -> Option<Playing> {
    let per = fields.need("per").and_then(|at| at.time());
    let from = fields.get("from").map(|at| clock(&at));
    let to = fields.get("to").map(|at| clock(&at));
    let times = fields.get("times").map(|at| {
        let times = at.number()?;
        let is_right = times > 0.0 && times <= 1_000_000.0;
        if !is_right {
            at.wrong(
                format!("{times} is out of range"),
                "write a number above 0, such as `3`; 1 is what was recorded",
            );
        }
        is_right.then_some(times)
    });
    let speed = fields.get("speed").map(|at| speed(&at));
    Some(Playing {
        per: per?,
        from: from.unwrap_or(Some(Duration::ZERO))?,
        to: match to {
            Some(to) => Some(to?),
            None => None,
        },
        times: times.unwrap_or(Some(1.0))?,
        speed: speed.unwrap_or(Some(1.0))?,
    })
}

/// `2x`
fn speed(at: &At<'_>) -> Option<f64> {
    let text = at.text()?;
    let speed = text
        .strip_suffix('x')
        .and_then(|number| units::plain_number(number).ok())
        .filter(|speed| (0.001..=10_000.0).contains(speed));
    if speed.is_none() {
        at.wrong(
            format!("`{text}` is no speed"),
            "write how many times as fast as it was recorded: `2x`",
        );
    }
    speed
}

/// `"06:30"`, `"1:02:03"`: hours and minutes of the recording, with seconds where they are needed.
fn clock(at: &At<'_>) -> Option<Duration> {
    let text = at.text()?;
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &&str| {
        let is_plain = (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        is_plain.then(|| part.parse::<u64>().ok()).flatten()
    };
    let numbers: Option<Vec<u64>> = parts.iter().map(number).collect();
    let read = match numbers.as_deref() {
        Some([hours, minutes]) if *minutes < 60 => Some(hours * 3600 + minutes * 60),
        Some([hours, minutes, seconds]) if *minutes < 60 && *seconds < 60 => {
            Some(hours * 3600 + minutes * 60 + seconds)
        }
        _ => None,
    };
    if read.is_none() {
        at.wrong(
            format!("`{text}` is no time of the recording"),
            "write hours and minutes from its first row, in quotes: \"06:30\"",
        );
    }
    read.map(Duration::from_secs)
}

/// The rows from `from` to `to`.
fn part(at: &At<'_>, counts: &[u64], playing: &Playing) -> Option<Vec<u64>> {
    let row = |key: &str, time: Duration| {
        let bins = time.as_micros() / playing.per.as_micros();
        if !time.as_micros().is_multiple_of(playing.per.as_micros()) {
            at.find(&[key]).wrong(
                format!(
                    "not at the beginning of a row of {}",
                    quantity::duration(playing.per)
                ),
                format!("write a multiple of {}", quantity::duration(playing.per)),
            );
            return None;
        }
        let row = usize::try_from(bins).unwrap_or(usize::MAX);
        if row > counts.len() {
            let lasts = playing.per * u32::try_from(counts.len()).unwrap_or(u32::MAX);
            at.find(&[key]).wrong(
                format!("the recording ends at {}", quantity::moment(lasts)),
                "choose an earlier time; its first row is at 0:00",
            );
            return None;
        }
        Some(row)
    };
    let from = row("from", playing.from);
    let to = playing.to.map_or(Some(counts.len()), |to| row("to", to));
    let (from, to) = (from?, to?);
    if from >= to {
        at.wrong(
            "nothing lies between `from` and `to`",
            "let `to` be later than `from`",
        );
        return None;
    }
    Some(counts[from..to].to_vec())
}

/// Each count times a factor; sums are rounded, not counts, so that small ones don't vanish.
fn scaled(counts: &[u64], times: f64) -> Vec<u64> {
    let (mut sum, mut before) = (0_u64, 0_u64);
    let mut scale = |count: &u64| {
        sum += count;
        let through = (sum as f64 * times).round() as u64;
        let count = through - before;
        before = through;
        count
    };
    counts.iter().map(&mut scale).collect()
}

/// What can't be read as a table.
fn broken(csv: &At<'_>, path: &Path, error: &dyn std::fmt::Display) {
    csv.wrong(
        format!("{}: {error}", path.display()),
        "give a CSV file with a header and as many values in each row",
    );
}

/// The file behind its header, and the place of the column.
fn open(csv: &At<'_>, column: &At<'_>, path: &Path) -> Option<(csv::Reader<File>, usize)> {
    match std::fs::metadata(path) {
        Err(error) => {
            csv.wrong(
                format!("{} can't be read: {error}", path.display()),
                "paths inside a file are relative to that file",
            );
            return None;
        }
        Ok(data) if data.len() > LARGEST_BYTES => {
            broken(csv, path, &"larger than 16 MiB");
            return None;
        }
        Ok(_) => {}
    }
    let wanted = column.text()?;
    let mut builder = csv::ReaderBuilder::new();
    let reader = builder.trim(csv::Trim::All).from_path(path);
    let mut reader = reader.map_err(|error| broken(csv, path, &error)).ok()?;
    let header = reader.headers().cloned();
    let header = header.map_err(|error| broken(csv, path, &error)).ok()?;
    let names = || {
        header
            .iter()
            .map(|name| name.trim_start_matches('\u{feff}'))
    };
    let place = names().position(|name| name == wanted);
    if place.is_none() {
        let help = match words::nearest(wanted, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its columns: {}", words::listed(names())),
        };
        column.wrong(format!("{} has no column `{wanted}`", path.display()), help);
    }
    Some((reader, place?))
}

/// The column of counts.
fn counts(csv: &At<'_>, column: &At<'_>, path: &Path) -> Option<Vec<u64>> {
    let (mut reader, place) = open(csv, column, path)?;
    let mut counts = Vec::new();
    let mut problems = 0;
    for record in reader.records() {
        let record = record.map_err(|error| broken(csv, path, &error)).ok()?;
        match record.get(place).map(count) {
            Some(Ok(count)) => counts.push(count),
            Some(Err(wrong)) => {
                let line = record.position().map_or(0, csv::Position::line);
                problems += 1;
                if problems <= MOST_PROBLEMS {
                    let message = format!("{}:{line}: {}", path.display(), wrong.message);
                    csv.wrong(message, wrong.help.unwrap_or_default());
                }
            }
            None => {}
        }
        if counts.len() > MOST_ROWS {
            broken(csv, path, &"more than 100_000 rows");
            return None;
        }
    }
    if problems == 0 && counts.is_empty() {
        broken(csv, path, &"no row behind the header");
        return None;
    }
    (problems == 0).then_some(counts)
}

fn count(text: &str) -> Result<u64, Wrong> {
    let help = "write how many arrived in that bin, a whole number such as `400`; 0 for nobody";
    if text.is_empty() {
        return Err(Wrong::new("nothing stands in the column", help));
    }
    text.parse()
        .ok()
        .filter(|count| *count <= MOST_ARRIVALS && text.bytes().all(|byte| byte.is_ascii_digit()))
        .ok_or_else(|| Wrong::new(format!("`{text}` is no count of arrivals"), help))
}
