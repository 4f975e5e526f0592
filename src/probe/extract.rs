//! From a scraped text to the signals of one source.

use super::presets::{self, Form, Preset};
use super::prometheus::{Series, scan};
use crate::measure::pool::{Counter, Value};
use crate::plan::signal::Signal;
use crate::plan::target::{ProbeSource, Reading, SeriesSelector, Signals};
use std::collections::HashSet;

/// What a source's signals are called in its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Extractor {
    /// Alternatives of one signal follow each other, the preferred one first.
    forms: Vec<Wanted>,
    /// Every metric that has to be read, dots as underscores.
    metrics: HashSet<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    signal: Signal,
    reading: Reading,
    /// The count of a ratio leaves out who did not have to wait.
    waiters_only: bool,
}

/// What one text said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Extracted {
    /// `process_start_time_seconds`, if it is there.
    pub started: Option<f64>,
    /// Finite values only.
    pub values: Vec<Value>,
    /// Under which metric each signal was found.
    pub found: Vec<(Signal, String)>,
    pub bad_lines: u64,
    pub duplicate_lines: u64,
}

/// A source that names something unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownSource {
    #[error("probes.sources.{source_name}: there is no preset `{preset}`; there are {known}")]
    Preset {
        source_name: String,
        preset: String,
        known: String,
    },
    #[error("probes.sources.{source_name}: there is no signal `{signal}`; there are {known}")]
    Signal {
        source_name: String,
        signal: String,
        known: String,
    },
}

const STARTED: &str = "process_start_time_seconds";

impl Extractor {
    /// The extractor of a source.
    ///
    /// # Errors
    /// If the source names a preset or a signal that does not exist.
    pub fn of(source: &ProbeSource) -> Result<Extractor, UnknownSource> {
        let forms = match &source.signals {
            Signals::Preset(name) => {
                let preset = presets::named(name).ok_or_else(|| UnknownSource::Preset {
                    source_name: source.name.clone(),
                    preset: name.clone(),
                    known: presets::ALL.map(|preset| preset.name).join(", "),
                })?;
                wanted_of(preset)
            }
            Signals::Own(readings) => readings
                .iter()
                .map(|(name, reading)| wanted(source, name, reading))
                .collect::<Result<_, _>>()?,
        };
        let mut metrics: HashSet<String> = forms.iter().flat_map(Wanted::metrics).collect();
        metrics.insert(STARTED.to_owned());
        Ok(Extractor { forms, metrics })
    }

    /// Reads one text. Of the alternatives of a signal the first one that is there counts.
    #[must_use]
    pub fn read(&self, body: &[u8]) -> Extracted {
        let scan = scan(body, |name| self.metrics.contains(normal(name).as_str()));
        let mut extracted = Extracted {
            bad_lines: scan.bad_lines,
            duplicate_lines: scan.duplicate_lines,
            ..Extracted::default()
        };
        let series: Vec<Series> = scan.series.into_iter().map(normalised).collect();
        extracted.started = series
            .iter()
            .find(|series| series.name == STARTED)
            .map(|series| series.value);
        for form in &self.forms {
            if extracted
                .found
                .iter()
                .any(|(signal, _)| *signal == form.signal)
            {
                continue;
            }
            let values = form.values(&series);
            if !values.is_empty() {
                extracted
                    .found
                    .push((form.signal, form.metric().to_owned()));
                extracted.values.extend(values);
            }
        }
        extracted
    }
}

fn wanted_of(preset: &Preset) -> Vec<Wanted> {
    let pick = |metric: &str, labels: Option<(&str, &str)>, scale| SeriesSelector {
        metric: metric.to_owned(),
        labels: labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect(),
        scale,
    };
    let form = |row: &presets::Row| {
        let (reading, waiters_only) = match row.form {
            Form::Gauge(metric, label) => (Reading::Gauge(pick(metric, label, row.scale)), false),
            Form::Counter(metric) => (Reading::Counter(pick(metric, None, row.scale)), false),
            Form::Histogram(metric) => (Reading::Histogram(pick(metric, None, row.scale)), false),
            Form::Ratio { sum, count } => (
                Reading::Ratio {
                    sum: pick(sum, None, row.scale),
                    count: pick(count, None, 1.0),
                },
                false,
            ),
            Form::WaitersOnly { sum, count } => (
                Reading::Ratio {
                    sum: pick(sum, None, row.scale),
                    count: pick(count, None, 1.0),
                },
                true,
            ),
        };
        Wanted {
            signal: row.signal,
            reading,
            waiters_only,
        }
    };
    preset.rows.iter().map(form).collect()
}

