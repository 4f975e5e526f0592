//! Lines that are asked while the run goes on: what stops it, and what must hold before anything is broken.

use super::scope::{self, Mode};
use super::times::{GUARD_SECONDS, List};
use super::value::{Found, Part, Pick};
use super::{Judge, unit_of, worse};
use crate::measure::figures;
use crate::plan::expect::{BrokerSignal, CommandState, Expectation, PoolSignal, Subject, Unit};

/// Fewer samples than this say nothing; a gauge needs no more than one.
const FEWEST_SAMPLES: u64 = 20;

impl Judge<'_> {
    /// The first line of `stop_if` that holds now, with what was measured.
    #[must_use]
    pub fn should_stop(&self) -> Option<String> {
        let lines = self.collector.plan().stop_if.iter().enumerate();
        lines
            .filter_map(|(row, line)| self.holds_now(List::StopIf, row, line))
            .find_map(|(holds, text)| holds.then_some(text))
    }

    /// By trigger: the first line that asks to pause its readmission now, with what was measured.
    #[must_use]
    pub fn pauses(&self) -> Vec<Option<String>> {
        let plan = self.collector.plan();
        let mut reasons = vec![None; plan.triggers.len()];
        for (row, pause) in plan.pause_while.iter().enumerate() {
            if let Some((true, text)) = self.holds_now(List::PauseWhile, row, &pause.line)
                && let Some(reason) = reasons.get_mut(pause.trigger)
            {
                reason.get_or_insert(text);
            }
        }
        reasons
    }

    /// The lines of `steady` that do not hold now, with what was measured; a line without data does not hold.
    #[must_use]
    pub fn unsteady(&self) -> Vec<String> {
        let lines = self.collector.plan().steady.iter().enumerate();
        let answers = lines.map(
            |(row, line)| match self.holds_now(List::Steady, row, line) {
                Some((true, _)) => None,
                Some((false, text)) => Some(text),
                None => Some(format!("`{}`: too little data", line.text)),
            },
        );
        answers.flatten().collect()
    }

    /// Whether a line holds over the last seconds; `None` where there is too little to say.
    fn holds_now(&self, list: List, row: usize, line: &Expectation) -> Option<(bool, String)> {
        if let Subject::Time { .. } = line.subject {
            return self.time_holds_now(list, row, line);
        }
        let zero = self.collector.marks().zero?.second();
        let gauge = is_gauge(&line.subject);
        let end = self
            .collector
            .series()
            .end()
            .checked_sub(self.young_seconds(&line.subject))?;
        let unit = unit_of(line, &line.subject);
        let limit = self.limit(line, &line.subject, None, unit)?;
        let measured = |from: u64, to: u64, pick| {
            let stretches = scope::allowed(line, self.collector.marks(), from.max(zero)..to);
            if stretches.is_empty() {
                return None;
            }
            let part = Part {
                stretches: &stretches,
                to_the_end: false,
                pick,
                unit,
            };
            self.value(&line.subject, &part)
        };
        let text = |value: f64| format!("`{}`: {}", line.text, figures::value(value, unit));
        let length = match scope::mode(line) {
            Mode::For(length) => length,
            Mode::Every(length) => {
                return self.window_holds(
                    line,
                    measured(end.checked_sub(length)?, end, worse(line.comparison))?,
                    limit,
                    unit,
                );
            }
            // The longest time without readings is not that of one second.
            Mode::Whole | Mode::AtEnd if line.subject == Subject::Blind && unit == Unit::Time => {
                let found = measured(zero, end, Pick::Highest)?;
                return Some((line.comparison.holds(found.low, limit), text(found.low)));
            }
            Mode::Whole | Mode::AtEnd if gauge => {
                let found = measured(end.saturating_sub(1), end, Pick::Last)?;
                return Some((line.comparison.holds(found.low, limit), text(found.low)));
            }
            Mode::Whole | Mode::AtEnd => {
                let found = measured(
                    end.saturating_sub(GUARD_SECONDS),
                    end,
                    worse(line.comparison),
                )?;
                return self.window_holds(line, found, limit, unit);
            }
        };
        let from = end.checked_sub(length).filter(|from| *from >= zero)?;
        let seconds = (from..end).map(|second| measured(second, second + 1, Pick::Last));
        held(line, limit, seconds, length).map(|(holds, value)| (holds, text(value)))
    }

    fn window_holds(
        &self,
        line: &Expectation,
        found: Found,
        limit: f64,
        unit: Unit,
    ) -> Option<(bool, String)> {
        let enough =
            is_gauge(&line.subject) || is_counted(&line.subject) || found.samples >= FEWEST_SAMPLES;
        let text = format!("`{}`: {}", line.text, figures::value(found.low, unit));
        enough.then(|| (line.comparison.holds(found.low, limit), text))
    }

    fn time_holds_now(&self, list: List, row: usize, line: &Expectation) -> Option<(bool, String)> {
        // Of several rows ("each"), one that is bad enough stops the run.
        let answers = self.collector.time_lines().of(list, row).filter_map(|row| {
            let limit = row.limit_us()?;
            if let Mode::For(length) = scope::mode(line) {
                let held = figures::short_time(row.run as f64 * 1e6);
                let enough = row.whole.count() >= FEWEST_SAMPLES;
                return enough.then(|| {
                    (
                        row.run >= length,
                        format!("`{}`: held for {held}", line.text),
                    )
                });
            }
            let (value, samples) = row.recently();
            let value = value.filter(|_| samples >= FEWEST_SAMPLES)?;
            Some((
                line.comparison.holds(value, limit),
                format!("`{}`: {}", line.text, figures::time(value)),
            ))
        });
        answers.max_by_key(|(holds, _)| *holds == (list != List::Steady))
    }

    /// Seconds at the end of which nothing is decided yet: a command may be in time until its `in_time` has passed.
    fn young_seconds(&self, subject: &Subject) -> u64 {
        match subject {
            Subject::Commands {
                issuers,
                of: CommandState::InTime | CommandState::Late,
            } => {
                let plan = self.collector.plan();
                let slowest = issuers
                    .iter()
                    .filter_map(|row| plan.issuers.get(*row))
                    .map(|issuer| issuer.in_time)
                    .max();
                slowest.map_or(0, scope::seconds_of) + 1
            }
            _ => 0,
        }
    }
}

