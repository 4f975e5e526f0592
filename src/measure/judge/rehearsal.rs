//! The target's own alert rules, rehearsed on what was measured: when each would have fired.

use super::answer::Answer;
use super::scope::{self, Mode};
use super::times::{GUARD_SECONDS, List};
use super::value::{Part, Pick};
use super::{Judge, missing, unit_of, worse};
use crate::event::{MarkId, Offset};
use crate::plan::expect::{Alert, Expectation, Subject, Unit};

/// One rule after one mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    pub mark: MarkId,
    pub name: String,
    /// The rule as written.
    pub rule: String,
    /// The end of the first second at which it held, up to the next mark; `None`: never.
    pub fired: Option<Offset>,
    /// It held already when the mark began.
    pub before: bool,
}

impl Judge<'_> {
    /// Every rule after every mark that began, in the order of the marks.
    #[must_use]
    pub fn rehearsals(&self) -> Vec<Rehearsal> {
        let marks = self.collector.marks().rows.iter();
        let begun = marks.filter(|row| row.begin.is_some());
        let alerts = &self.collector.plan().target.alerts;
        begun
            .flat_map(|row| {
                let alerts = alerts.iter().enumerate();
                alerts.filter_map(|(number, alert)| self.rehearse(number, alert, row.id))
            })
            .collect()
    }

    fn rehearse(&self, number: usize, alert: &Alert, mark: MarkId) -> Option<Rehearsal> {
        let line = alert.line.as_ref().ok()?;
        let marks = self.collector.marks();
        let begin = marks.get(mark)?.begin?;
        let next = marks.rows.iter().filter_map(|row| row.begin);
        let next = next.filter(|other| *other > begin).min();
        let end = self.collector.series().end();
        let end = marks.arrivals_end.map_or(end, |at| end.min(at.second()));
        let until = next.map_or(end, |next| next.second().min(end));
        let holds = |second: u64| self.held_at(number, line, mark, second);
        let before = begin.second().checked_sub(1).is_some_and(&holds);
        let fired = (begin.second()..until).find(|second| holds(*second));
        Some(Rehearsal {
            mark,
            name: alert.name.clone(),
            rule: line.text.clone(),
            fired: fired.map(|second| Offset((second + 1) * 1_000_000)),
            before,
        })
    }

    /// Whether a rule holds at the end of this second.
    fn held_at(&self, number: usize, line: &Expectation, mark: MarkId, second: u64) -> bool {
        if let Subject::Time { .. } = line.subject {
            let mut rows = self.collector.time_lines().of(List::Alerts, number);
            return rows.any(|row| row.held.binary_search(&second).is_ok());
        }
        let unit = unit_of(line, &line.subject);
        let Some(limit) = self.limit(line, &line.subject, Some(mark), unit) else {
            return false;
        };
        let zero = self.collector.marks().zero.map_or(0, Offset::second);
        let value = |from: u64, pick| {
            let stretches = [(from.max(zero), second)];
            let part = Part {
                stretches: &stretches,
                to_the_end: false,
                pick,
                unit,
            };
            self.value(&line.subject, &part)
        };
        let holds = |found: Option<super::Found>| {
            found.map(|found| line.comparison.holds(found.low, limit))
        };
        let length = match scope::mode(line) {
            Mode::For(length) => length,
            Mode::Every(length) => {
                let from = (second + 1).saturating_sub(length);
                return holds(value(from, worse(line.comparison))) == Some(true);
            }
            Mode::Whole | Mode::AtEnd if super::guard::is_gauge(&line.subject) => {
                return holds(value(second, Pick::Last)) == Some(true);
            }
            Mode::Whole | Mode::AtEnd => {
                let from = (second + 1).saturating_sub(GUARD_SECONDS);
                return holds(value(from, worse(line.comparison))) == Some(true);
            }
        };
        // Without a break: no second with data breaks it, and at least every other one has data.
        let Some(from) = (second + 1)
            .checked_sub(length)
            .filter(|from| *from >= zero)
        else {
            return false;
        };
        let mut known = 0;
        for at in from..=second {
            let stretches = [(at, at)];
            let part = Part {
                stretches: &stretches,
                to_the_end: false,
                pick: Pick::Last,
                unit,
            };
            match holds(self.value(&line.subject, &part)) {
                Some(false) => return false,
                Some(true) => known += 1,
                None => {}
            }
        }
        known * 2 >= length
    }

    /// `reconnects-high <= 3m after drop`: from the mark's begin to the alert.
    pub(super) fn alerted(
        &self,
        line: &Expectation,
        alert: usize,
        mark: Option<MarkId>,
    ) -> Vec<Answer> {
        let marks = self.collector.marks();
        let asked = match mark {
            Some(id) => vec![id],
            None => marks.rows.iter().map(|row| row.id).collect(),
        };
        let Some(alert) = self.collector.plan().target.alerts.get(alert) else {
            return vec![Answer::nothing(line, "no such alert", None)];
        };
        let number = self.collector.plan().target.alerts.iter();
        let number = number.take_while(|other| other.name != alert.name).count();
        let answers = asked.into_iter().map(|id| {
            let label = self.label(None, Some(id));
            if let Some(reason) = missing(Some(id), marks) {
                return Answer::nothing(line, &reason, None);
            }
            let rehearsed = self.rehearse(number, alert, id);
            let begin = marks.get(id).and_then(|row| row.begin);
            match rehearsed.zip(begin) {
                Some((rehearsed, begin)) => match rehearsed.fired {
                    Some(fired) => {
                        let after = fired.since(begin).as_micros() as f64;
                        let found = super::Found::exactly(after, 1);
                        let Some(limit) = self.limit(line, &line.subject, Some(id), Unit::Time)
                        else {
                            return Answer::nothing(line, super::no_limit(line), label);
                        };
                        Answer::new(line, Some(found), limit, Unit::Time, label)
                    }
                    None => Answer::never(line, "never fired", label),
                },
                None => {
                    let why = alert.line.as_ref().err();
                    let why = why.map_or("not rehearsed", String::as_str);
                    Answer::nothing(line, why, label)
                }
            }
        });
        answers.collect()
    }

    /// The rules that could not be rehearsed, with the reason.
    #[must_use]
    pub fn unrehearsed(&self) -> Vec<String> {
        let alerts = self.collector.plan().target.alerts.iter();
        let reasons = alerts.filter_map(|alert| {
            let why = alert.line.as_ref().err()?;
            Some(format!("the alert {} was not rehearsed: {why}", alert.name))
        });
        reasons.collect()
    }
}
