//! The summary at the end of a run, for a terminal of 99 columns: verdict first, then what explains it.

mod tables;
mod timeline;

use super::text::{self, sign};
use super::{Report, critical, interference, recoveries};
use crate::measure::figures;
use std::fmt::Write;

/// The widest line.
pub const COLUMNS: usize = 99;

/// The summary. `colours`: with the terminal's colours for verdicts; the words and signs are the same without.
#[must_use]
pub fn summary(report: &Report, colours: bool) -> String {
    let mut page = Page {
        text: String::new(),
        colours,
    };
    head(report, &mut page);
    verdicts(report, &mut page);
    timeline::section(report, &mut page);
    tables::latency(report, &mut page);
    tables::actions(report, &mut page);
    tables::attempts(report, &mut page);
    tables::troubles(report, &mut page);
    tables::hubs(report, &mut page);
    tables::ledger(report, &mut page);
    tables::returns(report, &mut page);
    tables::pools(report, &mut page);
    marks(report, &mut page);
    generator(report, &mut page);
    foot(report, &mut page);
    page.text
}

/// The text as it grows.
struct Page {
    text: String,
    colours: bool,
}

impl Page {
    /// One line, cut at the last column.
    fn line(&mut self, line: &str) {
        let line = line.trim_end();
        let cut: String = if line.chars().count() > COLUMNS {
            line.chars().take(COLUMNS - 1).chain(['…']).collect()
        } else {
            line.to_owned()
        };
        self.text.push_str(&cut);
        self.text.push('\n');
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    /// A line in the colour of a verdict.
    fn verdict_line(&mut self, verdict: &str, line: &str) {
        if !self.colours {
            self.line(line);
            return;
        }
        let colour = match verdict {
            "pass" => "32",
            "fail" => "31",
            "not judged" => "2",
            _ => "33",
        };
        let _ = write!(self.text, "\u{1b}[{colour}m");
        self.line(line);
        // The colour ends before the line does.
        self.text.pop();
        self.text.push_str("\u{1b}[0m\n");
    }

    /// A long text under a name, broken at spaces; following lines are indented as far as the first.
    fn wrapped(&mut self, first: &str, text: &str) {
        let indent = first.chars().count();
        let mut line = first.to_owned();
        let mut empty = true;
        for word in text.split(' ') {
            if !empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
                self.line(&line);
                line = " ".repeat(indent);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }
}

fn head(report: &Report, page: &mut Page) {
    let run = &report.run;
    let name = std::path::Path::new(&run.profile).file_stem();
    let name = name.map_or_else(
        || run.profile.clone(),
        |name| name.to_string_lossy().into_owned(),
    );
    let verdict = &report.verdict.verdict;
    let mut line = format!(
        "{} {}  {name}  run {}  seed {}  {}",
        sign(verdict),
        verdict.to_uppercase(),
        run.id,
        run.seed,
        figures::clock(i64::try_from(run.lasted_s).unwrap_or(i64::MAX)),
    );
    if run.hubs > 0 {
        let _ = write!(line, "  {} hubs", figures::count(run.hubs));
    }
    if run.arrivals > 0 {
        let _ = write!(line, "  {} arrivals", figures::count(run.arrivals));
    }
    let _ = write!(line, "  {} workers", report.generator.workers);
    page.verdict_line(verdict, &line);
    if let Some(stopped) = &run.stopped {
        page.wrapped("  stopped: ", stopped);
    }
    page.gap();
}

fn verdicts(report: &Report, page: &mut Page) {
    page.line(&format!(
        "{:<52} {:<20} {:<17} {}",
        "VERDICT", "limit", "measured", "at"
    ));
    for row in &report.judgements {
        let line = format!(
            "  {} {:<48} {:<20} {:<17} {}",
            sign(&row.verdict),
            row.text,
            row.limit,
            row.measured,
            text::at(row)
        );
        page.verdict_line(&row.verdict, &line);
    }
    let of_lines = |reason: &str| {
        report
            .judgements
            .iter()
            .any(|row| reason.starts_with(&format!("`{}`", row.text)))
    };
    let doubts: Vec<&String> = report
        .verdict
        .reasons
        .iter()
        .filter(|reason| !of_lines(reason))
        .collect();
    if doubts.is_empty() {
        page.verdict_line("pass", "  ✓ run valid");
    }
    for doubt in doubts {
        page.wrapped("  ? ", doubt);
    }
    page.gap();
}

fn marks(report: &Report, page: &mut Page) {
    if report.marks.is_empty() {
        return;
    }
    page.line("TRIGGERS AND FAULTS");
    for row in &report.marks {
        let at = |us: Option<i64>| {
            us.map_or_else(
                || "-".to_owned(),
                |us| figures::clock(us.div_euclid(1_000_000)),
            )
        };
        page.wrapped(
            "  ",
            &format!(
                "{} {}: {}, from {} to {}",
                row.kind,
                row.name,
                row.what,
                at(row.begin_us),
                at(row.end_us)
            ),
        );
        if let Some(observed) = &row.observed {
            page.wrapped("    seen: ", observed);
        }
        if let Some(problem) = &row.problem {
            page.wrapped("    ✗ ", problem);
        }
        for line in row.readmission.iter().flat_map(text::readmission) {
            page.wrapped("    let back: ", &line);
        }
        for recovery in report
            .recoveries
            .iter()
            .filter(|recovery| recovery.mark == row.name)
        {
            page.wrapped("    recovery: ", &recovery.text);
            for (about, sentence) in recoveries::sentences(recovery) {
                page.wrapped(&format!("      {about:<11}"), &sentence);
            }
        }
    }
    for row in &report.critical {
        for (line, sentence) in critical::sentences(row).iter().enumerate() {
            let first = if line == 0 {
                "  critical  "
            } else {
                "            "
            };
            page.wrapped(first, sentence);
        }
    }
    for sentence in interference::sentences(report) {
        page.wrapped("  others    ", &sentence);
    }
    page.gap();
}

fn generator(report: &Report, page: &mut Page) {
    let generator = &report.generator;
    let lag = generator.lag.as_ref();
    let mut text = format!(
        "start − due p50 {} p99 {} max {}",
        text::time(lag.map(|lag| lag.p50_us)),
        text::time(lag.map(|lag| lag.p99_us)),
        text::time(lag.map(|lag| lag.max_us)),
    );
    let _ = write!(
        text,
        "  worst 10 s p99 {}",
        text::time(generator.lag_worst_us)
    );
    if let Some(allowed) = generator.lag_allowed_us {
        let _ = write!(text, " of {} allowed", figures::time(allowed as f64));
    }
    page.wrapped("GENERATOR  ", &text);
    let mut text = format!(
        "not sent {}  measurements lost {}",
        figures::count(generator.not_sent),
        figures::count(generator.lost_steps)
    );
    if let Some(cpu) = generator.cpu_share {
        let _ = write!(text, "  CPU {} of a core", figures::share(cpu));
    }
    if let Some(resident) = generator.resident_bytes {
        let _ = write!(text, "  memory {}", text::bytes(resident));
    }
    page.wrapped("           ", &text);
    page.gap();
}

fn foot(report: &Report, page: &mut Page) {
    for note in &report.notes {
        page.wrapped("NOTE     ", note);
    }
    page.wrapped(
        "REPORT   ",
        &format!(
            "{}/  report.md  result.json  junit.xml  events.jsonl  latency.hlog",
            report.run.folder
        ),
    );
    page.wrapped("REPLAY   ", &report.run.replay);
    page.line(&format!(
        "exit {} ({})",
        report.verdict.exit_code, report.verdict.exit_text
    ));
}
