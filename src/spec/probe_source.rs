//! One entry of `probes.sources`: which part it plays, where its readings come from, what they are called there.

use super::address;
use super::fields::Fields;
use super::probe_reading::{self, Place, by_name, signal, signals, unit};
use super::reader::At;
use super::target::Names;
use super::words;
use crate::plan::probe::{Origin, Plays, ProbeSource, Reading, SeriesSelector, Signals};
use crate::plan::signal::{PRESETS, PresetName, Signal};
use crate::plan::template::Template;

const PLAYS: [(&str, Plays); 4] = [
    ("pool", Plays::Pool),
    ("queue", Plays::Queue),
    ("broker", Plays::Broker),
    ("value", Plays::Value),
];
const ORIGINS: [&str; 8] = [
    "scrape", "json", "sql", "admin", "sys", "promql", "canary", "command",
];
/// The name under which a single query of `promql:` is known.
const QUERY: &str = "value";

/// What a pair of requests tells, in microseconds.
const CANARY: &str = "canary_wait_us";

/// One entry of `probes.sources`.
pub(super) fn source(name: &str, at: &At<'_>, names: &Names) -> Option<ProbeSource> {
    let mut fields = at.fields()?;
    let plays = fields.get("plays").and_then(|at| at.word(&PLAYS));
    let says_part = fields.has("plays");
    let preset = fields.get("preset").map(|at| (preset(&at, plays), at));
    let found = preset.as_ref().and_then(|(found, _)| *found);
    let part = found.map(|preset| preset.plays).or(plays);
    let labels = fields
        .get("match")
        .map(|at| labels(&at))
        .unwrap_or_default();
    let origin_at = fields.one_of(&ORIGINS);
    let own = fields.get("signals");
    let key = origin_at.as_ref().map(|(key, _)| *key);
    if let (Some((Some(preset), at)), Some(key)) = (&preset, key) {
        check_origin(at, *preset, key);
    }
    let read = origin_at.and_then(|(key, at)| {
        let part = part.or((!says_part).then_some(Plays::Value));
        origin(key, &at, &mut fields, names, part, preset.is_some())
    });
    if let (Some(_), Some(at)) = (&preset, &own) {
        at.wrong_key(
            "`signals` can't stand beside `preset`",
            "keep one of the two",
        );
    }
    let place = if key == Some("json") {
        Place::Path
    } else {
        Place::Series
    };
    let needs_part = own.is_some() && !says_part && preset.is_none();
    if needs_part {
        fields.at().wrong_key(
            "`plays` is missing",
            "say which part it plays: pool, queue, broker or value",
        );
    }
    let own = own.map(|at| signals(&at, part.filter(|_| !needs_part), place));
    let needs_signals = preset.is_none()
        && own.is_none()
        && matches!(key, Some("scrape" | "json" | "admin" | "sys"));
    if needs_signals {
        let help = match key {
            Some("admin") => "add `preset: pgbouncer` or `preset: odyssey`",
            Some("sys") => "add `preset: mosquitto`",
            _ => "add one of `preset` and `signals`",
        };
        fields.at().wrong_key("what is to be read is missing", help);
    }
    fields.finish(&[]);
    let (origin, by_origin) = read?;
    let signals = match (found, own) {
        (Some(preset), _) => Signals::Preset(preset.name.to_owned()),
        (None, Some(own)) => Signals::Own(own),
        (None, None) => Signals::Own(by_origin),
    };
    Some(ProbeSource {
        name: name.to_owned(),
        plays: part.unwrap_or(Plays::Value),
        origin,
        labels,
        signals,
    })
}

fn preset(at: &At<'_>, plays: Option<Plays>) -> Option<PresetName> {
    let preset = at.word(&PRESETS.map(|preset| (preset.name, preset)))?;
    if plays.is_some_and(|plays| plays != preset.plays) {
        at.wrong(
            format!("the preset `{}` plays another part", preset.name),
            "leave `plays:` out",
        );
    }
    Some(preset)
}

fn check_origin(at: &At<'_>, preset: PresetName, key: &str) {
    if !preset.origins.contains(&key) {
        let origins = words::listed(preset.origins.iter().copied());
        at.wrong(
            format!("the preset `{}` is not read from `{key}`", preset.name),
            format!("give it {origins}"),
        );
    }
}

/// `{ pool: orders }`: labels that a series must carry.
fn labels(at: &At<'_>) -> Vec<(String, String)> {
    let entries = at.entries().unwrap_or_default();
    let texts = entries
        .iter()
        .filter_map(|(label, at)| Some(((*label).to_owned(), at.text()?.to_owned())));
    texts.collect()
}