/// Without a break: every second that has data, and enough of them. With the value that says so.
fn held(
    line: &Expectation,
    limit: f64,
    measured: impl Iterator<Item = Option<Found>>,
    length: u64,
) -> Option<(bool, f64)> {
    let (mut seconds, mut samples, mut last) = (0, 0, None);
    for found in measured.flatten() {
        last = Some(found.low);
        seconds += 1;
        samples += found.samples;
        if !line.comparison.holds(found.low, limit) {
            return Some((false, found.low));
        }
    }
    let is_one_enough = is_gauge(&line.subject) || is_counted(&line.subject);
    let enough = seconds * 2 >= length && (is_one_enough || samples >= FEWEST_SAMPLES);
    last.filter(|_| enough).map(|value| (true, value))
}

/// One reading says what there is to say.
pub(super) fn is_gauge(subject: &Subject) -> bool {
    match subject {
        Subject::Hubs { of, .. } => *of == crate::plan::expect::HubState::Connected,
        Subject::Pool { of, .. } => *of != PoolSignal::AcquiresPerRequest,
        Subject::Broker { of, .. } => *of == BrokerSignal::Connections,
        Subject::Queue { .. } | Subject::Probe { .. } | Subject::Blind => true,
        _ => false,
    }
}

/// A count is what it is; only shares need many samples.
fn is_counted(subject: &Subject) -> bool {
    matches!(subject, Subject::Hubs { .. } | Subject::Rate { .. })
}
