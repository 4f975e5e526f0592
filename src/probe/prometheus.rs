//! A scanner for the Prometheus text format and its OpenMetrics variant that reads on where others give up.
//!
//! A line that makes no sense is counted and skipped; the rest of the scrape still counts. `# TYPE` is not looked at: NATS and
//! Dropwizard expose counters as gauges, so whoever asks says what a metric is. Timestamps and exemplars are read over.

use std::borrow::Cow;
use std::collections::HashSet;

/// One series with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// A quoted UTF-8 name without its quotes.
    pub name: String,
    /// Sorted by name, escapes decoded.
    pub labels: Vec<(String, String)>,
    /// May be infinite or not a number.
    pub value: f64,
}

impl Series {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(label, _)| label == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What a text holds of the metrics asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scan {
    pub series: Vec<Series>,
    /// Lines of wanted metrics that make no sense, and lines without a name.
    pub bad_lines: u64,
    /// Lines that repeat a series; the first one counts.
    pub duplicate_lines: u64,
}

/// Reads every series whose name is `wanted`. Never fails: text that is no such format gives bad lines.
pub fn scan(body: &[u8], wanted: impl Fn(&str) -> bool) -> Scan {
    let text = String::from_utf8_lossy(body);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut scan = Scan::default();
    let mut seen = HashSet::new();
    for line in text.split('\n').map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match series(line, &wanted) {
            Line::Unwanted => {}
            Line::Bad => scan.bad_lines += 1,
            Line::Good(series) => {
                if seen.insert((series.name.clone(), series.labels.clone())) {
                    scan.series.push(series);
                } else {
                    scan.duplicate_lines += 1;
                }
            }
        }
    }
    scan
}

enum Line {
    Good(Series),
    Unwanted,
    Bad,
}

fn series(line: &str, wanted: &impl Fn(&str) -> bool) -> Line {
    let end = line
        .find(|c: char| c == '{' || c.is_whitespace())
        .unwrap_or(line.len());
    let (bare, rest) = line.split_at(end);
    // Labels are costly to read: most lines of a large scrape end here.
    if !bare.is_empty() && !wanted(bare) {
        return Line::Unwanted;
    }
    let rest = rest.trim_start();
    let (quoted, labels, rest) = match rest.strip_prefix('{') {
        None => (None, Vec::new(), rest),
        Some(inside) => match braces(inside) {
            Some(parts) => parts,
            None => return Line::Bad,
        },
    };
    let name = match quoted {
        Some(name) if bare.is_empty() => name,
        None if !bare.is_empty() => bare.to_owned(),
        _ => return Line::Bad,
    };
    if !wanted(&name) {
        return Line::Unwanted;
    }
    match value(rest) {
        Some(value) => Line::Good(Series {
            name,
            labels,
            value,
        }),
        None => Line::Bad,
    }
}

type Braces<'a> = (Option<String>, Vec<(String, String)>, &'a str);

/// What stands between the braces, from behind the opening one: a quoted metric name, labels, and the rest of the line.
fn braces(text: &str) -> Option<Braces<'_>> {
    let mut name = None;
    let mut labels = Vec::new();
    let mut rest = text.trim_start();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            labels.sort();
            return Some((name, labels, after));
        }
        let (label, after) = label_name(rest)?;
        let after = after.trim_start();
        match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = quoted(value.trim_start())?;
                labels.push((label.into_owned(), value));
                rest = after.trim_start();
            }
            // A quoted text without a value is the metric's name (UTF-8 names).
            None if rest.starts_with('"') && name.is_none() => {
                name = Some(label.into_owned());
                rest = after;
            }
            None => return None,
        }
        // A comma before the closing brace is legal.
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.starts_with('}') => {}
            None => return None,
        }
    }
}

/// A label's name, bare or quoted, and the rest.
fn label_name(text: &str) -> Option<(Cow<'_, str>, &str)> {
    if text.starts_with('"') {
        return quoted(text).map(|(name, rest)| (Cow::Owned(name), rest));
    }
    let end = text.find(|c: char| c.is_whitespace() || "=,{}\"".contains(c))?;
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then_some((Cow::Borrowed(name), rest))
}

/// A quoted text with its escapes decoded, and the rest. An escape that does not exist stays as it is written.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &inside[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('\\' | '"') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    None
}

/// The value, and behind it nothing but a timestamp and an exemplar.
fn value(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let value = words.next()?.parse().ok()?;
    match words.next() {
        None => Some(value),
        Some(exemplar) if exemplar.starts_with('#') => Some(value),
        Some(timestamp) => {
            timestamp.parse::<f64>().ok()?;
            words
                .next()
                .is_none_or(|exemplar| exemplar.starts_with('#'))
                .then_some(value)
        }
    }
}
