//! The run by time, in sixty columns.

use super::Page;
use crate::measure::figures;
use crate::report::Report;
use crate::report::data::{Join, MarkRow, TimelineRow};

/// Columns of a line.
const WIDTH: usize = 60;
/// Columns of a name.
const NAME: usize = 14;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Lines about waits and latencies at most.
const MOST_WAITS: usize = 4;

pub(super) fn section(report: &Report, page: &mut Page) {
    let Some(span) = Span::of(report) else { return };
    page.line(&format!("{:<NAME$}  {}", "TIMELINE", span.axis()));
    for row in report.marks.iter().filter(|row| row.begin_us.is_some()) {
        page.line(&format!(
            "  {:<NAME$}{} {}",
            cut(&row.name),
            span.window(row),
            row.what
        ));
    }
    let mut waits = 0;
    for row in &report.timeline.lines {
        let is_wait = row.unit == "us";
        waits += usize::from(is_wait);
        let quiet = row.name == "failed" && row.values.iter().flatten().all(|value| *value == 0.0);
        if quiet
            || ["attempts", "in flight"].contains(&row.name.as_str())
            || (is_wait && waits > MOST_WAITS)
        {
            continue;
        }
        let columns = span.columns(row);
        let line = format!(
            "  {:<NAME$}{} {}",
            cut(&row.name),
            bars(&columns),
            remark(row, &columns)
        );
        page.line(&line);
    }
    for row in &report.recoveries {
        if let (Some(at), Some(declared)) = (row.recovered_us, row.declared_us) {
            page.line(&format!(
                "  {:<NAME$}{}^ recovered {} (held {})",
                "",
                " ".repeat(span.column(at)),
                figures::clock(at.div_euclid(1_000_000)),
                figures::short_time((declared - at) as f64),
            ));
        }
    }
    page.gap();
}

/// From 0:00 to the end of the timeline.
struct Span<'a> {
    report: &'a Report,
    /// Steps before 0:00.
    skip: usize,
    steps: usize,
}

impl Span<'_> {
    fn of(report: &Report) -> Option<Span<'_>> {
        let timeline = &report.timeline;
        let skip = usize::try_from((-timeline.from_s).max(0)).ok()?
            / usize::try_from(timeline.step_s).ok()?.max(1);
        let all = timeline.lines.iter().map(|row| row.values.len()).max()?;
        (all > skip).then_some(Span {
            report,
            skip,
            steps: all - skip,
        })
    }

    fn seconds(&self) -> u64 {
        self.steps as u64 * self.report.timeline.step_s
    }

    /// Five times, each over its column.
    fn axis(&self) -> String {
        let mut axis = String::new();
        for mark in 0..5_usize {
            let at = self.seconds() * mark as u64 / 5;
            axis.push_str(&format!(
                "{:<12}",
                figures::clock(i64::try_from(at).unwrap_or(i64::MAX))
            ));
        }
        axis
    }

    /// The column of a moment.
    fn column(&self, us: i64) -> usize {
        let share = us.max(0) as f64 / 1e6 / self.seconds().max(1) as f64;
        ((share * WIDTH as f64) as usize).min(WIDTH - 1)
    }

    fn window(&self, row: &MarkRow) -> String {
        let begin = row.begin_us.map_or(WIDTH, |us| self.column(us));
        let end = row.end_us.map_or(WIDTH - 1, |us| self.column(us));
        (0..WIDTH)
            .map(|column| {
                if (begin..=end).contains(&column) {
                    '▒'
                } else {
                    ' '
                }
            })
            .collect()
    }

    /// One value a column.
    fn columns(&self, row: &TimelineRow) -> Vec<Option<f64>> {
        let values = row.values.get(self.skip..).unwrap_or_default();
        let width = WIDTH.min(self.steps.max(1));
        let columns = (0..width).map(|column| {
            let from = column * self.steps / width;
            let to = ((column + 1) * self.steps / width).max(from + 1);
            row.by
                .of(values.get(from..to.min(values.len())).unwrap_or_default())
        });
        // A short run has fewer steps than columns: each is drawn as often as it takes.
        let known: Vec<Option<f64>> = columns.collect();
        (0..WIDTH)
            .map(|column| known[column * width / WIDTH])
            .collect()
    }
}

fn bars(columns: &[Option<f64>]) -> String {
    let most = columns.iter().flatten().copied().fold(0.0, f64::max);
    let bar = |value: &Option<f64>| match value {
        None => ' ',
        Some(_) if most <= 0.0 => BARS[0],
        Some(value) => BARS[((value / most * 7.0).round() as usize).min(7)],
    };
    columns.iter().map(bar).collect()
}

/// What a person would read off the line.
fn remark(row: &TimelineRow, columns: &[Option<f64>]) -> String {
    let lowest = columns.iter().flatten().copied().reduce(f64::min);
    let highest = columns.iter().flatten().copied().reduce(f64::max);
    let (Some(lowest), Some(highest)) = (lowest, highest) else {
        return String::new();
    };
    let whole = |value: f64| figures::number(value.round());
    match (row.unit.as_str(), row.by) {
        ("us", _) => format!("peak {}", figures::time(highest)),
        (_, Join::Lowest) => format!("least {} of {}", whole(lowest), whole(highest)),
        ("/s", _) if row.name == "completed" => {
            format!("low {}/s of {}/s", whole(lowest), whole(highest))
        }
        ("/s", _) => format!("peak {}/s", whole(highest)),
        _ => format!("peak {}", whole(highest)),
    }
}

fn cut(name: &str) -> String {
    let cut: String = name.chars().take(NAME - 1).collect();
    format!("{cut:<NAME$}")
}
