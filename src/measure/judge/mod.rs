//! Whether what was expected came about.
//!
//! A [`Judge`] looks at a [`Collector`] and at what was read and analysed besides, and says for every line what was measured where its
//! scopes say, and whether that keeps the limit. No data is never a pass. It changes nothing and can be asked at any moment.

mod answer;
mod doubts;
mod guard;
mod lag;
mod marked;
mod probed;
mod rehearsal;
mod returns;
mod scope;
mod stale;
mod times;
mod value;

pub use rehearsal::Rehearsal;

pub(super) use lag::LagWatch;
pub(super) use scope::during;
pub(super) use times::TimeLines;

use super::pool::PoolSeries;
use super::recovery::Recovery;
use super::verdict::{Judged, Judgement, Verdict};
use super::{Collector, Marks};
use crate::event::{MarkId, Offset};
use crate::plan::expect::{
    BrokerSignal, Expectation, PoolSignal, QueueSignal, Scope, Subject, Unit,
};
use answer::{Answer, is_worse, worse};
use marked::no_limit;
use scope::{Mode, Stretch};
use times::List;
use value::{Found, Part, Pick};

/// The eyes of one judgement.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    collector: &'a Collector,
    /// Parallel to `Probes::sources`.
    pools: &'a [PoolSeries],
    recoveries: &'a [Recovery],
    /// The end of the last closed second.
    now: Offset,
}