/// Where readings come from, and how its signals are read where nothing else says it.
fn origin(
    key: &str,
    at: &At<'_>,
    fields: &mut Fields<'_>,
    names: &Names,
    plays: Option<Plays>,
    has_preset: bool,
) -> Option<(Origin, Vec<(String, Reading)>)> {
    let every_signal = || {
        let of_part = Signal::ALL
            .into_iter()
            .filter(|signal| plays.is_none_or(|plays| signal.belongs_to(plays)));
        let named = of_part.map(|signal| (signal.name().to_owned(), by_name(signal)));
        named.collect::<Vec<_>>()
    };
    Some(match key {
        "scrape" => (Origin::Scrape(addresses(at, names)), Vec::new()),
        "json" => (Origin::Json(addresses(at, names)), Vec::new()),
        "sql" => {
            let address = database(at, names);
            let query = if has_preset {
                None
            } else {
                let query = fields.need("query")?;
                Some(query.text()?.to_owned())
            };
            (
                Origin::Sql {
                    at: address?,
                    query,
                },
                every_signal(),
            )
        }
        "admin" => (Origin::Console(database(at, names)?), Vec::new()),
        "sys" => (Origin::Sys(broker(at, names)?), Vec::new()),
        "promql" => promql(at, names, plays)?,
        "canary" => canary(at, names, plays)?,
        _ => {
            let known = names.placeholders(&[]);
            let items = at.items()?;
            let words = items.iter().filter_map(|at| at.template(&known));
            let words: Vec<Template> = words.collect();
            if words.is_empty() {
                at.wrong(
                    "no program",
                    "write the program and its arguments: `[ program, argument ]`",
                );
                return None;
            }
            (Origin::Command(words), every_signal())
        }
    })
}

/// One address or a list of them.
fn addresses(at: &At<'_>, names: &Names) -> Vec<Template> {
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

/// `postgres://user@host:port/database`, or a secret that is one.
fn database(at: &At<'_>, names: &Names) -> Option<Template> {
    let template = at.template(&names.host_placeholders())?;
    let text = template.to_string();
    let is_postgres = ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let is_placeholder = text.starts_with("<secret.") || text.starts_with("<lab.");
    if !is_postgres && !is_placeholder {
        at.wrong(
            "not the address of a PostgreSQL",
            "write `postgres://user@host:5432/database`, or a `<secret.…>` that is one",
        );
        return None;
    }
    Some(template)
}

/// `mqtt://host:port`
fn broker(at: &At<'_>, names: &Names) -> Option<Template> {
    let template = at.template(&names.host_placeholders())?;
    if !template.to_string().starts_with("mqtt://") {
        at.wrong(
            "`$SYS` topics are read over plain MQTT only",
            "write `mqtt://host:1883`, a listener that only this machine can reach",
        );
        return None;
    }
    address::check_mqtt(at, &template);
    Some(template)
}

/// `{ with: https://api/bikes/near, without: https://api/health }`
fn canary(
    at: &At<'_>,
    names: &Names,
    plays: Option<Plays>,
) -> Option<(Origin, Vec<(String, Reading)>)> {
    let host = names.host_placeholders();
    if plays != Some(Plays::Pool) {
        at.wrong_key(
            "a canary tells how long a pool makes requests wait",
            "add `plays: pool`",
        );
    }
    let mut fields = at.fields()?;
    let mut request = |key| {
        fields
            .need(key)
            .and_then(|at| address::http(&at, &host, &host, None))
    };
    let (with, without) = (request("with"), request("without"));
    fields.finish(&[]);
    let pick = SeriesSelector::named(CANARY, 1.0);
    let wait = (Signal::Wait.name().to_owned(), Reading::Gauge(pick));
    Some((
        Origin::Canary {
            with: with?,
            without: without?,
        },
        vec![wait],
    ))
}

/// `{ at: http://prometheus:9090, query: sum(x), signal: depth }`, or `queries:` by the names of signals.
fn promql(
    at: &At<'_>,
    names: &Names,
    plays: Option<Plays>,
) -> Option<(Origin, Vec<(String, Reading)>)> {
    let host = names.host_placeholders();
    let mut fields = at.fields()?;
    let server = fields
        .need("at")
        .and_then(|at| address::http(&at, &host, &host, None));
    let form = fields.one_of(&["query", "queries"]);
    let mut queries = Vec::new();
    let mut readings = Vec::new();
    match form {
        Some(("query", query)) => {
            let named = fields.get("signal");
            let found = match &named {
                Some(at) => signal(at.text()?, at, plays),
                None => Some(Signal::Value).filter(|_| plays == Some(Plays::Value)),
            };
            if found.is_none() && named.is_none() {
                fields.at().wrong_key(
                    "`signal` is missing",
                    "say what the query measures: `signal: waiting`",
                );
            }
            let scale = unit(&mut fields, found.is_some_and(Signal::is_time));
            queries.push((QUERY.to_owned(), query.text()?.to_owned()));
            readings.extend(found.map(|signal| {
                let pick = SeriesSelector::named(QUERY, scale);
                let reading = if signal.is_counter() {
                    Reading::Counter(pick)
                } else {
                    Reading::Gauge(pick)
                };
                (signal.name().to_owned(), reading)
            }));
        }
        Some((_, at)) => {
            for (name, at) in at.entries().unwrap_or_default() {
                let found = probe_reading::signal(name, &at, plays);
                queries.extend(at.text().map(|text| (name.to_owned(), text.to_owned())));
                readings.extend(found.map(|signal| (name.to_owned(), by_name(signal))));
            }
        }
        None => {}
    }
    fields.finish(&[]);
    Some((
        Origin::PromQl {
            at: server?,
            queries,
        },
        readings,
    ))
}
