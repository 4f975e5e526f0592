//! A running test as a page of Prometheus' text format.
//!
//! Names, kinds and help texts are those of `plan::metric`; this fills in the values, and measures nothing by itself.

mod fleet;
mod health;
mod target;

pub use health::Health;

use crate::measure::pool::PoolSeries;
use crate::measure::recovery::Recovery;
use crate::measure::{Collector, Histogram};
use crate::plan::metric::{FamilyKind, family};
use std::fmt::Write as _;

/// Everything that is known of a run by now.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub collector: &'a Collector,
    /// Parallel to `Probes::sources`.
    pub pools: &'a [PoolSeries],
    pub recoveries: &'a [Recovery],
    pub health: Health,
    /// The run's id.
    pub run: &'a str,
}

/// The page as it is now.
#[must_use]
pub fn page(seen: &Seen<'_>) -> String {
    let mut page = Page::default();
    fleet::run(seen, &mut page);
    fleet::actions(seen, &mut page);
    fleet::hubs(seen, &mut page);
    fleet::commands(seen, &mut page);
    target::probes(seen, &mut page);
    target::marks(seen, &mut page);
    health::generator(seen, &mut page);
    page.text
}

/// Upper bounds of exported histograms, in seconds: from a wait nobody notices to one that nobody sits through.
const BOUNDS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// A text under construction.
#[derive(Default)]
struct Page {
    text: String,
}

/// Labels of one sample; values are escaped when they are written.
type Labels<'l> = Vec<(&'static str, &'l str)>;

impl Page {
    /// One family with its samples; without samples nothing is written.
    fn family<'l>(
        &mut self,
        name: &'static str,
        samples: impl IntoIterator<Item = (Labels<'l>, f64)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() || !self.head(name) {
            return;
        }
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// A family of histograms of times.
    fn histograms<'l>(
        &mut self,
        name: &'static str,
        samples: impl IntoIterator<Item = (Labels<'l>, &'l Histogram)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() || !self.head(name) {
            return;
        }
        for (labels, histogram) in samples {
            self.histogram(name, &labels, histogram);
        }
    }

    /// Help and type; false for a name that the catalogue lacks, which nothing may export.
    fn head(&mut self, name: &str) -> bool {
        let Some(family) = family(name) else {
            debug_assert!(false, "{name} is not in the catalogue");
            return false;
        };
        let _ = writeln!(self.text, "# HELP {name} {}", family.help);
        let _ = writeln!(self.text, "# TYPE {name} {}", family.kind.name());
        debug_assert!(
            family.kind != FamilyKind::Counter || name.ends_with("_total"),
            "{name} counts"
        );
        true
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"");
            for letter in text.chars() {
                match letter {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    letter => self.text.push(letter),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let count = histogram.count();
        let bucket = format!("{name}_bucket");
        for bound in BOUNDS {
            let above = histogram.count_above((bound * 1e6) as u64);
            let text = bound.to_string();
            let labels = [labels, &[("le", text.as_str())]].concat();
            self.sample(&bucket, &labels, count.saturating_sub(above) as f64);
        }
        let labels_of_all = [labels, &[("le", "+Inf")]].concat();
        self.sample(&bucket, &labels_of_all, count as f64);
        let sum = histogram.mean_us().unwrap_or(0.0) * count as f64 / 1e6;
        self.sample(&format!("{name}_sum"), labels, sum);
        self.sample(&format!("{name}_count"), labels, count as f64);
    }
}