fn wanted(source: &ProbeSource, name: &str, reading: &Reading) -> Result<Wanted, UnknownSource> {
    let signal = Signal::named(name).ok_or_else(|| UnknownSource::Signal {
        source_name: source.name.clone(),
        signal: name.to_owned(),
        known: Signal::ALL.map(Signal::name).join(", "),
    })?;
    let mut reading = reading.clone();
    match &mut reading {
        Reading::Gauge(pick) | Reading::Counter(pick) | Reading::Histogram(pick) => normalise(pick),
        Reading::Ratio { sum, count } => {
            normalise(sum);
            normalise(count);
        }
    }
    Ok(Wanted {
        signal,
        reading,
        waiters_only: false,
    })
}

impl Wanted {
    /// The metric that names this form.
    fn metric(&self) -> &str {
        match &self.reading {
            Reading::Gauge(pick) | Reading::Counter(pick) | Reading::Histogram(pick) => {
                &pick.metric
            }
            Reading::Ratio { sum, .. } => &sum.metric,
        }
    }

    /// Every metric that has to be read for it.
    fn metrics(&self) -> Vec<String> {
        match &self.reading {
            Reading::Gauge(pick) | Reading::Counter(pick) => vec![pick.metric.clone()],
            Reading::Ratio { sum, count } => vec![sum.metric.clone(), count.metric.clone()],
            Reading::Histogram(pick) => ["bucket", "sum", "count"]
                .map(|part| format!("{}_{part}", pick.metric))
                .to_vec(),
        }
    }

    fn values(&self, series: &[Series]) -> Vec<Value> {
        match &self.reading {
            Reading::Gauge(pick) => {
                let gauge = |one: &Series| Value::Gauge {
                    signal: self.signal,
                    value: one.value * pick.scale,
                };
                matching(series, pick, &pick.metric).map(gauge).collect()
            }
            Reading::Counter(pick) => {
                let counter = match self.signal {
                    Signal::Timeouts => Counter::Timeouts,
                    Signal::Connects => Counter::Connects,
                    _ => Counter::Acquires,
                };
                counters(series, pick, &pick.metric, counter)
            }
            Reading::Ratio { sum, count } => {
                let counted = if self.waiters_only {
                    Counter::Waiters
                } else {
                    Counter::WaitCount
                };
                let counts = counters(series, count, &count.metric, counted);
                if counts.is_empty() {
                    return Vec::new();
                }
                let mut values = counters(series, sum, &sum.metric, Counter::WaitSum);
                values.extend(counts);
                values
            }
            Reading::Histogram(pick) => histogram(series, pick),
        }
    }
}

/// Sum, count and buckets of a histogram; of a summary the first two.
fn histogram(series: &[Series], pick: &SeriesSelector) -> Vec<Value> {
    let part = |part: &str| format!("{}_{part}", pick.metric);
    let mut values = counters(series, pick, &part("sum"), Counter::WaitSum);
    let counts = SeriesSelector {
        scale: 1.0,
        ..pick.clone()
    };
    values.extend(counters(
        series,
        &counts,
        &part("count"),
        Counter::WaitCount,
    ));
    for bucket in matching(series, pick, &part("bucket")) {
        let Some(bound) = bucket
            .label("le")
            .and_then(|bound| bound.parse::<f64>().ok())
        else {
            continue;
        };
        values.push(Value::Counter {
            counter: Counter::WaitBucket {
                at_most_us: bound * pick.scale,
            },
            series: identity(bucket),
            value: bucket.value,
        });
    }
    values
}

fn counters(
    series: &[Series],
    pick: &SeriesSelector,
    metric: &str,
    counter: Counter,
) -> Vec<Value> {
    matching(series, pick, metric)
        .map(|one| Value::Counter {
            counter,
            series: identity(one),
            value: one.value * pick.scale,
        })
        .collect()
}

/// The series of a metric that carry the wanted labels. What is not a number or infinite says nothing, and is not zero.
fn matching<'s>(
    series: &'s [Series],
    pick: &'s SeriesSelector,
    metric: &str,
) -> impl Iterator<Item = &'s Series> {
    series.iter().filter(move |one| {
        one.name == metric
            && one.value.is_finite()
            && pick
                .labels
                .iter()
                .all(|(label, value)| one.label(label) == Some(value))
    })
}

/// Tells apart the series of one metric. `le` is left out: the bound is told apart by its number.
fn identity(series: &Series) -> String {
    let mut text = series.name.clone();
    for (label, value) in series.labels.iter().filter(|(label, _)| label != "le") {
        text.push('\u{1f}');
        text.push_str(label);
        text.push('=');
        text.push_str(value);
    }
    text
}

/// Dots become underscores: UTF-8 names of Prometheus 3 are the same metrics.
fn normal(name: &str) -> String {
    name.replace('.', "_")
}

fn normalised(mut series: Series) -> Series {
    series.name = normal(&series.name);
    for (label, _) in &mut series.labels {
        *label = normal(label);
    }
    series
}

fn normalise(pick: &mut SeriesSelector) {
    pick.metric = normal(&pick.metric);
    for (label, _) in &mut pick.labels {
        *label = normal(label);
    }
}
