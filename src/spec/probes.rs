//! What is read from the target, and its links: probes and connection paths.

use super::address;
use super::component::host_port;
use super::fields::Fields;
use super::reader::At;
use super::target::Names;
use super::words;
use crate::plan::fault::Link;
use crate::plan::signal::{PRESETS, Signal};
use crate::plan::target::{Plays, ProbeSource, Probes, Reading, SeriesSelector, Signals};
use crate::plan::template::Template;

const PLAYS: [(&str, Plays); 4] = [
    ("pool", Plays::Pool),
    ("queue", Plays::Queue),
    ("broker", Plays::Broker),
    ("value", Plays::Value),
];
/// Times are read into microseconds.
const TIME_UNITS: [(&str, f64); 3] = [("s", 1_000_000.0), ("ms", 1_000.0), ("us", 1.0)];

/// `probes:`
pub(super) fn probes(at: &At<'_>, names: &Names) -> Option<Probes> {
    let mut probes = Probes::default();
    let mut fields = at.fields()?;
    if let Some(every) = fields.get("every").and_then(|at| at.time()) {
        probes.every = every;
    }
    if let Some(timeout) = fields.get("timeout").and_then(|at| at.time()) {
        probes.timeout = timeout;
    }
    if let Some(max_blind) = fields.get("max_blind").and_then(|at| at.share()) {
        probes.max_blind = max_blind;
    }
    if probes.timeout >= probes.every {
        let at = if fields.has("timeout") {
            fields.at().find(&["timeout"])
        } else {
            fields.at().find(&["every"])
        };
        at.wrong(
            "a reading may take as long as the time to the next one",
            "make `timeout` shorter than `every`",
        );
    }
    for (name, at) in fields
        .need("sources")
        .and_then(|at| at.named())
        .unwrap_or_default()
    {
        probes.sources.extend(source(name, &at, names));
    }
    fields.finish(&[]);
    Some(probes)
}

fn source(name: &str, at: &At<'_>, names: &Names) -> Option<ProbeSource> {
    let mut fields = at.fields()?;
    let plays = fields.get("plays").and_then(|at| at.word(&PLAYS));
    let form = fields.one_of(&["preset", "signals"]);
    let scrape = fields
        .need("scrape")
        .map(|at| scrape(&at, names))
        .unwrap_or_default();
    let mut part = plays;
    let signals = match form? {
        ("preset", at) => {
            let preset = at.word(&PRESETS.map(|preset| (preset.name, preset)))?;
            if plays.is_some_and(|plays| plays != preset.plays) {
                at.wrong(
                    format!("the preset `{}` plays another part", preset.name),
                    "leave `plays:` out",
                );
            }
            part = Some(preset.plays);
            Signals::Preset(preset.name.to_owned())
        }
        (_, at) => {
            if plays.is_none() && !fields.has("plays") {
                at.wrong_key(
                    "`plays` is missing",
                    "say which part it plays: pool, queue, broker or value",
                );
            }
            Signals::Own(own_signals(
                &at,
                plays.unwrap_or(Plays::Value),
                plays.is_some(),
            ))
        }
    };
    fields.finish(&["match", "admin", "promql", "sql", "query", "json", "sys"]);
    Some(ProbeSource {
        name: name.to_owned(),
        plays: part.unwrap_or(Plays::Value),
        scrape,
        signals,
    })
}

/// One address or a list of them.
fn scrape(at: &At<'_>, names: &Names) -> Vec<Template> {
    let host = names.host_placeholders();
    let one = |at: &At<'_>| address::http(at, &host, &host, None);
    match at.lone_word() {
        Some(_) => one(at).into_iter().collect(),
        None => at
            .items()
            .unwrap_or_default()
            .iter()
            .filter_map(one)
            .collect(),
    }
}

fn own_signals(at: &At<'_>, plays: Plays, plays_known: bool) -> Vec<(String, Reading)> {
    let mut readings = Vec::new();
    for (name, at) in at.entries().unwrap_or_default() {
        let fitting: Vec<&str> = Signal::ALL
            .iter()
            .filter(|signal| signal.belongs_to(plays))
            .map(|signal| signal.name())
            .collect();
        let signal = Signal::named(name).filter(|signal| !plays_known || signal.belongs_to(plays));
        let Some(signal) = signal else {
            let near = words::nearest(name, fitting.iter().copied());
            let help = near.map_or_else(
                || format!("write one of {}", words::listed(fitting.iter().copied())),
                |near| format!("did you mean `{near}`?"),
            );
            at.wrong_key(format!("`{name}` is no signal of this part"), help);
            continue;
        };
        let Some(reading) = at.fields().and_then(|mut fields| {
            let reading = reading(&mut fields, matches!(signal, Signal::Wait | Signal::Age));
            fields.finish(&[]);
            reading
        }) else {
            continue;
        };
        if signal.reads_as(&reading) {
            readings.push((name.to_owned(), reading));
        } else {
            let wanted = match signal {
                Signal::Wait => "`ratio` or `histogram`",
                Signal::Timeouts | Signal::Acquires | Signal::Connects => "`counter`",
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

fn reading(fields: &mut Fields<'_>, is_time: bool) -> Option<Reading> {
    let form = fields.one_of(&["gauge", "counter", "ratio", "histogram"]);
    let scale = match fields.get("unit") {
        Some(at) if is_time => at.word(&TIME_UNITS).unwrap_or(1.0),
        Some(at) => {
            at.wrong_key("a unit for something that is no time", "leave it out");
            1.0
        }
        // Prometheus asks for seconds; whoever keeps to that need not say so.
        None if is_time => TIME_UNITS[0].1,
        None => 1.0,
    };
    let (kind, at) = form?;
    match kind {
        "gauge" => Some(Reading::Gauge(selector(&at, scale)?)),
        "counter" => Some(Reading::Counter(selector(&at, scale)?)),
        "histogram" => Some(Reading::Histogram(selector(&at, scale)?)),
        _ => {
            let mut both = at.fields()?;
            let sum = both.need("sum").and_then(|at| selector(&at, scale));
            let count = both.need("count").and_then(|at| selector(&at, 1.0));
            both.finish(&[]);
            Some(Reading::Ratio {
                sum: sum?,
                count: count?,
            })
        }
    }
}

/// `metric` or `metric{label="value",other="value"}`
fn selector(at: &At<'_>, scale: f64) -> Option<SeriesSelector> {
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

/// One entry of `links:`.
pub(super) fn link(name: &str, at: &At<'_>, names: &Names) -> Option<Link> {
    let mut fields = at.fields()?;
    let listen = fields.need("listen").and_then(|at| host_port(&at, names));
    let to = fields.need("to").and_then(|at| host_port(&at, names));
    fields.finish(&["device", "proxy"]);
    Some(Link {
        name: name.to_owned(),
        listen: listen?,
        to: to?,
    })
}