impl<'a> Judge<'a> {
    /// A judge of everything that is closed by now. `pools` is parallel to `Probes::sources`.
    #[must_use]
    pub fn new(
        collector: &'a Collector,
        pools: &'a [PoolSeries],
        recoveries: &'a [Recovery],
    ) -> Judge<'a> {
        Judge {
            collector,
            pools,
            recoveries,
            now: Offset(collector.series().end() * 1_000_000),
        }
    }

    /// Judges every line of `expect`, and the run.
    #[must_use]
    pub fn verdict(&self) -> Judged {
        let lines = self.collector.plan().expect.iter().enumerate();
        let judgements: Vec<Judgement> = lines.map(|(row, line)| self.judge(row, line)).collect();
        let doubts = self.doubts(&judgements);
        let mut verdict = Verdict::Pass;
        if let Some(first) = doubts.first() {
            verdict = Verdict::Inconclusive { why: first.clone() };
        }
        for judgement in &judgements {
            if let Some(of_line) = &judgement.verdict {
                let why = format!(
                    "`{}`: {}",
                    judgement.text,
                    of_line.why().unwrap_or_default()
                );
                verdict = verdict.worst(match of_line {
                    Verdict::Pass => Verdict::Pass,
                    Verdict::Inconclusive { .. } => Verdict::Inconclusive { why },
                    Verdict::Fail { .. } => Verdict::Fail { why },
                });
            }
        }
        Judged {
            verdict,
            judgements,
            doubts,
        }
    }

    fn judge(&self, row: usize, line: &Expectation) -> Judgement {
        let judgement = |answer: Answer, verdict| Judgement {
            text: line.text.clone(),
            place: line.place.clone(),
            limit: answer.limit,
            measured: answer.measured,
            value: answer.value,
            at: answer.at,
            verdict,
        };
        if line.scopes.contains(&Scope::IfProbed) && self.not_probed(&line.subject) {
            let answer = Answer::nothing(line, "not probed", None);
            return judgement(answer, None);
        }
        let mut worst: Option<Answer> = None;
        for mark in scope::instances(line, self.collector.marks()) {
            for answer in self.answers(row, line, mark) {
                worst = Some(match worst {
                    Some(worst) if !answer.is_worse_than(&worst) => worst,
                    _ => answer,
                });
            }
        }
        let answer = worst.unwrap_or_else(|| {
            Answer::nothing(line, "there is no trigger or fault to judge it by", None)
        });
        let verdict = answer.verdict.clone();
        judgement(answer, Some(verdict))
    }

    fn not_probed(&self, subject: &Subject) -> bool {
        let probed = |sources: &[usize]| sources.iter().any(|row| self.pools.get(*row).is_some());
        match subject {
            Subject::Pool { sources, .. }
            | Subject::Queue { sources, .. }
            | Subject::Broker { sources, .. } => !probed(sources),
            Subject::Probe { source } => !probed(&[*source]),
            Subject::Blind => self.pools.is_empty(),
            _ => false,
        }
    }

    /// The answers of one line for one instance: one for each row if it says `each`.
    fn answers(&self, row: usize, line: &Expectation, mark: Option<MarkId>) -> Vec<Answer> {
        let marks = self.collector.marks();
        if let Some(reason) = missing(mark, marks) {
            return vec![Answer::nothing(line, &reason, None)];
        }
        match &line.subject {
            Subject::Recovery | Subject::Drain => self.recovery(line, mark),
            Subject::Alert { alert } => self.alerted(line, *alert, mark),
            Subject::CriticalShare => self.critical_share(line),
            Subject::Time { .. } => self.latency(row, line, mark),
            subject => rows_of(subject, line.each)
                .iter()
                .map(|subject| self.counted(line, subject, mark))
                .collect(),
        }
    }

    fn latency(&self, row: usize, line: &Expectation, mark: Option<MarkId>) -> Vec<Answer> {
        let rows = self
            .collector
            .time_lines()
            .of(List::Expect, row)
            .filter(|row| row.mark == mark);
        let plan = self.collector.plan();
        let answers = rows.map(|row| {
            let name = (line.each && row.operations.len() == 1)
                .then(|| plan.operations[row.operations[0]].name.clone());
            let label = self.label(name, mark);
            let (found, samples) = match scope::mode(line) {
                Mode::Every(_) => (
                    row.worst.map(|(value, at)| (value, Some(at))),
                    row.whole.count(),
                ),
                Mode::For(seconds) => {
                    return Answer::held(line, row.longest, seconds, row.whole.count(), label);
                }
                Mode::Whole | Mode::AtEnd => (
                    row.value(&row.whole).map(|value| (value, None)),
                    row.whole.count(),
                ),
            };
            let limit = match line.limit.unit {
                Unit::TimesLast => self.of_last(line),
                _ => row.limit_us(),
            };
            let Some(limit) = limit else {
                return Answer::nothing(line, no_limit(line), label);
            };
            let found = found.map(|(value, at)| Found {
                low: value,
                high: value,
                at,
                samples,
            });
            Answer::new(line, found, limit, Unit::Time, label)
        });
        answers.collect()
    }

    fn counted(&self, line: &Expectation, subject: &Subject, mark: Option<MarkId>) -> Answer {
        let marks = self.collector.marks();
        let end = self.collector.series().end();
        let stretches = scope::stretches(line, mark, marks, end);
        let label = self.label(line.each.then(|| self.row_name(subject)).flatten(), mark);
        let unit = unit_of(line, subject);
        let last = marks
            .load_end
            .and_then(|load_end| load_end.second().checked_sub(1));
        let reaches =
            |part: &[Stretch]| last.is_some_and(|last| part.iter().any(|(_, end)| *end == last));
        let part = |stretches: &[Stretch], pick| {
            self.value(
                subject,
                &Part {
                    stretches,
                    to_the_end: reaches(stretches),
                    pick,
                    unit,
                },
            )
        };
        let pick = worse(line.comparison);
        let found = match scope::mode(line) {
            Mode::Whole => part(&stretches, pick),
            Mode::AtEnd => part(&stretches, Pick::Last),
            Mode::Every(length) => {
                let windows = scope::sliding(&stretches, length).into_iter();
                let found = windows.filter_map(|(first, last)| {
                    let found = part(&[(first, last)], pick)?;
                    Some(Found {
                        at: found.at.or(Some(last)),
                        ..found
                    })
                });
                found.reduce(|a, b| if is_worse(b, a, pick) { b } else { a })
            }
            Mode::For(length) => {
                let (longest, seconds) = self.longest(line, subject, &stretches, unit);
                return Answer::held(line, longest, length, seconds, label);
            }
        };
        match self.limit(line, subject, mark, unit) {
            Some(limit) => Answer::new(line, found, limit, unit, label),
            None => Answer::nothing(line, no_limit(line), label),
        }
    }

    /// The longest time without a break in which the line holds, in seconds, and the seconds with data. A second without data
    /// neither breaks nor counts.
    fn longest(
        &self,
        line: &Expectation,
        subject: &Subject,
        stretches: &[Stretch],
        unit: Unit,
    ) -> (u64, u64) {
        let (mut longest, mut run, mut seconds) = (0, 0, 0);
        let Some(limit) = self.limit(line, subject, None, unit) else {
            return (0, 0);
        };
        for (first, last) in stretches {
            run = 0;
            for second in *first..=*last {
                let part = Part {
                    stretches: &[(second, second)],
                    to_the_end: false,
                    pick: Pick::Last,
                    unit,
                };
                if let Some(found) = self.value(subject, &part) {
                    seconds += 1;
                    run = if line.comparison.holds(found.low, limit) {
                        run + 1
                    } else {
                        0
                    };
                    longest = longest.max(run);
                }
            }
        }
        (longest.max(run), seconds)
    }

    /// The limit in the base unit of the subject.
    fn limit(
        &self,
        line: &Expectation,
        subject: &Subject,
        mark: Option<MarkId>,
        unit: Unit,
    ) -> Option<f64> {
        match line.limit.unit {
            Unit::TimesBaseline => {}
            Unit::TimesLast => return self.of_last(line),
            _ => return Some(line.limit.value),
        }
        let (from, to) =
            scope::quiet(mark, self.collector.marks(), self.collector.plan().baseline)?;
        let stretches = [(from, to - 1)];
        // A gauge's quiet value is its middle, not its worst: the two picks meet there.
        let quiet = |pick| {
            let part = Part {
                stretches: &stretches,
                to_the_end: false,
                pick,
                unit,
            };
            self.value(subject, &part).map(|found| found.low)
        };
        let value = (quiet(Pick::Highest)? + quiet(Pick::Lowest)?) / 2.0;
        let floor = if matches!(subject, Subject::Rate { .. }) {
            ONE_AN_HOUR
        } else {
            0.0
        };
        Some(line.limit.value * value.max(floor))
    }

    /// The row and the mark that an answer is about.
    fn label(&self, row: Option<String>, mark: Option<MarkId>) -> Option<String> {
        let mark = mark.map(|id| self.collector.plan().mark_name(id).to_owned());
        match (row, mark) {
            (Some(row), Some(mark)) => Some(format!("{row}, {mark}")),
            (row, mark) => row.or(mark),
        }
    }

    fn row_name(&self, subject: &Subject) -> Option<String> {
        let plan = self.collector.plan();
        let name = match subject {
            Subject::Share { operations, .. } | Subject::AttemptsPer { operations } => {
                &plan
                    .operations
                    .get(usize::from(operations.first()?.0))?
                    .name
            }
            Subject::Commands { issuers, .. } => &plan.issuers.get(*issuers.first()?)?.name,
            Subject::Hubs { groups, .. } | Subject::Rate { groups, .. } => {
                &plan.hubs.get(*groups.first()?)?.name
            }
            Subject::Pool { sources, .. }
            | Subject::Queue { sources, .. }
            | Subject::Broker { sources, .. } => {
                &plan.target.probes.sources.get(*sources.first()?)?.name
            }
            Subject::Returns { docks, .. } => &plan.docks.get(*docks.first()?)?.name,
            Subject::Probe { source } => &plan.target.probes.sources.get(*source)?.name,
            Subject::Time { .. }
            | Subject::Recovery
            | Subject::Drain
            | Subject::Synchronisation
            | Subject::CriticalShare
            | Subject::Alert { .. }
            | Subject::Blind => return None,
        };
        Some(name.clone())
    }
}

