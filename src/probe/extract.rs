//! From the series that an origin told to the signals of one source.

use super::presets::{self, Form, Preset};
use super::prometheus::{Series, scan};
use crate::measure::pool::{Counter, Value};
use crate::plan::probe::{ProbeSource, Reading, SeriesSelector, Signals};
use crate::plan::signal::Signal;
use std::collections::HashSet;

/// What a source's signals are called in its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Extractor {
    /// Alternatives of one signal follow each other, the preferred one first.
    forms: Vec<Wanted>,
    /// Every metric that has to be read, dots as underscores.
    metrics: HashSet<String>,
    /// The source's `match`.
    labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    signal: Signal,
    reading: Reading,
    /// What the count of a ratio counts.
    counts: Counter,
    except: Option<(&'static str, &'static str)>,
    renamed: Option<(&'static str, &'static str)>,
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
}

/// Where one signal was found, for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub signal: Signal,
    pub metric: String,
    /// What the exported value is multiplied by; times become microseconds.
    pub scale: f64,
    /// The labels of every series that counts, as they were exported.
    pub series: Vec<String>,
    /// The highest finite bucket of a histogram, in microseconds.
    pub top_bucket_us: Option<f64>,
    /// The value that it has now, where it is one number, in the signal's unit.
    pub value: Option<f64>,
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

/// When a process started: the proof of a restart.
pub(super) const STARTED: &str = "process_start_time_seconds";

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
        Ok(Extractor {
            forms,
            metrics,
            labels: source.labels.clone(),
        })
    }

    /// Every metric that has to be read; of a JSON document, every path.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.metrics.iter().map(String::as_str)
    }

    /// Whether a metric of this name has to be read.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.metrics.contains(normal(name).as_str())
    }

    /// Reads one text of Prometheus.
    #[must_use]
    pub fn read(&self, body: &[u8]) -> Extracted {
        self.extract(scan(body, |name| self.wants(name)).series)
    }

    /// Finds the signals. Of the alternatives of a signal the first one that is there counts.
    #[must_use]
    pub fn extract(&self, series: Vec<Series>) -> Extracted {
        let series: Vec<Series> = series.into_iter().map(normalised).collect();
        let mut extracted = Extracted {
            started: series
                .iter()
                .find(|series| series.name == STARTED)
                .map(|series| series.value),
            ..Extracted::default()
        };
        let matching = self.matching(&series);
        let mut only_fixed = true;
        for form in &self.forms {
            if extracted
                .found
                .iter()
                .any(|(signal, _)| *signal == form.signal)
            {
                continue;
            }
            let values = form.values(&form.kept(&matching));
            if !values.is_empty() {
                only_fixed &= matches!(form.reading, Reading::Fixed(_));
                extracted
                    .found
                    .push((form.signal, form.metric().to_owned()));
                extracted.values.extend(values);
            }
        }
        // A number that is fixed says nothing about whether anything was read.
        if only_fixed {
            extracted.values.clear();
        }
        extracted
    }

    /// The same as [`Extractor::extract`], told so that a person can check it.
    #[must_use]
    pub fn explain(&self, series: Vec<Series>) -> Vec<Match> {
        let found = self.extract(series.clone()).found;
        let series: Vec<Series> = series.into_iter().map(normalised).collect();
        let matching = self.matching(&series);
        let one = |(signal, metric): &(Signal, String)| {
            let form = self
                .forms
                .iter()
                .find(|form| form.signal == *signal && form.metric() == metric)?;
            Some(form.explain(&form.kept(&matching)))
        };
        found.iter().filter_map(one).collect()
    }

    /// The series that the source's `match` leaves.
    fn matching(&self, series: &[Series]) -> Vec<Series> {
        let fits = |one: &&Series| {
            self.labels
                .iter()
                .all(|(label, value)| one.label(label).is_none_or(|given| given == value))
        };
        // A preset may know the label under another name, and looks again after it has renamed it.
        series.iter().filter(fits).cloned().collect()
    }
}

fn wanted_of(preset: &Preset) -> Vec<Wanted> {
    preset.rows.iter().map(wanted_by).collect()
}

