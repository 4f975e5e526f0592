//! Which seconds of the run a line speaks of.

use crate::event::{MarkId, Offset};
use crate::measure::marks::{MarkState, Marks};
use crate::plan::expect::{Expectation, Scope, What};
use std::ops::Range;
use std::time::Duration;

/// At the end: for what needs more than one second to say anything.
const AT_END_SECONDS: u64 = 10;

/// How the seconds of a window are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// All together.
    Whole,
    /// The worst sliding window of so many seconds.
    Every(u64),
    /// The longest time without a break must reach so many seconds.
    For(u64),
    /// The last value.
    AtEnd,
}

/// The mode that the scopes of a line give.
pub(super) fn mode(line: &Expectation) -> Mode {
    let mode = line.scopes.iter().find_map(|scope| match scope {
        Scope::InEvery(length) => Some(Mode::Every(seconds_of(*length).max(1))),
        Scope::For(length) => Some(Mode::For(seconds_of(*length).max(1))),
        Scope::AtEnd => Some(Mode::AtEnd),
        _ => None,
    });
    mode.unwrap_or(Mode::Whole)
}

/// The marks for which the line must hold one by one; one `None` if it speaks of none.
pub(super) fn instances(line: &Expectation, marks: &Marks) -> Vec<Option<MarkId>> {
    let what = line.scopes.iter().find_map(|scope| match scope {
        Scope::After(what) | Scope::During(what) | Scope::FromRemovalOf(what) => Some(*what),
        Scope::Within { after, .. } => Some(*after),
        _ => None,
    });
    match what {
        None => vec![None],
        Some(what) => named(what, marks).into_iter().map(Some).collect(),
    }
}

/// The marks that `what` speaks of.
pub(super) fn named(what: What, marks: &Marks) -> Vec<MarkId> {
    let rows = marks.rows.iter();
    match what {
        What::One(id) => vec![id],
        What::Repeated(first) => rows
            .filter(|row| row.first == first)
            .map(|row| row.id)
            .collect(),
        What::EachTrigger => rows.filter(|row| !row.is_fault).map(|row| row.id).collect(),
        What::EachFault => rows.filter(|row| row.is_fault).map(|row| row.id).collect(),
    }
}

/// Whether the line, for the instance of `mark`, speaks of `second` of the clock. Needs to know only what happened up to then.
pub(super) fn covers(line: &Expectation, mark: Option<MarkId>, marks: &Marks, second: u64) -> bool {
    let Some(zero) = marks.zero else { return false };
    let before_end = marks.load_end.is_none_or(|end| second < end.second());
    zero.second() <= second
        && before_end
        && line
            .scopes
            .iter()
            .all(|scope| scope_covers(scope, mark, marks, second))
}

/// Whether a line that is asked while the run goes on speaks of `second`. It goes on to speak after the load, until the run ends.
pub(super) fn allows(line: &Expectation, marks: &Marks, second: u64) -> bool {
    line.scopes
        .iter()
        .all(|scope| scope_covers(scope, None, marks, second))
}

fn scope_covers(scope: &Scope, mark: Option<MarkId>, marks: &Marks, second: u64) -> bool {
    // A scope of one mark is about that mark; "each" and a repeated fault are about the instance's.
    let row = |what: &What| match what {
        What::One(id) => marks.get(*id),
        What::Repeated(_) | What::EachTrigger | What::EachFault => {
            mark.and_then(|id| marks.get(id))
        }
    };
    match scope {
        Scope::After(what) | Scope::FromRemovalOf(what) => {
            row(what).is_some_and(|row| after(row, Duration::ZERO, marks, second))
        }
        Scope::During(what) => row(what).is_some_and(|row| during(row, Duration::ZERO, second)),
        Scope::OutsideTriggers { grace } => outside(marks, false, *grace, second),
        Scope::OutsideFaults { grace } => outside(marks, true, *grace, second),
        Scope::Within { time, after: what } => {
            row(what).is_some_and(|row| after(row, *time, marks, second))
        }
        Scope::AtEnd => marks
            .load_end
            .is_some_and(|end| second + AT_END_SECONDS >= end.second()),
        Scope::InEvery(_) | Scope::For(_) | Scope::IfProbed => true,
    }
}

/// From its first second to that in which it ended `grace` ago.
pub(in crate::measure) fn during(row: &MarkState, grace: Duration, second: u64) -> bool {
    let Some(begin) = row.begin else { return false };
    begin.second() <= second
        && row
            .end
            .is_none_or(|end| second <= end.after(grace).second())
}

/// From the end (plus `time`) to the next mark.
fn after(row: &MarkState, time: Duration, marks: &Marks, second: u64) -> bool {
    let Some(end) = row.end else { return false };
    let from = if time.is_zero() {
        end.second() + 1
    } else {
        end.after(time).second()
    };
    let next = marks
        .rows
        .iter()
        .filter_map(|other| other.begin)
        .filter(|begin| *begin > end)
        .min();
    from <= second && next.is_none_or(|next| second < next.second())
}

fn outside(marks: &Marks, faults: bool, grace: Duration, second: u64) -> bool {
    !marks
        .rows
        .iter()
        .any(|row| row.is_fault == faults && during(row, grace, second))
}

/// The quiet seconds (from, to) before a mark; without one, before the first mark; without any, the first of the load.
pub(super) fn quiet(mark: Option<MarkId>, marks: &Marks, baseline: Duration) -> Option<(u64, u64)> {
    let zero = marks.zero?;
    let length = seconds_of(baseline);
    let row = match mark {
        Some(id) => marks.get(id),
        None => marks.rows.iter().min_by_key(|row| row.planned_us),
    };
    let (from, to) = match row {
        Some(row) => {
            let begin = Offset(zero.0.saturating_add(row.quiet_us)).second();
            (begin.saturating_sub(length).max(zero.second()), begin)
        }
        None => (zero.second(), zero.second() + length),
    };
    (from < to).then_some((from, to))
}

/// Whole seconds, rounded up.
pub(super) fn seconds_of(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Seconds without a gap, both ends included.
pub(super) type Stretch = (u64, u64);

/// The stretches that a line speaks of that is asked while the run goes on, among these seconds.
pub(super) fn allowed(line: &Expectation, marks: &Marks, seconds: Range<u64>) -> Vec<Stretch> {
    joined(seconds.filter(|second| allows(line, marks, *second)))
}

/// The stretches that the line speaks of, for the instance of `mark`, among the seconds before `end`.
pub(super) fn stretches(
    line: &Expectation,
    mark: Option<MarkId>,
    marks: &Marks,
    end: u64,
) -> Vec<Stretch> {
    let first = marks.zero.map_or(end, Offset::second);
    joined((first..end).filter(|second| covers(line, mark, marks, *second)))
}

fn joined(seconds: impl Iterator<Item = u64>) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for second in seconds {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == second => *last = second,
            _ => stretches.push((second, second)),
        }
    }
    stretches
}

/// All windows of `length` seconds within the stretches; a stretch that is shorter is a window by itself.
pub(super) fn sliding(stretches: &[Stretch], length: u64) -> Vec<Stretch> {
    let mut windows = Vec::new();
    for (first, last) in stretches {
        let latest = (last + 1).saturating_sub(length).max(*first);
        windows.extend((*first..=latest).map(|from| (from, (from + length - 1).min(*last))));
    }
    windows
}