/// Where nothing happened in the quiet time, one event an hour stands in for it, so that nothing is divided by zero.
const ONE_AN_HOUR: f64 = 1.0 / 3600.0;

/// Why the instance of a mark can't be looked at.
fn missing(mark: Option<MarkId>, marks: &Marks) -> Option<String> {
    let row = marks.get(mark?)?;
    match (row.begin, &row.failed) {
        (Some(_), _) => None,
        (None, Some(why)) => Some(format!("{} could not be done: {why}", row.name)),
        (None, None) => Some(format!("{} never happened", row.name)),
    }
}

/// The subject once for each of its rows, or as it is.
fn rows_of(subject: &Subject, each: bool) -> Vec<Subject> {
    let subject = subject.clone();
    if !each {
        return vec![subject];
    }
    match subject {
        Subject::Share { operations, of } => operations
            .into_iter()
            .map(|one| Subject::Share {
                operations: vec![one],
                of,
            })
            .collect(),
        Subject::AttemptsPer { operations } => operations
            .into_iter()
            .map(|one| Subject::AttemptsPer {
                operations: vec![one],
            })
            .collect(),
        Subject::Commands { issuers, of } => issuers
            .into_iter()
            .map(|one| Subject::Commands {
                issuers: vec![one],
                of,
            })
            .collect(),
        Subject::Hubs { groups, of } => groups
            .into_iter()
            .map(|one| Subject::Hubs {
                groups: vec![one],
                of,
            })
            .collect(),
        Subject::Returns { docks, of } => docks
            .into_iter()
            .map(|one| Subject::Returns {
                docks: vec![one],
                of,
            })
            .collect(),
        Subject::Rate { groups, of } => groups
            .into_iter()
            .map(|one| Subject::Rate {
                groups: vec![one],
                of,
            })
            .collect(),
        other => sources_of(other),
    }
}

