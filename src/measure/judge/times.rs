//! Lines about latencies, fed as seconds close: histograms of closed seconds are not kept, so each line keeps its own sums.

use super::scope::{self, Mode};
use crate::event::MarkId;
use crate::measure::histogram::Histogram;
use crate::measure::marks::Marks;
use crate::measure::second::{OperationSecond, Second};
use crate::plan::Plan;
use crate::plan::expect::{Comparison, Expectation, Limit, Stat, Subject, TimeOf, Unit};
use std::collections::VecDeque;

/// Seconds that a guard without `for` looks back.
pub(super) const GUARD_SECONDS: u64 = 10;

/// A list of lines of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Expect,
    StopIf,
    Steady,
    PauseWhile,
    Alerts,
}

impl List {
    const ALL: [List; 5] = [
        List::Expect,
        List::StopIf,
        List::Steady,
        List::PauseWhile,
        List::Alerts,
    ];

    fn length(self, plan: &Plan) -> usize {
        match self {
            List::Expect => plan.expect.len(),
            List::StopIf => plan.stop_if.len(),
            List::Steady => plan.steady.len(),
            List::PauseWhile => plan.pause_while.len(),
            List::Alerts => plan.target.alerts.len(),
        }
    }

    /// The line in row `row`; `None` for an alert that speaks of what this plan does not have.
    fn line(self, plan: &Plan, row: usize) -> Option<&Expectation> {
        match self {
            List::Expect => plan.expect.get(row),
            List::StopIf => plan.stop_if.get(row),
            List::Steady => plan.steady.get(row),
            List::PauseWhile => plan.pause_while.get(row).map(|pause| &pause.line),
            List::Alerts => plan.target.alerts.get(row)?.line.as_ref().ok(),
        }
    }
}

/// The sums of every line about a latency.
#[derive(Debug)]
pub(in crate::measure) struct TimeLines {
    rows: Vec<TimeRow>,
}

/// One line, for one mark (or none) and one operation (or all of the line's together).
#[derive(Debug)]
pub(super) struct TimeRow {
    pub list: List,
    /// Row in its list.
    pub line: usize,
    pub mark: Option<MarkId>,
    pub operations: Vec<usize>,
    of: TimeOf,
    stat: Stat,
    comparison: Comparison,
    limit: Limit,
    mode: Mode,
    /// Everything within the scopes.
    pub whole: Histogram,
    /// The quiet time before.
    pub quiet: Histogram,
    /// The last seconds, for windows.
    recent: VecDeque<(u64, Histogram)>,
    /// The present stretch has had a whole window.
    full: bool,
    /// The worst window: value and its last second.
    pub worst: Option<(f64, u64)>,
    /// Seconds without a break in which the line holds, now and at most.
    pub run: u64,
    pub longest: u64,
    /// Of an alert: the seconds at the end of which it held.
    pub held: Vec<u64>,
}

impl TimeLines {
    pub(in crate::measure) fn new(plan: &Plan, marks: &Marks) -> TimeLines {
        let mut rows = Vec::new();
        for list in List::ALL {
            let rows_of_list = 0..list.length(plan);
            let lines = rows_of_list.filter_map(|row| Some((row, list.line(plan, row)?)));
            for (line, described) in lines {
                let Subject::Time { operations, .. } = &described.subject else {
                    continue;
                };
                let operations: Vec<usize> =
                    operations.iter().map(|id| usize::from(id.0)).collect();
                let sets: Vec<Vec<usize>> = if described.each {
                    operations.into_iter().map(|one| vec![one]).collect()
                } else {
                    vec![operations]
                };
                for mark in scope::instances(described, marks) {
                    rows.extend(
                        sets.iter().filter_map(|set| {
                            TimeRow::new(list, line, described, mark, set.clone())
                        }),
                    );
                }
            }
        }
        TimeLines { rows }
    }

    /// Takes in the next closed second.
    pub(in crate::measure) fn second(&mut self, plan: &Plan, marks: &Marks, second: &Second) {
        for row in &mut self.rows {
            let Some(line) = row.list.line(plan, row.line) else {
                continue;
            };
            let quiet = scope::quiet(row.mark, marks, plan.baseline);
            if quiet.is_some_and(|(from, to)| (from..to).contains(&second.index)) {
                row.add_quiet(second);
            }
            let speaks_of_it = match row.list {
                List::Expect => scope::covers(line, row.mark, marks, second.index),
                List::StopIf | List::Steady | List::PauseWhile | List::Alerts => {
                    scope::allows(line, marks, second.index)
                }
            };
            if speaks_of_it {
                row.add(second);
            }
            if row.list == List::Alerts && row.holds_now() {
                row.held.push(second.index);
            }
        }
    }