fn wanted_by(row: &presets::Row) -> Wanted {
    let pick = |metric: &str, scale| SeriesSelector {
        labels: row
            .only
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect(),
        ..SeriesSelector::named(metric, scale)
    };
    let ratio = |sum: &str, count: &str| Reading::Ratio {
        sum: pick(sum, row.scale),
        count: pick(count, 1.0),
    };
    let (reading, counts) = match row.form {
        Form::Gauge(metric) => (Reading::Gauge(pick(metric, row.scale)), Counter::WaitCount),
        Form::Counter(metric) => (
            Reading::Counter(pick(metric, row.scale)),
            Counter::WaitCount,
        ),
        Form::Histogram(metric) => (
            Reading::Histogram(pick(metric, row.scale)),
            Counter::WaitCount,
        ),
        Form::Ratio { sum, count } => (ratio(sum, count), Counter::WaitCount),
        Form::WaitersOnly { sum, count } => (ratio(sum, count), Counter::Waiters),
        Form::Arrived { sum, count } => (ratio(sum, count), Counter::Arrivals),
    };
    Wanted {
        signal: row.signal,
        reading,
        counts,
        except: row.except,
        renamed: row.renamed,
    }
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
        Reading::Fixed(_) => {}
    }
    Ok(Wanted {
        signal,
        reading,
        counts: Counter::WaitCount,
        except: None,
        renamed: None,
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
            Reading::Fixed(_) => "a fixed number",
        }
    }

    /// The series without those that the preset leaves out, labels renamed.
    fn kept(&self, series: &[Series]) -> Vec<Series> {
        let metrics = self.metrics();
        let mut kept: Vec<Series> = series
            .iter()
            .filter(|one| metrics.contains(&one.name))
            .cloned()
            .collect();
        if let Some((from, to)) = self.renamed {
            for one in &mut kept {
                let value = one.label(from).map(str::to_owned);
                one.labels
                    .retain(|(label, _)| value.is_none() || label != to);
                for (label, _) in one.labels.iter_mut().filter(|(label, _)| label == from) {
                    to.clone_into(label);
                }
            }
        }
        if let Some((label, value)) = self.except {
            kept.retain(|one| one.label(label) != Some(value));
        }
        kept
    }

    fn explain(&self, series: &[Series]) -> Match {
        let values = self.values(series);
        let (scale, labels) = match &self.reading {
            Reading::Gauge(pick) | Reading::Counter(pick) | Reading::Histogram(pick) => {
                (pick.scale, &pick.labels)
            }
            Reading::Ratio { sum, .. } => (sum.scale, &sum.labels),
            Reading::Fixed(_) => (1.0, &Vec::new()),
        };
        let tops = values.iter().filter_map(|value| match value {
            Value::Counter {
                counter: Counter::WaitBucket { at_most_us },
                ..
            } if at_most_us.is_finite() => Some(*at_most_us),
            _ => None,
        });
        let numbers: Vec<f64> = values
            .iter()
            .map(|value| match value {
                Value::Gauge { value, .. } | Value::Counter { value, .. } => *value,
            })
            .collect();
        let is_number = matches!(
            self.reading,
            Reading::Gauge(_) | Reading::Counter(_) | Reading::Fixed(_)
        );
        let mut shown: Vec<String> = series
            .iter()
            .filter(|one| {
                labels
                    .iter()
                    .all(|(label, value)| one.label(label) == Some(value))
            })
            .map(labels_of)
            .collect();
        shown.dedup();
        Match {
            signal: self.signal,
            metric: self.metric().to_owned(),
            scale,
            series: shown,
            top_bucket_us: tops.reduce(f64::max),
            value: is_number.then(|| numbers.iter().sum()),
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
            Reading::Fixed(_) => Vec::new(),
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
                counters(series, pick, &pick.metric, Counter::Of(self.signal))
            }
            Reading::Ratio { sum, count } => {
                let counts = counters(series, count, &count.metric, self.counts);
                if counts.is_empty() {
                    return Vec::new();
                }
                let mut values = counters(series, sum, &sum.metric, Counter::WaitSum);
                values.extend(counts);
                values
            }
            Reading::Histogram(pick) => histogram(series, pick),
            Reading::Fixed(value) => vec![Value::Gauge {
                signal: self.signal,
                value: *value,
            }],
        }
    }
}

/// The labels of a series as Prometheus writes them, without the bound of a bucket.
fn labels_of(series: &Series) -> String {
    let labels: Vec<String> = series
        .labels
        .iter()
        .filter(|(label, _)| label != "le")
        .map(|(label, value)| format!("{label}={value:?}"))
        .collect();
    format!("{{{}}}", labels.join(","))
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

/// Dots become underscores: UTF-8 names of Prometheus 3 are the same metrics. A path or a topic stays as it is.
fn normal(name: &str) -> String {
    if name.starts_with('$') {
        return name.to_owned();
    }
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