/// The same for what is probed.
fn sources_of(subject: Subject) -> Vec<Subject> {
    match subject {
        Subject::Pool { sources, of, stat } => sources
            .into_iter()
            .map(|one| Subject::Pool {
                sources: vec![one],
                of,
                stat,
            })
            .collect(),
        Subject::Queue { sources, of } => sources
            .into_iter()
            .map(|one| Subject::Queue {
                sources: vec![one],
                of,
            })
            .collect(),
        Subject::Broker { sources, of } => sources
            .into_iter()
            .map(|one| Subject::Broker {
                sources: vec![one],
                of,
            })
            .collect(),
        other => vec![other],
    }
}

/// The unit in which a subject is measured: that of the limit, except where the limit is a multiple.
fn unit_of(line: &Expectation, subject: &Subject) -> Unit {
    if !line.limit.unit.is_multiple() {
        return line.limit.unit;
    }
    match subject {
        Subject::Share { .. } | Subject::Blind | Subject::CriticalShare => Unit::Share,
        Subject::Time { .. } | Subject::Recovery | Subject::Drain | Subject::Alert { .. } => {
            Unit::Time
        }
        Subject::Rate { .. }
        | Subject::Broker {
            of: BrokerSignal::Connects | BrokerSignal::Disconnects,
            ..
        } => Unit::PerSecond,
        Subject::Pool { of, .. } => match of {
            PoolSignal::Wait | PoolSignal::Stalled => Unit::Time,
            PoolSignal::Saturation => Unit::Share,
            _ => Unit::Count,
        },
        Subject::Queue {
            of: QueueSignal::Age,
            ..
        } => Unit::Time,
        _ => Unit::Count,
    }
}

/// The limit of a line about a latency, in microseconds.
fn latency_limit(line: &Expectation) -> Option<f64> {
    let about_time = matches!(line.subject, Subject::Time { .. }) && line.limit.unit == Unit::Time;
    about_time.then_some(line.limit.value)
}