    /// Takes in what was due before the load's end and ended after it, for every line that reaches the load's end, and ends all windows.
    pub(in crate::measure) fn finish(&mut self, plan: &Plan, marks: &Marks, carried: &Second) {
        let last = marks.load_end.and_then(|end| end.second().checked_sub(1));
        for row in self.rows.iter_mut().filter(|row| row.list == List::Expect) {
            let Some(line) = row.list.line(plan, row.line) else {
                continue;
            };
            if last.is_some_and(|last| scope::covers(line, row.mark, marks, last)) {
                let times = row.times(carried);
                row.whole.add(&times);
                if let Some((last, newest)) = row.recent.back_mut() {
                    newest.add(&times);
                    let last = *last;
                    row.weigh(last);
                }
            }
            row.end_stretch();
        }
    }

    pub(super) fn of(&self, list: List, line: usize) -> impl Iterator<Item = &TimeRow> {
        self.rows
            .iter()
            .filter(move |row| row.list == list && row.line == line)
    }
}

impl TimeRow {
    fn new(
        list: List,
        line: usize,
        described: &Expectation,
        mark: Option<MarkId>,
        operations: Vec<usize>,
    ) -> Option<TimeRow> {
        let Subject::Time { of, stat, .. } = described.subject else {
            return None;
        };
        let mode = match (list, scope::mode(described)) {
            (List::Expect, mode) | (_, mode @ Mode::For(_)) => mode,
            (_, _) => Mode::Every(GUARD_SECONDS),
        };
        Some(TimeRow {
            list,
            line,
            mark,
            operations,
            of,
            stat,
            comparison: described.comparison,
            limit: described.limit,
            mode,
            whole: Histogram::default(),
            quiet: Histogram::default(),
            recent: VecDeque::new(),
            full: false,
            worst: None,
            run: 0,
            longest: 0,
            held: Vec::new(),
        })
    }

    /// The value that the line limits, of these times.
    pub(super) fn value(&self, times: &Histogram) -> Option<f64> {
        match self.stat {
            Stat::Percentile(percentile) => times.percentile_us(percentile).map(|us| us as f64),
            Stat::Mean => times.mean_us(),
            Stat::Max => times.max_us().map(|us| us as f64),
        }
    }

    /// The limit in microseconds; of a multiple of the quiet time, once that is known.
    pub(super) fn limit_us(&self) -> Option<f64> {
        match self.limit.unit {
            Unit::TimesBaseline => Some(self.limit.value * self.value(&self.quiet)?),
            _ => Some(self.limit.value),
        }
    }

    /// Whether an alert holds: for its time without a break, or over its window.
    fn holds_now(&self) -> bool {
        if let Mode::For(length) = self.mode {
            return self.run >= length;
        }
        let limit = self.limit_us();
        self.recently()
            .0
            .zip(limit)
            .is_some_and(|(value, limit)| self.comparison.holds(value, limit))
    }

    /// The value and the number of samples of the last seconds.
    pub(super) fn recently(&self) -> (Option<f64>, u64) {
        let times = Histogram::sum(self.recent.iter().map(|(_, times)| times));
        (self.value(&times), times.count())
    }

    fn times(&self, second: &Second) -> Histogram {
        let of = |row: &'_ OperationSecond| match self.of {
            TimeOf::Latency => row.latency.clone(),
            TimeOf::Service => row.service.clone(),
        };
        let mut sum = Histogram::default();
        for row in self
            .operations
            .iter()
            .filter_map(|row| second.operations.get(*row))
        {
            sum.add(&of(row));
        }
        sum
    }

    fn add_quiet(&mut self, second: &Second) {
        let times = self.times(second);
        self.quiet.add(&times);
    }

    fn add(&mut self, second: &Second) {
        let times = self.times(second);
        match self.mode {
            Mode::Whole | Mode::AtEnd => {}
            Mode::Every(length) => {
                // A gap in the scope starts a window anew.
                if self
                    .recent
                    .back()
                    .is_some_and(|(last, _)| last + 1 != second.index)
                {
                    self.end_stretch();
                }
                self.recent.push_back((second.index, times.clone()));
                while self.recent.len() as u64 > length {
                    self.recent.pop_front();
                }
                if self.recent.len() as u64 == length {
                    self.full = true;
                    self.weigh(second.index);
                }
            }
            Mode::For(_) => {
                let holds = self.value(&times).zip(self.limit_us());
                match holds.map(|(value, limit)| self.comparison.holds(value, limit)) {
                    Some(true) => self.run += 1,
                    Some(false) => self.run = 0,
                    None => {}
                }
                self.longest = self.longest.max(self.run);
            }
        }
        self.whole.add(&times);
    }

    /// A stretch that was shorter than the window is a window by itself.
    fn end_stretch(&mut self) {
        if let Some(last) = self
            .recent
            .back()
            .map(|(last, _)| *last)
            .filter(|_| !self.full)
        {
            self.weigh(last);
        }
        self.recent.clear();
        self.full = false;
    }

    /// Compares the present window with the worst one.
    fn weigh(&mut self, second: u64) {
        let (Some(value), _) = self.recently() else {
            return;
        };
        let lower_is_worse = matches!(self.comparison, Comparison::AtLeast | Comparison::Above);
        let worse = self.worst.is_none_or(|(worst, _)| {
            if lower_is_worse {
                value < worst
            } else {
                value > worst
            }
        });
        if worse {
            self.worst = Some((value, second));
        }
    }
}
