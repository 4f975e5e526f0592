//! How the signals of a source are read: one entry of `signals:` each.

use super::fields::Fields;
use super::reader::At;
use super::words;
use crate::plan::json_path::JsonPath;
use crate::plan::probe::{Plays, Reading, SeriesSelector};
use crate::plan::signal::Signal;

/// Times are read into microseconds.
pub(super) const TIME_UNITS: [(&str, f64); 4] = [
    ("s", 1_000_000.0),
    ("ms", 1_000.0),
    ("us", 1.0),
    ("ns", 0.001),
];
/// Prometheus asks for seconds; whoever keeps to that need not say so.
pub(super) const SECONDS: f64 = TIME_UNITS[0].1;

/// What stands behind `gauge:`, `counter:` and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `metric` or `metric{label="value",other="value"}`
    Series,
    /// `$.a.b`
    Path,
}

/// `signals:` of a source that plays this part; `None` for a part that could not be read.
pub(super) fn signals(at: &At<'_>, plays: Option<Plays>, place: Place) -> Vec<(String, Reading)> {
    let mut readings = Vec::new();
    for (name, at) in at.entries().unwrap_or_default() {
        let Some(signal) = signal(name, &at, plays) else {
            continue;
        };
        let Some(reading) = reading(&at, signal, place) else {
            continue;
        };
        if signal.reads_as(&reading) {
            readings.push((name.to_owned(), reading));
        } else {
            let wanted = match signal {
                Signal::Wait => "`ratio`, `histogram` or `gauge`",
                Signal::Max => "`gauge`, or write a number",
                signal if signal.is_counter() => "`counter`",
                _ => "`gauge`",
            };
            at.wrong(
                format!("`{name}` can't be read in this way"),
                format!("read it as {wanted}"),
            );
        }
    }
    readings
}

/// The signal of this name, if the part has it.
pub(super) fn signal(name: &str, at: &At<'_>, plays: Option<Plays>) -> Option<Signal> {
    let fits = |signal: &Signal| plays.is_none_or(|plays| signal.belongs_to(plays));
    let found = Signal::named(name).filter(fits);
    if found.is_none() {
        let fitting: Vec<&str> = Signal::ALL
            .iter()
            .filter(|signal| fits(signal))
            .map(|signal| signal.name())
            .collect();
        let near = words::nearest(name, fitting.iter().copied());
        let help = near.map_or_else(
            || format!("write one of {}", words::listed(fitting.iter().copied())),
            |near| format!("did you mean `{near}`?"),
        );
        at.wrong_key(format!("`{name}` is no signal of this part"), help);
    }
    found
}

/// The reading that a signal has when nothing but its name is said: times in seconds.
pub(super) fn by_name(signal: Signal) -> Reading {
    let scale = if signal.is_time() { SECONDS } else { 1.0 };
    let pick = SeriesSelector::named(signal.name(), scale);
    if signal.is_counter() {
        Reading::Counter(pick)
    } else {
        Reading::Gauge(pick)
    }
}

fn reading(at: &At<'_>, signal: Signal, place: Place) -> Option<Reading> {
    if signal == Signal::Max && at.lone_word().is_some() {
        return at.number().map(Reading::Fixed);
    }
    let mut fields = at.fields()?;
    let reading = form(&mut fields, signal.is_time(), place);
    fields.finish(&[]);
    reading
}

fn form(fields: &mut Fields<'_>, is_time: bool, place: Place) -> Option<Reading> {
    let form = fields.one_of(&["gauge", "counter", "ratio", "histogram"]);
    let scale = unit(fields, is_time);
    let (kind, at) = form?;
    if kind == "histogram" && place == Place::Path {
        at.wrong_key(
            "a JSON document holds no histogram of Prometheus",
            "use `ratio` or `gauge`",
        );
        return None;
    }
    match kind {
        "gauge" => Some(Reading::Gauge(selector(&at, scale, place)?)),
        "counter" => Some(Reading::Counter(selector(&at, scale, place)?)),
        "histogram" => Some(Reading::Histogram(selector(&at, scale, place)?)),
        _ => {
            let mut both = at.fields()?;
            let sum = both.need("sum").and_then(|at| selector(&at, scale, place));
            let count = both.need("count").and_then(|at| selector(&at, 1.0, place));
            both.finish(&[]);
            Some(Reading::Ratio {
                sum: sum?,
                count: count?,
            })
        }
    }
}

/// `unit:` of a time, as the factor to microseconds.
pub(super) fn unit(fields: &mut Fields<'_>, is_time: bool) -> f64 {
    match fields.get("unit") {
        Some(at) if is_time => at.word(&TIME_UNITS).unwrap_or(1.0),
        Some(at) => {
            at.wrong_key("a unit for something that is no time", "leave it out");
            1.0
        }
        None if is_time => SECONDS,
        None => 1.0,
    }
}

fn selector(at: &At<'_>, scale: f64, place: Place) -> Option<SeriesSelector> {
    match place {
        Place::Series => series(at, scale),
        Place::Path => {
            let text = at.text()?;
            if let Err(bad) = JsonPath::parse(text) {
                at.wrong(bad.to_string(), "write a path such as `$.pool.waiting`");
                return None;
            }
            Some(SeriesSelector::named(text, scale))
        }
    }
}

/// `metric` or `metric{label="value",other="value"}`
fn series(at: &At<'_>, scale: f64) -> Option<SeriesSelector> {
    let text = at.text()?;
    let example = "write `name` or 'name{label=\"value\"}'";
    let (metric, labels) = match text.split_once('{') {
        None => (text, ""),
        Some((metric, rest)) => match rest.strip_suffix('}') {
            Some(labels) => (metric, labels),
            None => {
                at.wrong("the labels have no closing `}`", example);
                return None;
            }
        },
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '.')
    };
    let labels: Option<Vec<(String, String)>> = labels
        .split(',')
        .filter(|label| !label.trim().is_empty())
        .map(|label| {
            let (name, value) = label.split_once('=')?;
            let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
            is_name(name.trim()).then(|| (name.trim().to_owned(), value.to_owned()))
        })
        .collect();
    match labels {
        Some(labels) if is_name(metric) => Some(SeriesSelector {
            metric: metric.to_owned(),
            labels,
            scale,
        }),
        _ => {
            at.wrong(format!("`{text}` is no series of Prometheus"), example);
            None
        }
    }
}
